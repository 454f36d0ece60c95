"""The share of the possible overlap that each strategy reaches, with one panel per pipeline."""

import pandas as pd
from matplotlib.axes import Axes

from ... import tables
from ...load import Results
from ...plots.style import Drawing, panels
from .. import points as overlap
from .. import strategies
from .styles import EDGE, LEAST, OTHER, STYLES, clipped, reach

NAME, TITLE = "overlap_strategies", "Overlap efficiency by strategy"
# Column, distance from the middle of the line, and whether the marker is filled.
KINDS = ((overlap.EFFICIENCY, 0.13, True), (overlap.ALONE, -0.13, False))


def draw(results: Results, narrow: bool) -> Drawing | None:
    measured = overlap.read(results)
    names = overlap.pipelines(measured)
    if not names:
        return None
    shared = {name: overlap.compared(results, measured[measured["pipeline"] == name]) for name in names}
    most = max(len(points) for points in shared.values())
    figure, axes = panels(len(names), 4.6, 1.4 + 0.5 * most, narrow)
    for one, (name, points) in zip(axes, shared.items()):
        _panel(one, results, points)
        one.set_ylim(most - 0.4, -0.6)
        shown = [axis for axis in overlap.named_axes(results) if axis not in ("items", "stage_blocks")]
        one.set_title(f"{name}\n{tables.place(results, points.iloc[0], shown)}", loc="left", fontsize=10.5)
    return Drawing(NAME, TITLE, CAPTION, figure)


CAPTION = (
    "Overlap efficiency is the share of the possible saving in time that a strategy reaches: 0 is serial, 1 is the "
    "entire saving (lines). Filled: the possible saving is computed from the stages' times when they run concurrently; "
    "hollow: from their times when they run alone. Markers are medians of the repetitions; lines through the markers "
    "are 95 % intervals. Strategies with a depth have the default depth. Values below "
    f"{LEAST:g} are drawn at {LEAST:g} and labelled with their value."
)


def _panel(axes: Axes, results: Results, points: pd.DataFrame) -> None:
    for place, (_, point) in enumerate(points.iterrows()):
        colour, marker = STYLES.get(point["strategy"], OTHER)
        for column, shift, filled in KINDS:
            value, y = point[column], place - shift  # the y axis is inverted: the first strategy is at the top
            if value != value:
                if strategies.nothing_to_save(results, point, column)[1]:
                    axes.annotate("nothing to save", (0, y), (4, 0), textcoords="offset points", va="center", fontsize=8)
                continue
            axes.plot(clipped(reach(point, column)), [y, y], color=colour, linewidth=1)
            face = {} if filled or marker == "x" else {"markerfacecolor": "white"}
            at = clipped([value])
            axes.plot(at, [y], marker=marker if value >= LEAST else "<", color=colour, **face)
            if filled or value < LEAST:
                axes.annotate(f"{value:.2f}", (at[0], y), (0, 4), textcoords="offset points", ha="center", fontsize=8)
    for edge in (0, 1):
        axes.axvline(edge, color=EDGE, linewidth=0.9, zorder=1)
    axes.set_xlim(min(-0.1, axes.get_xlim()[0]), max(1.15, axes.get_xlim()[1]))
    axes.set_yticks(range(len(points)), points["variant"])
    axes.set_xlabel("overlap efficiency")
    axes.grid(axis="y", visible=False)
