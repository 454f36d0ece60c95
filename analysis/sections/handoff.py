"""The section of the `handoff` experiment: the cheapest way by size, the cost of each way, rows with two GPUs, several
tensors or readers, and the figures."""

import math
from functools import partial

from .. import units
from ..answer import TITLE
from ..document import Block, Bullets, Heading
from ..handoff import changes, cheapest, plots, several, ways
from ..load import Results
from ..plots.draw_all import draw_all
from ..report import pictures
from . import Section, wrong_results

WAYS, TWO_GPUS, SEVERAL = "Cost of each way", "Hand-off to another GPU", "Several tensors or readers"


TO = {"same": "on the same device", "other": "on another GPU"}
REACH = {"map": "read in place", "copy": "copied first"}


def _columns(row: dict) -> dict:
    """The memory held, and the lowest possible time."""
    cost, bound = row.get("cost") or {}, (row.get("bounds") or {}).get("handoff_ns") or {}
    return {
        "device_bytes": cost.get("device_bytes", math.nan),
        "host_bytes": cost.get("host_bytes", math.nan),
        "least_ns": bound.get("value", math.nan),
    }


def _counted(value: float, what: str) -> str:
    return f"{value:g} {what}{'' if value == 1 else 's'}"


def _titled(title: str, blocks: list[Block]) -> list[Block]:
    return [Heading(title), *blocks] if blocks else []


def cheapest_blocks(results: Results) -> list[Block]:
    """Sentences and a table on the cheapest way by size; empty if no row counts."""
    found = cheapest.places(results)
    sentences = changes.sentences(results, found)
    return [*([Bullets(sentences)] if sentences else []), *cheapest.blocks(results, found)]


def _body(results: Results, *shapes) -> list[Block]:
    return [
        *_titled(WAYS, ways.blocks(results)),
        *_titled(TWO_GPUS, cheapest.two_gpus_blocks(results)),
        *_titled(SEVERAL, several.blocks(results)),
        *pictures(*shapes),
    ]


SECTION = Section(
    columns=_columns,
    numbers=("device_bytes", "host_bytes", "least_ns"),
    doubt=wrong_results("tensors were read incorrectly"),
    names={"bytes": "size"},
    value_labels={
        "bytes": units.size,
        "tensors": lambda value: _counted(value, "tensor"),
        "readers": lambda value: _counted(value, "reader"),
        "to": lambda value: TO.get(value, str(value)),
        "reach": lambda value: REACH.get(value, str(value)),
    },
    draw=partial(draw_all, plots.ALL),
    headline=plots.by_size.ALL[0].NAME,
    answer=lambda results: _titled(TITLE, cheapest_blocks(results)),
    body=_body,
)
