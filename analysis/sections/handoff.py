"""The section of the experiment `handoff`: the cheapest way by size, the cost of each way, rows with two GPUs, several
tensors or readers, and the figures."""

from functools import partial

from ..answer import TITLE
from ..document import Block, Bullets, Heading
from ..handoff import changes, cheapest, details, plots, several, ways
from ..load import Results
from ..plots.draw_all import draw_all
from ..report import pictures
from . import Section

WAYS, TWO_GPUS, SEVERAL = "Cost of each way", "Hand-off to another GPU", "Several tensors or readers"


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
    columns=details.columns,
    numbers=details.NUMBERS,
    doubt=details.doubt,
    names=details.NAMES,
    value_labels=details.VALUE_LABELS,
    draw=partial(draw_all, plots.ALL),
    headline=plots.by_size.ALL[0].NAME,
    answer=lambda results: _titled(TITLE, cheapest_blocks(results)),
    body=_body,
)
