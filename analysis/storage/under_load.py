"""Latency under open load: percentiles of the response time, which starts when a block is due, by offered rate."""

from dataclasses import replace
from functools import lru_cache

import pandas as pd

from .. import figure_text, flags, stability, stats, units
from ..document import Block, Table, Text
from ..load import Results
from . import points as storage

PERCENTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
BEYOND = 10  # samples beyond a percentile without which it is not shown
COLUMNS = ["task", "block", "engine", "due", "p50", "p99", "p99.9", "bytes", "cores per GB/s", "sustained"]
NOTE = (
    f"{figure_text.NOTE} Blocks are due at a rate that does not depend on the engine. The response time starts when a "
    "block is due, so it includes the time for which it waits for a slow engine (no coordinated omission). A "
    f"percentile is shown only if each repetition has {BEYOND} samples beyond it. “Sustained”: in no repetition did the backlog "
    "grow; otherwise the times only reflect how long the phase was, and have no interval."
)


def points(results: Results) -> pd.DataFrame:
    """One row per engine, task, setting and rate, with `sustained`, in the order of tasks and engines."""
    return _points(results).copy()


@lru_cache(maxsize=8)  # as for stats.points
def _points(results: Results) -> pd.DataFrame:
    cells = results.cells[results.cells["open"] & results.cells["status"].isin(["ok", "unsustainable"])]
    if cells.empty:
        return cells.assign(task=[], sustained=[])
    missed = cells["status"] == "unsustainable"
    keys = ["variant", "machine", *results.axes]
    beyond = missed.groupby([cells[key] for key in keys], dropna=False).transform("any")
    # Beyond saturation, latency is as long as the phase, so its scatter does not inform that of the other points.
    parts = []
    for sustained, some in ((True, cells[~beyond]), (False, cells[beyond])):
        if len(some):
            found = stats.points(replace(results, cells=some.assign(status="ok")))
            parts.append(found.assign(sustained=sustained))
    found = storage.described(results, pd.concat(parts, ignore_index=True))
    least = [cells.loc[members, "samples"].min() for members in found["members"]]
    for name, share in PERCENTILES.items():
        enough = pd.Series(least, found.index, dtype=float) * (1 - share) >= BEYOND - 1e-9
        found.loc[~enough, name] = float("nan")
    return found.assign(due=[cells.loc[members, "due_per_second"].median() for members in found["members"]])


def curves(results: Results) -> list[tuple[str, list[tuple[pd.Series, pd.DataFrame]]]]:
    """By task and block, the curves: the first point, which has the setting, and all points by rate."""
    measured = points(results)
    found: dict[str, list] = {}
    if measured.empty:
        return []
    keys = ["task", "block_bytes", "variant", *(axis for axis in results.axes if axis != "rate")]
    for _, curve in measured.groupby(list(dict.fromkeys(keys)), sort=False, dropna=False):
        first = curve.iloc[0]
        where = f"{first['task']}, {units.size(first['block_bytes'])}"
        found.setdefault(where, []).append((first, curve.sort_values("due")))
    return list(found.items())


def blocks(results: Results) -> list[Block]:
    """The table and its note; empty without open loads."""
    rows = [
        [first["task"], units.size(first["block_bytes"]), _engine(results, first), *_cells(point)]
        for _, some in curves(results)
        for first, curve in some
        for _, point in curve.iterrows()
    ]
    if not rows:
        return []
    note = f"{NOTE} {flags.legend(results.cells[results.cells['open']])}".strip()
    return [Table(COLUMNS, rows, {1, 3, 4, 5, 6, 7, 8}), Text(note, "note")]


def _engine(results: Results, point: pd.Series) -> str:
    arrivals = "" if point["arrivals"] == "poisson" else point["arrivals"]
    parts = [part for part in (storage.setting(results, point), arrivals) if part]
    return f"{point['variant']}\n{', '.join(parts)}".strip()


def _cells(point: pd.Series) -> list[str]:
    return [
        units.of_unit("1/s")(point["due"]),
        *(_time(point, name) for name in PERCENTILES),
        figure_text.figure(units.bytes_per_second, point, storage.BYTES, True),
        figure_text.figure(storage.cores_per_gb, point, storage.CPU, False),
        "yes" if point["sustained"] else "no",
    ]


def _time(point: pd.Series, name: str) -> str:
    if point[name] != point[name]:
        return units.NOTHING
    if not point["sustained"]:
        return units.nanoseconds(point[name]) + flags.mark(point)
    return figure_text.figure(units.nanoseconds, point, name, False) + stability.mark(point, name)
