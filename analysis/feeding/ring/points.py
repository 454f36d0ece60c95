"""The points behind the ring's tables and figures."""

import pandas as pd

from ... import stats
from ...errors import BadInput
from ...load import Results
from ...sections import Section
from ...tables import axis_value_label
from ..details import NAMES, SAID

# Axes whose values have a fixed order.
ORDER = {
    "granularity": ("thread", "warp", "block"),
    "notify": ("counter", "flags"),
    "slots": ("pinned", "vram"),
    "results": ("in_order", "as_finished"),
    "ring_idle": ("spin", "backoff", "park"),
}
UNSET = {0, "none", "auto"}  # not swept: the queue chose the value, or the axis does not apply
SPOKEN = Section(names=NAMES, value_labels=SAID)
UNSAID = UNSET | {"in_order", "spin"}  # defaults of the ring, which texts leave out
WHO = ("queue", "workload", "device", "flops_per_byte")
# In the order in which texts describe a point. Workload, device and intensity are the same for all.
TOLD = (
    *("payload_bytes", "transfer", "producers", "window", "batch", "pack", "workers", "streams"),
    *("lanes", "notify", "pollers", "mirrors", "granularity", "slots", "results", "ring_idle"),
    *("slot_bytes", "capacity", "block"),
)


def read(results: Results) -> pd.DataFrame:
    """The points of the main workload and device that count, with the values that the queue chose, the limits of the
    same run, and the number of repetitions that ran."""
    if results.cells["machine"].nunique() > 1:
        raise BadInput(
            "DIR", ", ".join(map(str, results.directories)), "has rows of several machines", "rows of one machine"
        )
    results = results.closed
    found = stats.points(results)
    if found.empty:
        return found
    found = found[found["device"] == ("cuda" if (found["device"] == "cuda").any() else "cpu")]
    found = found[found["work"] == stats.main_work(found)]
    experiment, every = results.experiment, found.to_dict("records")
    lacking = {
        axis: [experiment.missing(axis, point) for point in every] for axis in (*WHO, *TOLD) if axis not in found
    }
    first = [members[0] for members in found["members"]]
    ran = results.cells.groupby(results.axes, dropna=False).size().to_dict()
    return found.assign(
        **lacking,
        ran=[ran[point] for point in found[results.axes].itertuples(index=False, name=None)],
        chosen=list(results.cells.loc[first, "chosen"]),
        limits=list(results.cells.loc[first, "limits"]),
    )


def of_ring(points: pd.DataFrame) -> pd.DataFrame:
    return points[points["queue"] == "gpu_ring"] if len(points) else points


def many(points: pd.DataFrame) -> pd.DataFrame:
    """The points with several messages in flight."""
    return points[points["window"] > 1] if len(points) else points


def lone(points: pd.DataFrame) -> pd.DataFrame:
    """The points with one message in flight."""
    return points[(points["window"] == 1) & (points["producers"] == 1)] if len(points) else points


def best(points: pd.DataFrame, metric: str, largest: bool = True) -> pd.Series | None:
    """The point with the highest (or lowest) value of the metric; None if there are no points."""
    values = points[metric].dropna() if len(points) else ()
    if not len(values):
        return None
    return points.loc[values.idxmax() if largest else values.idxmin()]


def used(point, axis: str):
    """The value of an axis in effect: the queue's choice if the value was left to the queue."""
    value, chosen = point[axis], point["chosen"].get(axis)
    if chosen is None or value not in UNSET:
        return value
    return int(chosen) if chosen.isdigit() else chosen


def using(points: pd.DataFrame, axis: str, value) -> pd.DataFrame:
    return points[[used(point, axis) == value for _, point in points.iterrows()]] if len(points) else points


def told(point) -> dict:
    """A point's axes with the values in effect; one mirror counts as none."""
    values = {axis: used(point, axis) for axis in TOLD}
    return values | {"mirrors": 0 if values["mirrors"] == 1 else values["mirrors"]}


def said(values: dict, leave_out: tuple[str, ...] = ()) -> str:
    """Axes and values in words, in a fixed order; the text for a lone message leaves out the window."""
    shown = [axis for axis in TOLD if axis in values and axis not in leave_out]
    if values.get("window") == 1:
        shown = [axis for axis in shown if axis not in ("producers", "window", "batch", "lanes")]
    told = [axis for axis in shown if values[axis] not in UNSAID]
    words = [axis_value_label(SPOKEN, NAMES.get(axis, axis), axis, values[axis]) for axis in told]
    return ", ".join(words).replace("notify ", "by ")


def sort_key(axis: str):
    order = ORDER.get(axis, ())
    return lambda value: (order.index(value), 0) if value in order else (len(order), value)


def ladder(points: pd.DataFrame, axis: str, metric: str, largest: bool = True) -> pd.DataFrame:
    """The points that differ only in the axis. Of several such groups, returns the one with the most values and, among
    equals, the best. Empty if no two values were measured."""
    return alike(points, (axis,), metric, largest)


def alike(points: pd.DataFrame, axes: tuple[str, ...], metric: str, largest: bool = True) -> pd.DataFrame:
    """A ladder along several axes at once, in the order of the first."""
    first = axes[0]
    points = points.dropna(subset=[metric]) if len(points) else points
    if points.empty:
        return points
    points = points[~points[list(axes)].isin(UNSET).any(axis=1)]
    others = [name for name in (*WHO, *TOLD) if name not in axes]
    groups = [group for _, group in points.groupby(others, sort=False, dropna=False) if group[first].nunique() > 1]
    if not groups:
        return points.iloc[:0]
    sign = 1 if largest else -1
    fullest = max(groups, key=lambda group: (len(group), (sign * group[metric]).max()))
    return fullest.sort_values(first, key=lambda column: column.map(sort_key(first)))
