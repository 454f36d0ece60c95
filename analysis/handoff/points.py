"""The points that tables and figures are made of: those that differ in the way, the size and the use alone."""

import pandas as pd

from .. import stats
from ..load import Results

# As the page beside the experiment has them, from the most copies to none. Others follow.
ORDER = (
    "redis_value", "shm_copy", "shm_pinned", "ipc_vmm", "ipc_pool", "ipc_legacy", "ipc_memfd", "store",
)  # fmt: skip
USES = ("cached", "first")
TIME, START, RATE = "p50", "to_start_p50", "bytes_per_second"  # columns; `p50` is that of the main time
_NO_SETTING = ("way", "bytes", "use", "to", "reach")


def read(results: Results, to: str = "same") -> pd.DataFrame:
    """The points that compete, the ways in order; none where the catalogue tells no figures. `to`: where the readers
    compute; times of two GPUs say nothing of those of one."""
    found = stats.points(results)
    if found.empty or TIME not in found:
        return found.iloc[:0]
    found = found[found["variant"].isin(results.contest) & (found["to"] == to) & found[TIME].notna()]
    return found.assign(place=found["way"].map(place)).sort_values(["place", "rank"], kind="stable")


def place(way: str) -> tuple[int, str]:
    return (ORDER.index(way) if way in ORDER else len(ORDER), way)


def use_place(use: str) -> tuple[int, str]:
    return (USES.index(use) if use in USES else len(USES), use)


def setting_axes(results: Results) -> list[str]:
    """The axes that must be equal where ways are compared at one size and use."""
    return [axis for axis in results.axes if axis not in _NO_SETTING]


def told_axes(results: Results) -> list[str]:
    """Those of them that a text names: which device it was says the warning above."""
    return [axis for axis in setting_axes(results) if axis != "device"]


def compared(results: Results, points: pd.DataFrame) -> pd.DataFrame:
    """The points at the setting at which most was measured; of equal ones that of the fewest tensors and readers."""
    return fullest(points, ["machine", *setting_axes(results)])


def fullest(points: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The largest group of points with equal keys, of equal ones the first in the keys' order."""
    return max((group for _, group in points.groupby(keys, sort=True, dropna=False)), key=len, default=points)


def beside(results: Results, some: pd.DataFrame) -> pd.DataFrame:
    """All cells at the setting of these points, also those that do not count."""
    keys = ["machine", "to", *setting_axes(results)]
    return results.cells[(results.cells[keys] == some.iloc[0][keys]).all(axis=1)]
