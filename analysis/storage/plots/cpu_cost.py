"""Throughput against the cost in CPU, with one panel per task."""

import textwrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ... import units
from ...load import Results
from ...plots.style import LIMIT_COLOUR, Drawing, log_axis, shared_legend, whiskers
from ..points import BYTES, CPU, GIB_IN_GB, Place
from .by_block import by_task
from .styles import MEDIANS, WRAP, grid, style

NAME, TITLE = "storage_cpu", "Throughput against CPU cost"
CAPTION = (
    "The best place is at the top left: more bytes for less CPU time. Each engine is shown with its fastest setting, "
    "once for each block size; larger markers are larger blocks. Along a grey line, rate times cost "
    f"is the same number of cores. {MEDIANS}"
)
CORES = (0.1, 1, 10, 100)
SMALLEST, STEP = 5, 2.5  # marker sizes in points


def draw(results: Results, narrow: bool) -> Drawing | None:
    """The figure; None if no row counts."""
    tasks = by_task(results)
    if not tasks:
        return None
    figure, axes = grid(len(tasks), narrow)
    for one, (task, places) in zip(axes, tasks.items()):
        _panel(one, places)
        one.set_title(textwrap.fill(task, WRAP), loc="left", fontsize=10.5)
    shared_legend(figure, axes, below=narrow)
    return Drawing(NAME, TITLE, CAPTION, figure)


def _panel(axes: Axes, places: list[Place]) -> None:
    axes.set(xscale="log", yscale="log", xlabel="cores per GB/s", ylabel="bytes per second")
    points = pd.DataFrame([point for place in places for point in place.ranked])
    sizes = {block: SMALLEST + STEP * rank for rank, block in enumerate(sorted(points["block_bytes"].unique()))}
    points = points.assign(cores=points[CPU] / GIB_IN_GB).sort_values(["place", "block_bytes"], kind="stable")
    for end in ("_low", "_high"):
        points[f"cores{end}"] = points[f"{CPU}{end}"] / GIB_IN_GB
    for variant, line in points.groupby("variant", sort=False):
        looks = style(line["engine"].iloc[0])
        axes.plot(line["cores"].to_numpy(), line[BYTES].to_numpy(), color=looks["color"], linewidth=0.8)
        for _, point in line.iterrows():
            at = (point["cores"], point[BYTES])
            axes.plot(*at, linestyle="none", label=variant, markersize=sizes[point["block_bytes"]], **looks)
            whiskers(axes, point, "cores", BYTES, looks["color"])
    _core_lines(axes)
    log_axis(axes.xaxis, units.ratio)
    log_axis(axes.yaxis, units.bytes_per_second)


def _core_lines(axes: Axes) -> None:
    """Draws lines of equal cores inside the panel, without changing its limits."""
    left, right = axes.get_xlim()
    low, high = axes.get_ylim()
    for cores in CORES:
        x = np.array([max(left, 1e9 * cores / high), min(right, 1e9 * cores / low)])
        if x[0] < x[1]:
            axes.plot(x, 1e9 * cores / x, color=LIMIT_COLOUR, linewidth=0.8, linestyle=(0, (1, 1.5)), zorder=1)
            label = f"{cores:g} core{'' if cores == 1 else 's'}"
            beside = {"xytext": (3, -9), "textcoords": "offset points"}
            axes.annotate(label, (x[0], 1e9 * cores / x[0]), fontsize=8, color=LIMIT_COLOUR, **beside)
    axes.set(xlim=(left, right), ylim=(low, high))
