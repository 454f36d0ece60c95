"""Overlap efficiency by balance of the stages, by item size and by number of buffers."""

from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes

from ... import tables
from ...load import Results
from ...plots.style import Drawing, panels, shared_legend
from .. import along
from .. import points as overlap
from .styles import EDGE, LEAST, OTHER, STYLES, clipped, reach


@dataclass(frozen=True)
class ByAxis:
    """A figure of the efficiency along an axis."""

    NAME: str
    TITLE: str
    axis: along.Axis

    def draw(self, results: Results, narrow: bool) -> Drawing | None:
        """The figure; None if no pipeline was measured at two values."""
        measured = overlap.read(results)
        found = {}
        for name in overlap.pipelines(measured):
            some = overlap.along(results, measured[measured["pipeline"] == name], self.axis.name, self.axis.moving)
            some = some.dropna(subset=[overlap.EFFICIENCY]) if len(some) else some
            if len(some):
                found[name] = some
        if not found:
            return None
        figure, axes = panels(len(found), 5.6, 4.4, narrow)
        for one, (name, some) in zip(axes, found.items()):
            self._panel(one, some)
            hidden = ("items", "stage_blocks", self.axis.name, *self.axis.moving)
            shown = [axis for axis in overlap.named_axes(results) if axis not in hidden]
            context = tables.place(results, some.iloc[0], shown)
            one.set_title(f"{name}\n{context}".strip(), loc="left", fontsize=10.5)
        shared_legend(figure, axes, below=narrow)
        return Drawing(self.NAME, self.TITLE, self._caption, figure)

    @property
    def _caption(self) -> str:
        return (
            "Overlap efficiency is the share of the possible saving in time that a strategy reaches, based on the "
            "stages' times when they run concurrently: 0 is serial, 1 is the entire saving (lines). Markers are "
            "medians of the repetitions, and whiskers are 95 % intervals."
            f"{self.axis.moves} Values below {LEAST:g} are drawn at {LEAST:g}."
        )

    def _panel(self, axes: Axes, some: pd.DataFrame) -> None:
        name = self.axis.name
        steps = sorted(some[name].unique(), key=self.axis.key)
        labels = {point[name]: self.axis.step(point) for _, point in some.iterrows()}
        for variant in some.sort_values(["place", "rank"])["variant"].unique():
            line = some[some["variant"] == variant].sort_values(name, key=lambda column: column.map(steps.index))
            colour, marker = STYLES.get(line["strategy"].iloc[0], OTHER)
            places = [steps.index(value) for value in line[name]]
            for place, (_, point) in zip(places, line.iterrows()):
                axes.plot([place, place], clipped(reach(point, overlap.EFFICIENCY)), color=colour, linewidth=1, alpha=0.6)
            axes.plot(places, clipped(line[overlap.EFFICIENCY]), marker=marker, color=colour, label=variant)
        for edge in (0, 1):
            axes.axhline(edge, color=EDGE, linewidth=0.9, zorder=1)
        axes.set_xticks(range(len(steps)), [labels[step] for step in steps])
        axes.set_xlim(-0.4, len(steps) - 0.6)
        axes.set_ylim(min(-0.05, axes.get_ylim()[0]), max(1.1, axes.get_ylim()[1]))
        axes.set(xlabel=self.axis.label, ylabel="overlap efficiency")


ALL = (
    ByAxis("overlap_balance", "Overlap efficiency by balance", along.BALANCE),
    ByAxis("overlap_items", "Overlap efficiency by item size", along.ITEM),
    ByAxis("overlap_depth", "Overlap efficiency by depth", along.DEPTH),
)
