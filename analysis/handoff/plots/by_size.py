"""The hand-off time, and the time until the kernel could start, against the size, with one panel per use."""

import textwrap
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes

from ... import tables, units
from ...load import Results
from ...plots.style import LIMIT_COLOUR, Drawing, log_axis, panels, shared_legend, value_axis
from .. import points as handoff
from .styles import lines

DASHES = ((0, (6, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
LABEL = 26  # maximum characters of a legend's line
MEDIANS = "Markers are medians of the repetitions, and whiskers are 95 % intervals."


@dataclass(frozen=True)
class BySize:
    """A figure of one time against the size."""

    NAME: str
    TITLE: str
    column: str
    label: str
    caption: str
    floors: bool = False  # whether to draw the floors from the rows

    def draw(self, results: Results, narrow: bool) -> Drawing | None:
        """The figure; None if fewer than two sizes were measured."""
        measured = handoff.read(results)
        some = handoff.compared(results, measured) if len(measured) else measured
        if some.empty or some["bytes"].nunique() < 2:
            return None
        uses = sorted(some["use"].unique(), key=handoff.use_place)
        figure, axes = panels(len(uses), 5.6, 4.8, narrow, sharey=True)
        for one, use in zip(axes, uses):
            self._panel(one, some[some["use"] == use])
            setting = tables.place(results, some.iloc[0], handoff.named_axes(results))
            one.set_title(f"{use}\n{setting}", loc="left", fontsize=10.5)
        shared_legend(figure, axes, below=narrow)
        return Drawing(self.NAME, self.TITLE, f"{self.caption} {MEDIANS}", figure)

    def _panel(self, axes: Axes, some: pd.DataFrame) -> None:
        axes.set_yscale("log")
        lines(axes, some, "bytes", self.column)
        if self.floors:
            _floors(axes, some)
        value_axis(axes, some["bytes"], units.size, "bytes of a tensor")
        log_axis(axes.yaxis, units.nanoseconds)
        axes.set_ylabel(self.label)
        axes.tick_params(labelleft=True)


def _floors(axes: Axes, some: pd.DataFrame) -> None:
    """Draws a line for each floor of the ways; the floors of ways that move bytes grow with the size."""
    bounded = some[(some["handoff_ns_bound"] != "") & some["least_ns"].notna()]
    for dash, (name, group) in zip(DASHES, bounded.groupby("handoff_ns_bound", sort=True)):
        least = group.groupby("bytes")["least_ns"].median()
        label = textwrap.fill(f"floor: {name}", LABEL)
        line = {"color": LIMIT_COLOUR, "linestyle": dash, "linewidth": 1.1, "zorder": 1}
        axes.plot(least.index.to_numpy(), least.to_numpy(), label=label, **line)


ALL = (
    BySize(
        "handoff_by_size", "Hand-off by size", handoff.TIME, "hand-off, p50",
        "The hand-off lasts from when a tensor is written until the reader's kernel has read it. Grey lines are "
        "floors: the lowest possible times, from the machine's bare launches and copies.", True,
    ),
    BySize(
        "handoff_start", "Time until the kernel could start, by size", handoff.START, "time to start, p50",
        "The time to start lasts from when a tensor is written until the reader's kernel has been launched and all "
        "earlier work has ended. It includes neither the GPU's switch from one process to the other nor the kernel.",
    ),
)  # fmt: skip
