"""Bandwidth, IOPS and latency with O_DIRECT, compared with fio's job of the same block size, depth and threads."""

import math

import pandas as pd

from .. import figure_text, stats, units
from ..document import Block, Table, Text
from ..load import Results
from ..ranking import ranked_figure
from . import limits
from . import points as storage
from .points import BLOCKS, BYTES

COLUMNS = ["task", "block", "depth × threads", "engine", "bytes", "of fio", "IOPS", "p50", "p99"]
FIO = "fio, to host memory"
NOTE = (
    f"{figure_text.NOTE} The first row of each group is fio with O_DIRECT and io_uring, measured in the same run, with "
    "the range of its readings in brackets. It moves the bytes between the drive and host memory and checks nothing, "
    "so it is the limit of an engine. p50 and p99 are the times from the submission of a block until it was checked; "
    "while blocks are checked, as many further ones are in flight, so that these times are not those of fio's requests."
)


def blocks(results: Results) -> list[Block]:
    """The table and its note; empty without rows with O_DIRECT and a limit from fio."""
    rows = [line for group in _groups(results) for line in _lines(results, group)]
    if not rows:
        return []
    numbers = set(range(len(COLUMNS))) - {0, 3}
    return [Table(COLUMNS, rows, numbers), Text(" ".join([NOTE, *stats.explained(results.closed)]), "note")]


def _groups(results: Results) -> list[pd.DataFrame]:
    """The points by job of fio."""
    measured = storage.read(results)
    measured = measured[measured["direct"] == "yes"] if len(measured) else measured
    keys = ["machine", *storage.task_axes(results), "block_bytes", "depth", "threads"]
    groups = [group for _, group in measured.groupby(keys, sort=False, dropna=False)] if len(measured) else []
    return [group for group in groups if not math.isnan(limits.fio(results, group.iloc[0]))]


def _lines(results: Results, group: pd.DataFrame) -> list[list[str]]:
    first = group.iloc[0]
    job = [first["task"], units.size(first["block_bytes"]), f"{first['depth']:.0f} × {first['threads']:.0f}"]
    value, least, greatest = _readings(results, first)
    block = first["block_bytes"]
    of_fio = [
        FIO, units.spread(units.bytes_per_second, value, least, greatest), units.NOTHING,
        units.spread(units.of_unit("1/s"), value / block, least / block, greatest / block), *[units.NOTHING] * 2,
    ]  # fmt: skip
    ranked = group.sort_values(BYTES, ascending=False, kind="stable")
    return [[*job, *line] for line in (of_fio, *(_engine(results, point, value) for _, point in ranked.iterrows()))]


def _readings(results: Results, point: pd.Series) -> tuple[float, float, float]:
    """The median of fio's rate with the lowest and the highest reading, bytes per second."""
    value, name = limits.fio(results, point), limits.fio_name(point)
    rows = results.limits
    own = rows[(rows["name"] == name) & (rows["machine"] == point["machine"]) & (rows["status"] == "ok")]
    return (value, own["least"].min(), own["greatest"].max()) if len(own) else (value, value, value)


def _engine(results: Results, point: pd.Series, fio: float) -> list[str]:
    share = limits.share(point, limits.fio_name(point), fio)
    return [
        f"{point['variant']}\n{storage.own_setting(results, point)}".strip(),
        ranked_figure(units.bytes_per_second, point, BYTES, True, "throughput"),
        units.percent(share),
        figure_text.figure(units.of_unit("1/s"), point, BLOCKS, True),
        *(figure_text.figure(units.nanoseconds, point, time, False) for time in ("p50", "p99")),
    ]
