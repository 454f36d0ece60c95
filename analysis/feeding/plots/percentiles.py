"""Percentiles of response time and service time under open load, for all variants at one rate."""

import numpy as np

from ... import units
from ...histogram import Histogram, merge
from ...load import Results
from ...plots.style import Drawing, log_axis
from .. import open_load
from .distribution import band, percentile_axis
from .styles import Styles

NAME, TITLE = "percentiles", "Percentiles at one offered rate"
LAST = 1e4  # curves end where one message in this many is slower: p99.99
TAIL = 10  # a percentile is shown only if at least this many samples are slower
CAPTION = (
    "Solid: response time, from when a message was due. Dashed: service time, from when it was sent; the difference is "
    "the wait until the queue accepted it. The rate is the highest of those that most variants sustain. Each line "
    "combines the n samples of all repetitions; the shade spans the lowest to the highest repetition's response time. "
    f"A line ends if fewer than {TAIL} samples are slower, or at p99.99."
)


def draw(results: Results, styles: Styles) -> Drawing | None:
    measured = open_load.curves(open_load.points(results))
    tasks = measured.groupby("task", sort=False)
    chosen = {task: points for task, curves in tasks if len(points := open_load.comparable(curves))}
    if not chosen:
        return None
    columns = min(2, len(chosen))
    rows = -(-len(chosen) // columns)
    figure, panels = styles.figure(1 + 5.8 * columns, 0.6 + 4.8 * rows, rows=rows, columns=columns)
    for axes, (task, points) in zip(panels, chosen.items()):
        for _, point in points.sort_values("rank").iterrows():
            _variant(axes, results, point, styles.line(point["variant"]))
        of = measured.loc[measured["task"] == task, "variant"].nunique()
        sustained = f", sustained by {len(points)} of {of}" if len(points) < of else ""
        _finish(axes, f"{task}\n{units.messages_per_second(points['rate'].median())} due{sustained}")
    for axes in panels[len(chosen) :]:
        axes.set_axis_off()
    return Drawing(NAME, TITLE, CAPTION, figure)


def _variant(axes, results: Results, point, style: dict) -> None:
    cells = results.cells.loc[point["members"]]
    response = [Histogram.from_row(row) for row in cells["histogram"] if isinstance(row, dict)]
    service = [
        Histogram.from_row(one["service_ns"]["histogram"]) for one in cells["distributions"] if "service_ns" in one
    ]
    if response:
        merged = merge(response)
        band(axes, response, style["color"], min(LAST, merged.total / TAIL))
        solid = style | {"linestyle": "-", "label": f"{style['label']}, n = {units.number(merged.total)}"}
        axes.plot(*supported(merged), markersize=5, markevery=0.15, drawstyle="steps-pre", **solid)
    if service:
        dashed = {"linestyle": (0, (4, 2)), "linewidth": 1.2, "color": style["color"], "alpha": style["alpha"]}
        axes.plot(*supported(merge(service)), drawstyle="steps-pre", **dashed)


def supported(histogram: Histogram) -> tuple[np.ndarray, np.ndarray]:
    """The percentile curve (x: one message in x is slower; y: ns), as far as enough samples support it."""
    end = min(LAST, histogram.total / TAIL)
    x, y = histogram.curve()
    inside = x <= end
    if end < 1:
        return x[:0], y[:0]
    return np.append(x[inside], end), np.append(y[inside], histogram.percentile(100 * (1 - 1 / end)))


def _finish(axes, title: str) -> None:
    axes.set(yscale="log", ylabel="latency")
    percentile_axis(axes, left=1, right=LAST)
    log_axis(axes.yaxis, units.nanoseconds)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** 0.25)  # room for the legend
    axes.legend(loc="upper left", fontsize=9, handlelength=3)
    axes.set_title(title, loc="left")
