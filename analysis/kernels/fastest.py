"""The answer: the fastest rung of each problem, how near it comes to the roofline and to the best library, and the
runner-up."""

import pandas as pd

from .. import figure_text, interval, stats, units
from ..document import Block, Table, Text
from ..load import Results
from ..ranking import clearly_better, ranked_figure
from . import peers, roofline
from .ladders import Ladder, ladders
from .points import RATE

COLUMNS = [
    "problem", "fastest rung", "operations per second", "n", "of the roofline", "of the best library", "runner-up",
    "its operations per second", "ratio",
]  # fmt: skip
NOTE = (
    f"{figure_text.NOTE} “n”: the number of repetitions. “Problem”: m × n × k are the result's rows and columns and "
    "the depth of its sums. A multiply-add counts as two operations. “Of the roofline”: the rate as a share of the limit "
    "that binds it, which was measured in the same run. “Of the best library”: the time of the fastest library / the "
    "time of the rung, from samples taken in turn on the same inputs; above 1 the rung is faster. “Ratio”: how many "
    "times as fast as the runner-up the fastest rung is. “No clear difference”: the interval of the share includes 1, or "
    "there is only one repetition and hence no interval. “Unclear”: the intervals of both rungs overlap, or there is "
    "none."
)


def blocks(results: Results) -> list[Block]:
    """The table and its note; empty if no rung counts."""
    found = ladders(results)
    if not found:
        return []
    return [table(results, found), Text(" ".join([NOTE, *stats.explained(results)]), "note")]


def table(results: Results, found: list[Ladder]) -> Table:
    """One row per problem."""
    rows = [
        [
            f"{ladder.problem}\n{ladder.condition}".strip(),
            ladder.best["rung"],
            rate(results, ladder.best),
            units.number(ladder.best["repetitions"]),
            roofline.share_cell(ladder.best),
            peers.share_cell(results, ladder, ladder.best),
            *_runner_up_cells(results, ladder),
        ]
        for ladder in found
    ]
    return Table(COLUMNS, rows, {2, 3, 4, 5, 7, 8})


def rate(results: Results, point: pd.Series) -> str:
    return ranked_figure(results.experiment.formatter(RATE), point, RATE, True, "throughput")


def _runner_up_cells(results: Results, ladder: Ladder) -> list[str]:
    second = ladder.second
    if second is None:
        return ["no other was measured", units.NOTHING, units.NOTHING]
    ratio = units.spread(units.ratio, *interval.ratio(ladder.best, second, RATE))
    doubt = "" if clearly_better(ladder.best, second, RATE, True) else "\nunclear"
    return [second["rung"], rate(results, second), ratio + doubt]
