"""How much slower side B of a trial of `feedrate ab` is by its own work, from sweeps of both sides' points.

The kernel's own time, from the GPU's clock, says how much was planted, independently of the rates and latencies by which
`ab` judges. A message that is alone waits for all of its kernel's time, so there the share is of the time per message; in
a full pipeline the kernel sets the rate, and the share is of the kernel's time.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from . import tables, units
from .document import Table, markdown_table
from .errors import BadInput
from .load import Results, load, require_alike

WORK = "flops_per_byte"
STAGE = "kernel_end"


def dose_text(folders: Sequence[str]) -> str:
    """The table of the planted shares. `folders` are result directories of side A and side B in turn; each pair has points
    of its own."""
    if len(folders) % 2:
        raise BadInput("DIR", ", ".join(folders), "is an odd number of directories", "side A and side B in turn")
    a, b = load(folders[0::2]), load(folders[1::2])
    require_alike([a, b])
    first, second = (", ".join(folders[n::2]) for n in (0, 1))
    axes = [axis for axis in a.axes if axis != WORK]
    sides = [_by_point(results, axes, folder) for results, folder in ((a, first), (b, second))]
    for folder, own, other in ((first, *sides), (second, *reversed(sides))):
        if alone := len(own.keys() - other.keys()):
            problem = f"has {alone} points that the other side lacks"
            raise BadInput("DIR", folder, problem, f"points that differ only in {WORK}")
    shown = [axis for axis in tables.varying(a, b) if axis != WORK]
    columns = [a.experiment.what, *(tables.name(a, axis) for axis in shown)]
    columns += ["kernel, A", "kernel, B", "planted", "time per message, A", "time per message, B"]
    lines = []
    for point in sides[0]:
        one, two = (side[point] for side in sides)
        kernels = [_kernel_ns(rows, folder) for rows, folder in ((one, first), (two, second))]
        periods = [1e9 / float(rows["messages_per_second"].median()) for rows in (one, two)]
        added = kernels[1] - kernels[0]
        alone = one.iloc[0]["window"] == 1
        planted = added / periods[0] if alone else added / kernels[0]
        labels = [tables.value_label(a, axis, one.iloc[0][axis]) for axis in shown]
        times = [[units.nanoseconds(time) for time in pair] for pair in (kernels, periods)]
        lines.append([one.iloc[0]["variant"], *labels, *times[0], units.percent(planted), *times[1]])
    count = min(len(rows) for side in sides for rows in side.values())
    machine = a.environments[0].get("gpu") or a.environments[0].get("cpu")
    note = (
        f"Medians of at least {count} repetitions. “Kernel”: the mean time from the kernel's start to its end, by the GPU's "
        "clock. “Planted”: what B's kernel takes longer, as a share of the time per message if messages are alone, else of "
        "the kernel's time. Less than that arrives in the time per message where something else hides it. "
        f"{machine}, revision {a.environments[0].get('revision')}"
    )
    return f"{markdown_table(Table(columns, lines, set(range(1, len(columns)))))}\n\n{note}"


def _by_point(results: Results, axes: list[str], folder: str) -> dict[tuple, pd.DataFrame]:
    if WORK not in results.cells:
        raise BadInput("DIR", folder, f"has no axis {WORK}", "a sweep of ab_dose")
    known = [axis for axis in axes if axis in results.cells]
    found = dict(iter(results.counted.groupby(known, sort=False, dropna=False)))
    if any(rows[WORK].nunique() > 1 for rows in found.values()):
        raise BadInput("DIR", folder, f"has several values of {WORK} at one point", "one amount of work per point")
    return found


def _kernel_ns(rows: pd.DataFrame, folder: str) -> float:
    times = [stages[STAGE]["mean"] for stages in rows["stages"] if stages and STAGE in stages]
    if not times:
        raise BadInput("DIR", folder, f"has no stage {STAGE} of {rows.iloc[0]['variant']}", "rows with stage times")
    return float(np.median(times))
