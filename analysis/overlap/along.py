"""A table a pipeline along an axis: what each strategy makes of the same stages as one thing changes."""

import math

import pandas as pd

from .. import quoted, stats, tables, units
from ..document import Block, Heading, Table, Text
from ..load import Results
from . import points as overlap
from . import strategies
from .axes import Axis

SERIAL, ALONE, BESIDE = "serial, an item", "slowest stage, alone", "slowest stage, beside the others"
NOTE = (
    f"{quoted.NOTE} First the speedup over serial, below it the overlap efficiency by the stages' times beside each "
    "other, or what could be saved where that is less than a tenth of serial's time. The last lines say what the "
    "efficiency is made of: the time of an item, medians over the rows of the strategies above."
)


def blocks(results: Results, axis: Axis) -> list[Block]:
    """Nothing where no strategy was measured at two values."""
    measured = overlap.read(results)
    found: list[Block] = []
    for pipeline in overlap.pipelines(measured):
        some = overlap.along(results, measured[measured["pipeline"] == pipeline], axis.name, axis.moving)
        if len(some):
            found += [Heading(f"Pipeline {pipeline}"), Text(_where(results, axis, some)), table(results, axis, some)]
    return [*found, Text(" ".join([NOTE + axis.moves, *stats.explained(results)]), "note")] if found else []


def _where(results: Results, axis: Axis, some: pd.DataFrame) -> str:
    """What is the same at all points, in words."""
    told = [one for one in overlap.setting_axes(results) if one not in ("device", axis.name, *axis.moving)]
    return f"All with {tables.place(results, some.iloc[0], told)}. Columns: {axis.label}."


def table(results: Results, axis: Axis, some: pd.DataFrame) -> Table:
    """A line a strategy, a column a value; below them what serial and the slowest stage take there."""
    steps = sorted(some[axis.name].unique(), key=axis.key)
    at = {step: some[some[axis.name] == step] for step in steps}
    names = some.sort_values(["place", "rank"], kind="stable")["variant"].unique()
    rows = [[name, *(_cell(results, one[one["variant"] == name]) for one in at.values())] for name in names]
    times = [item_times(results, one) for one in at.values()]
    rows += [[kind, *(units.nanoseconds(one[kind]) for one in times)] for kind in (SERIAL, ALONE, BESIDE)]
    return Table(["strategy", *(axis.step(one.iloc[0]) for one in at.values())], rows, set(range(1, len(steps) + 1)))


def _cell(results: Results, points: pd.DataFrame) -> str:
    """Of the one point that there is at most."""
    if points.empty:
        return units.NOTHING
    point = points.iloc[0]
    share = strategies.efficiency(results, point, overlap.EFFICIENCY).removeprefix(f"{units.NOTHING}\n")
    return "\n".join([strategies.ratio(point, "speedup"), share.replace("\n", ", ")])


def item_times(results: Results, points: pd.DataFrame) -> dict[str, float]:
    """What an item takes (ns) with serial, and in the stage that takes longest: medians over the points' rows."""
    rows = results.cells.loc[[member for members in points["members"] for member in members]]

    def slowest(key: str) -> float:
        return rows["stages_told"].map(lambda stages: max((stage[key] for stage in stages), default=math.nan)).median()

    return {
        SERIAL: (rows["serial_ns"] / rows["items"]).median(),
        ALONE: slowest("alone_ns"),
        BESIDE: slowest("contended_ns"),
    }
