"""Percentiles of the response time against the offered rate, with one panel per task and block size."""

import textwrap

import pandas as pd
from matplotlib.axes import Axes

from ... import units
from ...load import Results
from ...plots.style import Drawing, log_axis, shared_legend, whiskers
from .. import points as storage
from .. import under_load
from .styles import MEDIANS, WRAP, grid, style

NAME, TITLE = "storage_load", "Latency against offered load"
CAPTION = (
    "The response time starts when a block is due, so it includes the time for which the block waits for a slow "
    "engine. Solid: p50; dashed: p99; dotted: p99.9, if there are ten samples beyond it. Hollow: the backlog grew in at least "
    f"one repetition, so the rate is not sustainable. {MEDIANS}"
)
DASHES = {"p50": "-", "p99": "--", "p999": ":"}


def draw(results: Results, narrow: bool) -> Drawing | None:
    """The figure; None without open loads."""
    found = under_load.curves(results)
    if not found:
        return None
    figure, axes = grid(len(found), narrow)
    for one, (task, curves) in zip(axes, found):
        one.set(xscale="log", yscale="log", xlabel="blocks due per second", ylabel="response time")
        several = len({first["variant"] for first, _ in curves}) < len(curves)
        for first, curve in curves:
            setting = f"\n{storage.setting(results, first)}" if several else ""
            _curve(one, curve, first["variant"] + setting)
        log_axis(one.xaxis, units.number)
        log_axis(one.yaxis, units.nanoseconds)
        one.set_title(textwrap.fill(task, WRAP), loc="left", fontsize=10.5)
    shared_legend(figure, axes, below=narrow)
    return Drawing(NAME, TITLE, CAPTION, figure)


def _curve(axes: Axes, curve: pd.DataFrame, label: str) -> None:
    looks = style(curve["engine"].iloc[0])
    bare = {"color": looks["color"]}
    for name, dash in DASHES.items():
        known = curve.dropna(subset=[name])
        axes.plot(known["due"].to_numpy(), known[name].to_numpy(), linestyle=dash, linewidth=1.4, **bare)
        for sustained, some in known.groupby("sustained"):
            face = {} if sustained or looks["marker"] == "x" else {"markerfacecolor": "white"}
            axes.plot(some["due"].to_numpy(), some[name].to_numpy(), linestyle="none", **looks, **face)
            for _, point in some.iterrows() if sustained else ():
                whiskers(axes, point, float(point["due"]), name, looks["color"])
    axes.plot([], [], linewidth=1.4, label=label, **looks)
