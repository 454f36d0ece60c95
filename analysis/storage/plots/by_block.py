"""The bandwidth of each engine by block size, with the limits, and with one panel per task."""

import math
import textwrap

import pandas as pd
from matplotlib.axes import Axes

from ... import units
from ...load import Results
from ...plots.style import LIMIT_COLOUR, Drawing, log_axis, shared_legend, value_axis, whiskers
from .. import limits
from .. import points as storage
from ..points import BYTES, Place
from .styles import MEDIANS, WRAP, grid, style

NAME, TITLE = "storage_by_block", "Bandwidth by block size"
CAPTION = (
    "Each engine is shown with its fastest setting. Grey lines are limits: the drive with fio's job of the same block "
    f"size, depth and threads, and the copy engine. {MEDIANS}"
)
LIMITS = (("fio", limits.fio, (0, (6, 2)), "_"), ("copy engine", limits.link, (0, (1, 1.5)), "+"))


def draw(results: Results, narrow: bool) -> Drawing | None:
    """The figure; None if no row counts."""
    tasks = by_task(results)
    if not tasks:
        return None
    figure, axes = grid(len(tasks), narrow)
    for one, (task, places) in zip(axes, tasks.items()):
        one.set_yscale("log")
        _panel(one, results, places)
        log_axis(one.yaxis, units.bytes_per_second)
        one.set_ylabel("bytes per second")
        one.set_title(textwrap.fill(task, WRAP), loc="left", fontsize=10.5)
    shared_legend(figure, axes, below=narrow)
    return Drawing(NAME, TITLE, CAPTION, figure)


def by_task(results: Results) -> dict[str, list[Place]]:
    """The places of each task, by block size."""
    tasks: dict[str, list[Place]] = {}
    for place in storage.places(results):
        tasks.setdefault(place.task, []).append(place)
    return tasks


def _panel(axes: Axes, results: Results, places: list[Place]) -> None:
    points = pd.DataFrame([point for place in places for point in place.ranked])
    for variant, line in points.sort_values(["place", "block_bytes"]).groupby("variant", sort=False):
        looks = style(line["engine"].iloc[0])
        axes.plot(line["block_bytes"].to_numpy(), line[BYTES].to_numpy(), label=variant, linewidth=1.5, **looks)
        for _, point in line.iterrows():
            whiskers(axes, point, float(point["block_bytes"]), BYTES, looks["color"])
    for name, limit, dash, marker in LIMITS:
        values = {place.block: value for place in places if not math.isnan(value := limit(results, place.best))}
        if values:
            looks = {"color": LIMIT_COLOUR, "linestyle": dash, "linewidth": 1.1, "zorder": 1}
            looks |= {"marker": marker, "markersize": 12, "label": f"limit: {name}"}
            axes.plot(list(values), list(values.values()), **looks)
    value_axis(axes, points["block_bytes"], units.size, "block")
    if points["block_bytes"].nunique() == 1:  # room around a single value
        axes.set_xlim(points["block_bytes"].iloc[0] / 2, points["block_bytes"].iloc[0] * 2)
