"""The section of the `kernels` experiment: the fastest rung of each problem, the libraries beside it, its ladder, the
roofline, conditions compared, and the error by depth."""

from functools import partial

from ..answer import TITLE
from ..document import Block, Heading
from ..kernels import conditions, details, errors, fastest, libraries, plots, table
from ..load import Results
from ..plots.draw_all import draw_all
from ..report import pictures
from . import Section

CONDITIONS, LIBRARIES = "Conditions compared", "Libraries"


def _titled(title: str, blocks: list[Block]) -> list[Block]:
    return [Heading(title), *blocks] if blocks else []


def _body(results: Results, *shapes) -> list[Block]:
    return [
        *_titled(LIBRARIES, libraries.blocks(results)),
        *table.blocks(results),
        *_titled(CONDITIONS, conditions.blocks(results)),
        *errors.blocks(results),
        *pictures(*shapes),
    ]


SECTION = Section(
    columns=details.columns,
    numbers=details.NUMBERS,
    compared={"share_of_best_peer": ()},  # a change of the peer is not one of the rung; the rate suffices
    value_labels={axis: str for axis in ("dtype", "cache", "pace")}
    | {"against": lambda value: f"against {value}", "inputs": lambda value: f"inputs {value}"},
    draw=partial(draw_all, plots.ALL),
    headline=plots.by_rung.NAME,
    answer=lambda results: _titled(TITLE, fastest.blocks(results)),
    body=_body,
)
