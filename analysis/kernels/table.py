"""The table of a ladder: each rung with its gain, its shares of the roofline and of the best library, and its costs."""

from collections import Counter

import pandas as pd

from .. import figure_text, interval, stats, units
from ..document import Block, Bullets, Heading, Table, Text
from ..load import Results
from . import peers, roofline
from . import points as kernels
from .details import AT_CLOCK, CLOCK, DRAM, DRAM_TIMES, L2_TIMES
from .fastest import rate
from .ladders import Ladder, ladders
from .points import JOULES, RATE

COLUMNS = [
    "rung", "what it changes", "operations per second", "gain", "of the roofline", "of the best library",
    "per operation", "moved", "resources", "clock",
]  # fmt: skip
NOTE = (
    f"{figure_text.NOTE} “Gain”: how many times as fast a rung is as the rung before it. “Of the best library”: the "
    "time of the fastest library / the time of the rung, from samples taken in turn; above 1 the rung is faster. “Per "
    "operation”: energy by the GPU's counter, known only for a rung that was also timed alone. “Moved”: bytes per second "
    "from and to DRAM, by the GPU's counters, and, as multiples of the inputs and results, the bytes that moved from and to "
    "DRAM, and those of all requests to the L2 cache, which include those between its two halves. “Resources”: of the "
    "rung's largest kernel, registers and spilled bytes per thread, shared memory per block, and blocks that run at the "
    "same time on one SM. “Clock”: the median clock of the SMs next to the "
    "samples, the rate as a share of the peak at that clock, and the reasons why the clock was below its maximum in at "
    "least one repetition."
)


def blocks(results: Results) -> list[Block]:
    """A heading and a table per problem, the absent peers, and a note; empty if no rung counts."""
    found = ladders(results)
    if not found:
        return []
    parts: list[Block] = []
    for ladder in found:
        where = Text(f"All figures are for {ladder.condition}.")
        parts += [Heading(f"Ladder {ladder.problem}"), where, table(results, ladder)]
    absent = peers.sentences(results, found)
    note = Text(" ".join([NOTE, *stats.explained(results)]), "note")
    return [*parts, *([Bullets(absent)] if absent else []), note]


def table(results: Results, ladder: Ladder) -> Table:
    """One row per rung, by step, then one per library."""
    before: pd.Series | None = None
    rows = []
    for point in ladder.points:
        is_rung = point["step"] > 0
        rows.append(
            [
                ladder.rung(point).label,
                ladder.rung(point).changes or units.NOTHING,
                rate(results, point),
                _gain(before, point) if is_rung else units.NOTHING,
                roofline.share_cell(point),
                peers.share_cell(results, ladder, point),
                energy(results, ladder.alone.get(point["rung"], point)),
                _moved(point),
                _resources(results, point),
                clock(results, point),
            ]
        )
        before = point if is_rung else before
    return Table(COLUMNS, rows, {2, 3, 4, 5, 6})


def _gain(before: pd.Series | None, point: pd.Series) -> str:
    """The ratio to the rung before; if that was not measured here, to the last one that was, which is then named."""
    if before is None:
        return units.NOTHING
    ratio = units.spread(units.ratio, *interval.ratio(point, before, RATE))
    return ratio if before["step"] == point["step"] - 1 else f"{ratio}\nover {before['rung']}"


def energy(results: Results, point: pd.Series) -> str:
    """Joules per operation; only known for a point that was timed alone."""
    if point.get(JOULES) is None or point[JOULES] != point[JOULES]:
        return units.NOTHING
    return figure_text.figure(results.experiment.formatter(JOULES), point, JOULES, False)


def _moved(point: pd.Series) -> str:
    """A dash without counters."""
    if point[DRAM] != point[DRAM]:
        return units.NOTHING
    times = [f"{units.ratio(point[name])} × by {place}" for name, place in ((DRAM_TIMES, "DRAM"), (L2_TIMES, "L2"))]
    return "\n".join([units.bytes_per_second(point[DRAM]), *times])


def _resources(results: Results, point: pd.Series) -> str:
    known = [one for one in kernels.row_values(results, point, "compiled") if one]
    if not known:
        return units.NOTHING
    last, blocks = known[-1], known[-1]["blocks_per_sm"]
    return "\n".join(
        [
            f"{last['registers']} registers",
            f"{units.size(last['shared_bytes'])} shared",
            f"{units.size(last['local_bytes'])} spilled",
            f"{blocks} block{'' if blocks == 1 else 's'} per SM",
        ]
    )


def clock(results: Results, point: pd.Series) -> str:
    if point[CLOCK] != point[CLOCK]:
        return units.NOTHING
    at_clock = f"{units.percent(point[AT_CLOCK])} of its peak" if point[AT_CLOCK] == point[AT_CLOCK] else ""
    reasons = Counter(one for some in kernels.row_values(results, point, "clock_reasons") for one in some)
    return "\n".join(part for part in (f"{point[CLOCK]:.0f} MHz", at_clock, *reasons) if part)
