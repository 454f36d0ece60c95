"""The CPU cost of each engine: cores per GB/s, from the engine that costs least to the one that costs most."""

import pandas as pd

from .. import figure_text, interval, stats, units
from ..document import Block, Table, Text
from ..load import Results
from ..ranking import clearly_better, ranked_figure
from . import points as storage
from .points import BYTES, CPU, GIB_IN_GB, Place

COLUMNS = ["task", "block", "engine", "cores per GB/s", "× the least", "bytes", "cores at this rate", "host threads"]
NOTE = (
    f"{figure_text.NOTE} “Cores per GB/s”: CPU seconds of the process, in user mode and in the kernel, per 10⁹ bytes. "
    "They include the load generator and threads that spin while they wait, and on the CPU device also the check of "
    "the blocks; work of kernel threads on behalf of the process is not included. An engine with several settings is shown "
    "with the cheapest. “× the least”: the ratio to the cheapest engine of the task. “Cores at this rate”: the cost "
    "times the rate."
)


def blocks(results: Results) -> list[Block]:
    """The table and its note; empty if no row counts."""
    found = storage.places(results, CPU, False)
    return [table(results, found), Text(" ".join([NOTE, *stats.explained(results.closed)]), "note")] if found else []


def table(results: Results, found: list[Place]) -> Table:
    """One row per task, block size and engine, the cheapest first."""
    rows = [
        [place.task, units.size(place.block), *_cells(results, place, point)]
        for place in found
        for point in place.ranked
    ]
    return Table(COLUMNS, rows, {1, 3, 4, 5, 6, 7})


def _cells(results: Results, place: Place, point: pd.Series) -> list[str]:
    return [
        storage.engine_cell(results, place, point),
        ranked_figure(storage.cores_per_gb, point, CPU, False, CPU),
        _times_the_least(place, point),
        figure_text.figure(units.bytes_per_second, point, BYTES, True),
        units.ratio(cores(point)),
        units.number(point["host_threads"]),
    ]


def _times_the_least(place: Place, point: pd.Series) -> str:
    if point is place.best:
        return "1"
    doubt = "" if clearly_better(place.best, point, CPU, False) else "\nunclear"
    return units.spread(units.ratio, *interval.ratio(point, place.best, CPU)) + doubt


def cores(point: pd.Series, rate: float | None = None) -> float:
    """The number of cores that a point's cost makes at a rate in bytes per second; by default, at the point's own."""
    return point[CPU] / GIB_IN_GB * (point[BYTES] if rate is None else rate) / 1e9
