"""Throughput against the cost in CPU, with one panel per task."""

import textwrap

from matplotlib.axes import Axes
import numpy as np

from ... import units
from ...load import Results
from ...plots.style import LIMIT_COLOUR, Drawing, log_axis, panels, shared_legend
from ..points import BYTES, CPU, GIB_IN_GB, Place
from .by_block import WRAP, by_task
from .styles import MEDIANS, style

NAME, TITLE = "storage_cpu", "Throughput against CPU cost"
CAPTION = (
    "The best place is at the top left: more bytes for less CPU time. Each engine is shown with its fastest setting, "
    "once for each block size. Along a grey line, rate times cost is the same number of cores. "
    f"{MEDIANS}"
)
CORES = (0.1, 1, 10, 100)


def draw(results: Results, narrow: bool) -> Drawing | None:
    """The figure; None if no row counts."""
    tasks = by_task(results)
    if not tasks:
        return None
    figure, axes = panels(len(tasks), 4.8, 4.4, narrow)
    for one, (task, places) in zip(axes, tasks.items()):
        _panel(one, places)
        one.set_title(textwrap.fill(task, WRAP), loc="left", fontsize=10.5)
    shared_legend(figure, axes, below=narrow)
    return Drawing(NAME, TITLE, CAPTION, figure)


def _panel(axes: Axes, places: list[Place]) -> None:
    axes.set(xscale="log", yscale="log", xlabel="cores per GB/s", ylabel="bytes per second")
    several = len(places) > 1
    for place in places:
        for point in sorted(place.ranked, key=lambda one: one["place"]):
            looks = style(point["engine"])
            at = (point[CPU] / GIB_IN_GB, point[BYTES])
            ends = [[[abs(point[name] - point[f"{name}_{end}"]) / unit] for end in ("low", "high")]
                    for name, unit in ((CPU, GIB_IN_GB), (BYTES, 1))]  # fmt: skip
            bars = {"color": looks["color"], "elinewidth": 1, "capsize": 2.5, "alpha": 0.6}
            axes.errorbar(*at, xerr=ends[0], yerr=ends[1], fmt="none", **bars)
            axes.plot(*at, linestyle="none", label=point["variant"], **looks)
            if several:
                axes.annotate(units.size(place.block), at, (5, 4), textcoords="offset points", fontsize=8)
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
            axes.annotate(label, (x[0], 1e9 * cores / x[0]), (3, -9), textcoords="offset points", fontsize=8, color=LIMIT_COLOUR)
    axes.set(xlim=(left, right), ylim=(low, high))
