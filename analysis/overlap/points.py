"""Points for tables and figures: for each pipeline, the points at the setting at which most strategies were measured,
and the points that differ from them in one axis."""

import pandas as pd

from .. import stats
from ..load import Results

# From the worst strategy to the best, in the order of the experiment's page. Other strategies follow.
ORDER = (
    "serial", "two_stream", "ping_pong", "ring", "graph", "pdl", "persistent", "peer_copy", "peer_load",
)  # fmt: skip
PIPELINES = ("producer_consumer", "chain", "copy_process_copy")
EFFICIENCY, ALONE = "overlap_efficiency", "overlap_efficiency_alone"
_NO_SETTING = ("pipeline", "strategy")


def read(results: Results) -> pd.DataFrame:
    """The competing points, in the order of strategies."""
    found = stats.points(results)
    if found.empty:
        return found
    found = found[found["variant"].isin(results.contest)]
    return found.assign(place=found["strategy"].map(place)).sort_values(["place", "rank"], kind="stable")


def place(strategy: str) -> tuple[int, str]:
    return (ORDER.index(strategy) if strategy in ORDER else len(ORDER), strategy)


def own_axes(results: Results) -> list[str]:
    """The axes that belong to individual strategies."""
    known, strategies = results.experiment.axes, set(results.cells["strategy"])
    return [axis for axis in results.axes if axis in known and strategies & set(known[axis].owners)]


def setting_axes(results: Results) -> list[str]:
    """The axes that define the task; the other axes define the strategy and its settings."""
    own = own_axes(results)
    return [axis for axis in results.axes if axis not in (*_NO_SETTING, *own)]


def named_axes(results: Results) -> list[str]:
    """The setting axes that the prose mentions; the device is left out because the warning above names it."""
    return [axis for axis in setting_axes(results) if axis != "device"]


def pipelines(points: pd.DataFrame) -> list[str]:
    known = list(PIPELINES)
    found = set(points["pipeline"]) if len(points) else ()
    return sorted(found, key=lambda name: (known.index(name) if name in known else len(known), name))


def compared(results: Results, points: pd.DataFrame) -> pd.DataFrame:
    """The points of one pipeline at the setting that most strategies share, one point per strategy."""
    groups = _groups(points, ["machine", *setting_axes(results)])
    most = max(groups, key=lambda group: (group["strategy"].nunique(), len(group)))
    return standard(results, most)


def standard(results: Results, points: pd.DataFrame) -> pd.DataFrame:
    """For each strategy and setting, the point whose own axes have their default values, so that no strategy has more
    tries than another; if there is no such point, the fastest one."""
    usual = pd.Series(True, points.index)
    for axis in own_axes(results):
        known = results.experiment.axes[axis]
        usual &= (points[axis] == known.default) | (points[axis] == known.nothing)
    ranked = points.assign(usual=usual).sort_values(["usual", results.experiment.rate], ascending=False, kind="stable")
    setting = ["machine", "pipeline", *setting_axes(results)]
    found = ranked.drop_duplicates(["variant", *setting]).drop(columns="usual")
    return found.sort_values(["place", "rank", *setting], kind="stable")


def along(results: Results, points: pd.DataFrame, axis: str, moving: tuple[str, ...] = ()) -> pd.DataFrame:
    """The points of one pipeline that differ only in the axis and in the axes that move with it, one point per strategy
    and value. Of several such groups, returns the fullest. Empty if no strategy has two values. `serial` is left out,
    because its efficiency is 0 by definition."""
    points = points[points["strategy"] != "serial"]
    if points.empty or axis not in points:
        return points.iloc[:0]
    own = axis in own_axes(results)
    if own:
        points = points[[results.experiment.applies(axis, point) for point in points.to_dict("records")]]
    else:
        points = standard(results, points)
    fixed = [one for one in setting_axes(results) if one not in (axis, *moving)]
    groups = _groups(points, ["machine", *fixed])
    if not groups:
        return points.iloc[:0]
    steps = [_one_a_step(group, axis, list(moving)) for group in groups]
    fullest = max(steps, key=len)
    values = fullest.groupby("variant")[axis].transform("nunique")
    return fullest[values > 1]


def _one_a_step(group: pd.DataFrame, axis: str, moving: list[str]) -> pd.DataFrame:
    """At each value of the axis, the points with the combination of moving values that most strategies share."""
    kept = []
    for _, some in group.groupby(axis, sort=True):
        several = _groups(some, moving) if moving else [some]
        kept.append(max(several, key=lambda one: one["strategy"].nunique()))
    return pd.concat(kept).drop_duplicates(["variant", axis])


def _groups(points: pd.DataFrame, keys: list[str]) -> list[pd.DataFrame]:
    return [group for _, group in points.groupby(keys, sort=False, dropna=False)]
