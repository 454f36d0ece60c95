"""Every library beside the fastest rung of each problem: its time, as a multiple of the rung's."""

from statistics import median

from .. import stats, units
from ..document import Block, Table, Text
from ..load import Results
from . import points as kernels
from .ladders import ladders

NOTE = (
    "Time of the library / time of the fastest rung, from samples taken in turn on the same inputs: above 1 the rung is "
    "faster. Medians of the repetitions, with the lowest and the highest in brackets. “—”: the library does not compute "
    "this, failed, or was not timed."
)


def blocks(results: Results) -> list[Block]:
    """The table and its note; empty if no rung was timed in turn with a library."""
    shares = {}
    for ladder in ladders(results):
        known: dict[str, list[float]] = {}
        for row in kernels.row_values(results, ladder.best, "peers"):
            for name, share in row.items():
                known.setdefault(name, []).append(share)
        if known:
            shares[ladder.problem, ladder.best["rung"]] = known
    names = list(dict.fromkeys(name for known in shares.values() for name in sorted(known)))
    if not names:
        return []
    rows = [[*point, *(_cell(known.get(name)) for name in names)] for point, known in shares.items()]
    table = Table(["problem", "fastest rung", *names], rows, set(range(2, 2 + len(names))))
    return [table, Text(" ".join([NOTE, *stats.explained(results)]), "note")]


def _cell(shares: list[float] | None) -> str:
    return units.spread(units.ratio, median(shares), min(shares), max(shares)) if shares else units.NOTHING
