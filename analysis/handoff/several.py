"""Throughput if several tensors are handed over at once or several processes read them."""

from dataclasses import dataclass

import pandas as pd

from .. import figure_text, stats, tables, units
from ..document import Block, Table, Text
from ..load import Results
from . import points as handoff

AXES = ("tensors", "readers")
NOTE = (
    f"{figure_text.NOTE} Each cell shows the bytes read by all readers, divided by the median hand-off time, and below "
    "it the hand-off time, until the last reader has read the last tensor."
)


@dataclass(frozen=True)
class Steps:
    """The points along one axis that are otherwise equal; each way has at least two values of the axis."""

    axis: str
    use: str
    points: pd.DataFrame

    @property
    def values(self) -> list[int]:
        return sorted(self.points[self.axis].unique())


def blocks(results: Results) -> list[Block]:
    """The tables and their note; empty if no way was measured at two values."""
    parts: list[Block] = []
    for steps in found(results):
        parts += [Text(f"All figures are for {where(results, steps)}."), table(results, steps)]
    return [*parts, Text(" ".join([NOTE, *stats.explained(results)]), "note")] if parts else []


def found(results: Results) -> list[Steps]:
    """The steps by axis and use; empty if no way was measured at two values."""
    measured = handoff.read(results)
    several = []
    for axis in AXES if len(measured) else ():
        for use in sorted(measured["use"].unique(), key=handoff.use_place):
            points = _along(results, measured[measured["use"] == use], axis)
            if len(points):
                several.append(Steps(axis, use, points))
    return several


def _along(results: Results, some: pd.DataFrame, axis: str) -> pd.DataFrame:
    """The fullest group of points that differ only in the way and this axis."""
    fixed = ["machine", "bytes", *(one for one in handoff.setting_axes(results) if one != axis)]
    steps = some.groupby([*fixed, "variant"], dropna=False)[axis].transform("nunique")
    return handoff.fullest(some[steps > 1], fixed)


def where(results: Results, steps: Steps) -> str:
    shared = ["bytes", "use", *(axis for axis in handoff.named_axes(results) if axis != steps.axis)]
    return tables.place(results, steps.points.iloc[0], shared)


def table(results: Results, steps: Steps) -> Table:
    """One row per way, one column per value of the axis."""
    rows = [
        [variant, *(_cell(own[own[steps.axis] == value]) for value in steps.values)]
        for variant, own in steps.points.groupby("variant", sort=False)
    ]
    columns = ["way", *(tables.value_label(results, steps.axis, value) for value in steps.values)]
    return Table(columns, rows, set(range(1, len(columns))))


def _cell(points: pd.DataFrame) -> str:
    """The cell for zero points or one point."""
    if points.empty:
        return units.NOTHING
    point = points.iloc[0]
    rate = figure_text.figure(units.bytes_per_second, point, handoff.RATE, True)
    return f"{rate}\n{figure_text.figure(units.nanoseconds, point, handoff.TIME, False)}"
