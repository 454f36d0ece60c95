"""Latency against offered load, up to the saturation of each queue."""

import pandas as pd

from ... import units
from ...load import Results
from ...plots.style import Drawing, log_axis
from .. import open_load
from .styles import Styles, by_variant, error_bars

NAME, TITLE = "offered_load", "Latency against offered load up to saturation"
LATE = "#000000"  # crosses on points with a late generator
CAPTION = (
    "Response time starts when a message was due, not when it was sent, so it includes the time that messages wait for "
    "a slow queue (no coordinated omission). Markers are medians of the repetitions, and whiskers are their 95 % "
    "intervals. Hollow: the backlog grew in at least one repetition, so the rate is not sustainable, and the latency "
    "only reflects how long the phase was. Dash-dotted vertical line: the plateau, which is the rate of results at the "
    "first such rate. A variant with several settings is shown with the one that sustains the highest rate."
)
CROSSED = (
    " A cross: the generator itself was late in at least one repetition ({} of {} rows); the time includes its lag."
)


def draw(results: Results, styles: Styles) -> Drawing | None:
    measured = open_load.curves(open_load.points(results))
    if measured.empty:
        return None
    tasks = list(measured["task"].unique())
    figure, panels = styles.figure(12, 0.6 + 4.3 * len(tasks), rows=len(tasks), columns=2, sharey="row")
    for row, task in enumerate(tasks):
        chosen = measured[measured["task"] == task]
        for axes, metric in zip(panels[2 * row :], ("p50", "p99")):
            axes.set(xscale="log", yscale="log", xlabel="messages due per second")
            axes.set_xlim(chosen["rate"].min() / 1.5, chosen["rate"].max() * 1.5)  # leaves room around a single rate
            for variant, points in by_variant(chosen):
                _curve(axes, points.sort_values("rate"), metric, styles.line(variant))
            log_axis(axes.xaxis, units.number)
            log_axis(axes.yaxis, units.nanoseconds)
            axes.set_title(f"{task}: {metric}", loc="left")
        panels[2 * row].set_ylabel("response time")
    styles.legend(figure, panels)
    late, rows = int(measured["generator"].sum()), int(measured["repetitions"].sum())
    return Drawing(NAME, TITLE, CAPTION + (CROSSED.format(late, rows) if late else ""), figure)


def _curve(axes, curve: pd.DataFrame, metric: str, style: dict) -> None:
    kept, beyond = (curve[curve["state"] == state] for state in (open_load.SUSTAINED, open_load.UNSUSTAINABLE))
    late = curve[curve["generator"] > 0]
    bare = {name: style[name] for name in ("color", "alpha")}
    axes.plot(curve["rate"], curve[metric], linestyle=style["linestyle"], linewidth=1.5, **bare)
    for some, face in ((kept, style["color"]), (beyond, "white")):
        error_bars(axes, some, "rate", metric, fmt="none", color=style["color"], alpha=0.6)
        axes.plot(some["rate"], some[metric], style["marker"], markerfacecolor=face, **bare)
    axes.plot(late["rate"], late[metric], "x", color=LATE, markersize=5, zorder=4)
    axes.plot([], [], markersize=6, **style | {"fillstyle": "full"})  # legend entry, independent of the states
    first = open_load.plateau(curve)
    if first is not None:
        axes.axvline(first["messages_per_second"], linestyle=(0, (9, 2, 1, 2)), linewidth=0.9, zorder=0, **bare)
