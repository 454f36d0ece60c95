"""The roofline: operations per second against operations per byte, with one panel per ladder and type."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ... import units
from ...load import Results
from ...plots.style import LIMIT_COLOUR, Drawing, log_axis, shared_legend
from .. import roofline
from ..details import PER_BYTE
from ..points import RATE
from .styles import MARKER, RUNG, grid, library_styles

NAME, TITLE = "kernels_roofline", "Roofline"
CAPTION = (
    "Grey lines are limits that were measured in the same run: horizontal, the arithmetic; sloped, memory, which for "
    "hot inputs is the L2 cache. Each byte "
    "of inputs and results counts once. Circles are rungs, with the number of their step; hollow markers are libraries. "
    "Values are medians of the repetitions."
)
ROOM = 3  # factor between the outermost points or the ridge and the edge of a panel
APART = 1.12  # factor between neighbouring labels


def draw(results: Results, narrow: bool) -> Drawing | None:
    """The figure; None if no point has both a rate and operations per byte."""
    found = {name: some.dropna(subset=[PER_BYTE]) for name, some in roofline.by_type(results).items()}
    found = {name: some for name, some in found.items() if len(some)}
    if not found:
        return None
    figure, axes = grid(len(found), narrow)
    looks = library_styles(name for some in found.values() for name in some.loc[some["step"] == 0, "rung"])
    for one, (name, some) in zip(axes, found.items()):
        _panel(one, results, some, looks)
        one.set_title(name, loc="left", fontsize=10.5)
    shared_legend(figure, axes, below=narrow)
    return Drawing(NAME, TITLE, CAPTION, figure)


def _panel(axes: Axes, results: Results, some: pd.DataFrame, looks: dict) -> None:
    axes.set(xscale="log", yscale="log", xlabel="operations per byte", ylabel="operations per second")
    known = roofline.roofs(results, some)
    slowest, fastest = min(known.memory.values(), default=math.nan), max(known.memory.values(), default=math.nan)
    ridges = [rate / slowest for rate in known.arithmetic.values() if slowest > 0]
    x = [*some[PER_BYTE], *ridges]
    left, right = min(x) / ROOM, max(x) * ROOM
    limit = {"color": LIMIT_COLOUR, "linewidth": 1.1, "zorder": 1, "label": "limit"}
    for place, (name, rate) in enumerate(sorted(known.arithmetic.items(), key=lambda one: -one[1])):
        begin = max(left, rate / fastest) if fastest > 0 else left
        axes.plot([begin, right], [rate, rate], **limit)
        _name(axes, units.words(name), (right, rate), (0, -11 if place else 4), "right")
    for place, (name, rate) in enumerate(known.memory.items() if known.arithmetic else ()):
        end = max(known.arithmetic.values()) / rate
        axes.plot([left, end], [left * rate, end * rate], **limit)
        middle = (left * end) ** 0.5
        _name(axes, units.words(name), (middle, middle * rate), (-7, 7) if place else (7, -7), "right" if place else "left")
    rungs, peers = some[some["step"] > 0], some[some["step"] == 0]
    axes.plot(rungs[PER_BYTE].to_numpy(), rungs[RATE].to_numpy(), MARKER, color=RUNG, markersize=5, label="rung")
    for name, points in peers.groupby("rung", sort=False):
        colour, marker, _ = looks[name]
        looks_of = {"marker": marker, "color": colour, "markerfacecolor": "none", "linestyle": "none", "label": name}
        axes.plot(points[PER_BYTE].to_numpy(), points[RATE].to_numpy(), **looks_of)
    axes.set_xlim(left, right)
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, some[RATE].min() / 10), high * 1.5)
    log_axis(axes.xaxis, units.number)
    log_axis(axes.yaxis, results.experiment.formatter(RATE))
    _labels(axes, rungs)


def _name(axes: Axes, name: str, at: tuple[float, float], away: tuple[int, int], side: str) -> None:
    """The name of a limit beside its line."""
    axes.annotate(name, at, away, textcoords="offset points", ha=side, fontsize=9, color=LIMIT_COLOUR)


def _labels(axes: Axes, rungs: pd.DataFrame) -> None:
    """The step beside each point; steps of almost equal points share a label."""
    for _, some in rungs.groupby(rungs[PER_BYTE].map("{:.3g}".format)):
        by_rate = some.groupby("step")[RATE].median().sort_values()
        groups: list[list[tuple[int, float]]] = []
        for step, rate in by_rate.items():
            if groups and rate < groups[-1][0][1] * APART:
                groups[-1].append((step, rate))
            else:
                groups.append([(step, rate)])
        for group in groups:
            text = ", ".join(f"{step:g}" for step in sorted(step for step, _ in group))
            at = (some[PER_BYTE].iloc[0], float(np.exp(np.mean([np.log(rate) for _, rate in group]))))
            axes.annotate(text, at, (6, 0), textcoords="offset points", va="center", fontsize=8)
