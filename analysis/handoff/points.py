"""Points for tables and figures. They differ only in way, size and use."""

import pandas as pd

from .. import stats
from ..load import Results

# In the order of the experiment's page, from the most copies to none. Other ways follow.
ORDER = (
    "redis_value", "shm_copy", "shm_pinned", "ipc_vmm", "ipc_pool", "ipc_legacy", "ipc_memfd", "store",
)  # fmt: skip
USES = ("cached", "first")
TIME, START, RATE = "p50", "to_start_p50", "bytes_per_second"  # columns; `p50` is the p50 of the main time
_NO_SETTING = ("way", "bytes", "use", "to", "reach")


def read(results: Results, to: str = "same") -> pd.DataFrame:
    """The competing points in the order of ways; empty if the catalogue has no figures. `to`: the device on which the
    readers compute; times with two GPUs are not comparable with those of one."""
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
    """The axes that must be equal for a comparison of ways at one size and use."""
    return [axis for axis in results.axes if axis not in _NO_SETTING]


def named_axes(results: Results) -> list[str]:
    """The setting axes that the prose mentions; the device is left out because the warning above names it."""
    return [axis for axis in setting_axes(results) if axis != "device"]


def compared(results: Results, points: pd.DataFrame) -> pd.DataFrame:
    """The points at the setting with the most points; among equals, the one with the fewest tensors and readers."""
    return fullest(points, ["machine", *setting_axes(results)])


def fullest(points: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The largest group of points with equal keys; among equally large groups, the first in the keys' order."""
    return max((group for _, group in points.groupby(keys, sort=True, dropna=False)), key=len, default=points)


def beside(results: Results, some: pd.DataFrame) -> pd.DataFrame:
    """All cells at the setting of these points, including those that do not count."""
    keys = ["machine", "to", *setting_axes(results)]
    return results.cells[(results.cells[keys] == some.iloc[0][keys]).all(axis=1)]
