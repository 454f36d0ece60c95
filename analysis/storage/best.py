"""The answer: the fastest engine for each task and block size with the runner-up, and their shares of the limits."""

import pandas as pd

from .. import figure_text, interval, stats, units
from ..document import Block, Table, Text
from ..load import Results
from ..ranking import clearly_better, ranked_figure
from . import limits
from . import points as storage
from .points import BYTES, CPU, Place

COLUMNS = [
    "task", "block", "fastest engine", "bytes", "cores per GB/s", "runner-up", "its bytes", "its cores per GB/s",
    "ratio",
]  # fmt: skip
NOTE = (
    f"{figure_text.NOTE} “Task”: what all engines do alike; depth, threads and an engine's own axes are its settings, "
    "and an engine with several settings is shown with the fastest. “Of fio”: the rate as a share of that of fio with "
    "the same block size, depth and threads, which moves the bytes only between the drive and host memory. “Of the "
    "copy engine”: as a share of the rate of bare copies between pinned host memory and the device. “Ratio”: how many "
    "times as fast the fastest is; its interval combines those of both. “Unclear”: the two intervals overlap, or there "
    "is only one repetition and hence no interval. “Cores per GB/s”: CPU seconds of the process per 10⁹ bytes."
)
NO_FIO = (
    "No row has a limit from fio, so this report does not show how near the engines come to the drive. fio measures "
    "the drive if it is installed and a point has --direct yes."
)


def blocks(results: Results) -> list[Block]:
    """The table and its note; empty if no row counts."""
    found = storage.places(results)
    if not found:
        return []
    note = Text(" ".join(filter(None, [NOTE, _chosen(found), *stats.explained(results.closed)])), "note")
    return [table(results, found), note, *([] if has_fio(results) else [Text(NO_FIO, "missing")])]


def _chosen(found: list[Place]) -> str:
    """How the shown points were chosen from the settings of their engines."""
    named = [
        point.to_dict() | {"of": place.tried[point["variant"]]}
        for place in found
        for point in (place.best, place.second)
        if point is not None
    ]
    return stats.chosen_sentence(pd.DataFrame(named), shown=False)


def has_fio(results: Results) -> bool:
    """Whether any row has a limit from fio."""
    return any(name.startswith("fio_") for known in results.cells["limits"] for name in known)


def table(results: Results, found: list[Place]) -> Table:
    """One row per task and block size."""
    rows = [
        [place.task, units.size(place.block), *_cells(results, place, place.best), *_runner_up_cells(results, place)]
        for place in found
    ]
    return Table(COLUMNS, rows, {1, 3, 4, 6, 7, 8})


def _cells(results: Results, place: Place, point: pd.Series) -> list[str]:
    rate = ranked_figure(units.bytes_per_second, point, BYTES, True, "throughput")
    cores = figure_text.figure(storage.cores_per_gb, point, CPU, False)
    return [storage.engine_cell(results, place, point), "\n".join([rate, *limits.shares(results, point)]), cores]


def _runner_up_cells(results: Results, place: Place) -> list[str]:
    second = place.second
    if second is None:
        return ["no other was measured", *[units.NOTHING] * 3]
    ratio = units.spread(units.ratio, *interval.ratio(place.best, second, BYTES))
    doubt = "" if clearly_better(place.best, second, BYTES, True) else "\nunclear"
    return [*_cells(results, place, second), ratio + doubt]
