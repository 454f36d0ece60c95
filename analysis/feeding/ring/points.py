"""The points behind the ring's tables and plots, and the metrics that these show."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pandas as pd

from ... import figure_text, stats, units
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
DEFAULTS = UNSET | {"in_order", "spin"}  # values that the prose leaves out
SECTION = Section(names=NAMES, value_labels=SAID)
# The axes that the prose leaves out, because a directory has only one value of each.
FIXED = ("queue", "workload", "device", "flops_per_byte")
# The other axes, in the order in which the prose mentions them.
NAMED = (
    *("payload_bytes", "transfer", "producers", "window", "batch", "pack", "workers", "streams"),
    *("lanes", "notify", "pollers", "mirrors", "granularity", "slots", "results", "ring_idle"),
    *("slot_bytes", "capacity", "block"),
)


@dataclass(frozen=True)
class Metric:
    column: str
    formatter: Callable
    larger: bool  # is better
    suffix: str  # suffix of a list of values in a table
    label: str  # label of a plot's axis
    tick: Callable  # the formatter of that axis

    def cell(self, point) -> str:
        return self.formatted(point, self.formatter)

    def formatted(self, point, formatter: Callable) -> str:
        """'226 M msg/s', or '≥226 M msg/s' if the load generator was the limit."""
        return figure_text.sign(point, self.larger) + formatter(point[self.column])


RATE = Metric(
    "messages_per_second", units.messages_per_second, True, "", "verified messages per second", units.number
)
BYTES = Metric(
    "bytes_per_second", units.bytes_per_second, True, "", "payload bytes per second, one way", units.bytes_per_second
)
P50 = Metric("p50", units.nanoseconds, False, " p50", "p50 latency", units.nanoseconds)
P99 = Metric("p99", units.nanoseconds, False, " p99", "p99 latency", units.nanoseconds)


def read(results: Results) -> pd.DataFrame:
    """The points of the main workload and device that count, with the settings in effect (`settings`, by axis), the
    limits of the same run, and the number of repetitions that ran."""
    if results.cells["machine"].nunique() > 1:
        raise BadInput(
            "DIR", ", ".join(map(str, results.directories)), "has rows of several machines", "rows of one machine"
        )
    results = results.closed
    found = stats.points(results)
    found = found[found["device"] == ("cuda" if (found["device"] == "cuda").any() else "cpu")]
    found = found[found["work"] == stats.main_work(found)] if len(found) else found
    experiment, every = results.experiment, found.to_dict("records")
    lacking = [axis for axis in (*FIXED, *NAMED) if axis not in found]
    found = found.assign(**{axis: [experiment.missing(axis, point) for point in every] for axis in lacking})
    rows = results.cells.loc[[members[0] for members in found["members"]], ["chosen", "limits"]].to_dict("list")
    ran = results.cells.groupby(results.axes, dropna=False).size().to_dict()
    return found.assign(
        ran=[ran[point] for point in found[results.axes].itertuples(index=False, name=None)],
        limits=rows["limits"],
        settings=[_settings(*one) for one in zip(found.to_dict("records"), rows["chosen"])],
    )


def _settings(point: dict, chosen: dict) -> dict:
    """The effective values of the point's axes: the queue's choice if a value was left to the queue. One mirror counts
    as none."""
    values = {}
    for axis in NAMED:
        value, own = point[axis], chosen.get(axis)
        values[axis] = value if own is None or value not in UNSET else int(own) if own.isdigit() else own
    return values | {"mirrors": 0 if values["mirrors"] == 1 else values["mirrors"]}


def of_ring(points: pd.DataFrame) -> pd.DataFrame:
    return points[points["queue"] == "gpu_ring"]


def many(points: pd.DataFrame) -> pd.DataFrame:
    """The points with several messages in flight."""
    return points[points["window"] > 1]


def lone(points: pd.DataFrame) -> pd.DataFrame:
    """The points with one message in flight."""
    return points[(points["window"] == 1) & (points["producers"] == 1)]


def using(points: pd.DataFrame, axis: str, value) -> pd.DataFrame:
    """The points with this value in effect."""
    return points[points["settings"].map(lambda settings: settings[axis] == value).astype(bool)]


def used(points: pd.DataFrame, axis: str) -> list:
    """The effective values of an axis, in order."""
    return sorted({settings[axis] for settings in points["settings"]}, key=sort_key(axis))


def best(points: pd.DataFrame, metric: Metric) -> pd.Series | None:
    """The point with the best value of the metric; None if there are no points."""
    values = points[metric.column].dropna()
    if values.empty:
        return None
    return points.loc[values.idxmax() if metric.larger else values.idxmin()]


def common(settings: Iterable[dict]) -> dict:
    """The entries that all of the settings share."""
    first, *rest = settings
    return {axis: value for axis, value in first.items() if all(axis in one and one[axis] == value for one in rest)}


def wording(settings: dict, leave_out: Iterable[str] = ()) -> str:
    """Settings in words, in a fixed order; for a lone message the window is left out."""
    unnamed = {*leave_out, *(("producers", "window", "batch", "lanes") if settings.get("window") == 1 else ())}
    named = [axis for axis in NAMED if axis in settings and axis not in unnamed and settings[axis] not in DEFAULTS]
    words = [axis_value_label(SECTION, NAMES.get(axis, axis), axis, settings[axis]) for axis in named]
    return ", ".join(words).replace("notify ", "by ")


def sort_key(axis: str | None):
    order = ORDER.get(axis, ())
    return lambda value: (order.index(value), 0) if value in order else (len(order), value)


def ladder(points: pd.DataFrame, axes: tuple[str, ...], metric: Metric) -> pd.DataFrame:
    """The points that differ only in these axes, in the order of the first. Of several such groups, returns the one
    with the most values and, among equals, the best. Empty if no two values of the first axis were measured."""
    first = axes[0]
    points = points.dropna(subset=[metric.column])
    points = points[~points[list(axes)].isin(UNSET).any(axis=1)]
    others = [axis for axis in (*FIXED, *NAMED) if axis not in axes]
    groups = [group for _, group in points.groupby(others, sort=False, dropna=False) if group[first].nunique() > 1]
    if not groups:
        return points.iloc[:0]
    sign = 1 if metric.larger else -1
    fullest = max(groups, key=lambda group: (len(group), (sign * group[metric.column]).max()))
    return fullest.sort_values(first, key=lambda column: column.map(sort_key(first)))
