"""Axes along which tables and figures show how the overlap changes, and one table per pipeline along such an axis: the
results of each strategy with the same stages while one axis changes."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from .. import figure_text, stats, tables, units
from ..document import Block, Heading, Table, Text
from ..load import Results
from . import strategies
from . import points as overlap

BALANCES = ("even", "first", "middle", "last", "rising")
SERIAL, ALONE, BESIDE = "serial, per item", "slowest stage, alone", "slowest stage, with the others running"
NOTE = (
    f"{figure_text.NOTE} Each cell shows the speedup over serial and, below it, the overlap efficiency, which is based "
    "on the stages' times when they run concurrently. If less than a tenth of serial's time could be saved, the cell "
    "shows that share instead of the efficiency. The last rows show the times behind the efficiency: time per item, "
    "medians over the rows of the strategies above."
)


@dataclass(frozen=True)
class Axis:
    """An axis. `moving`: axes that change with it; `step`: the name of a value; `key`: the sort key of values."""

    name: str
    label: str
    step: Callable[[pd.Series], str]
    moving: tuple[str, ...] = ()
    moves: str = ""  # a sentence about the moving axes
    key: Callable = lambda value: value


BALANCE = Axis(
    "balance", "distribution of the cost over the stages",
    step=lambda point: point["balance"], key=lambda one: BALANCES.index(one) if one in BALANCES else len(BALANCES),
)  # fmt: skip
ITEM = Axis(
    "item_bytes", "bytes per item, cost per kernel",
    step=lambda point: f"{units.size(point['item_bytes'])}\n{point['cost_us']:g} µs", moving=("cost_us", "items"),
    moves=" The cost per kernel grows with the item size, and the number of items falls.",
)  # fmt: skip
DEPTH = Axis("depth", "buffers between two stages", step=lambda point: f"{point['depth']:g}")


def blocks(results: Results, axis: Axis) -> list[Block]:
    """The tables and their note; empty if no strategy was measured at two values."""
    measured = overlap.read(results)
    found: list[Block] = []
    for pipeline in overlap.pipelines(measured):
        some = overlap.along(results, measured[measured["pipeline"] == pipeline], axis.name, axis.moving)
        if len(some):
            found += [Heading(f"Pipeline {pipeline}"), Text(_where(results, axis, some)), table(results, axis, some)]
    return [*found, Text(" ".join([NOTE + axis.moves, *stats.explained(results)]), "note")] if found else []


def _where(results: Results, axis: Axis, some: pd.DataFrame) -> str:
    """The settings that all points share, in words."""
    shared = [one for one in overlap.named_axes(results) if one not in (axis.name, *axis.moving)]
    return f"All figures are for {tables.place(results, some.iloc[0], shared)}. Columns: {axis.label}."


def table(results: Results, axis: Axis, some: pd.DataFrame) -> Table:
    """One row per strategy, one column per value; the last rows are the times of serial and of the slowest stage."""
    steps = sorted(some[axis.name].unique(), key=axis.key)
    at = {step: some[some[axis.name] == step] for step in steps}
    names = some.sort_values(["place", "rank"], kind="stable")["variant"].unique()
    rows = [[name, *(_cell(results, one[one["variant"] == name]) for one in at.values())] for name in names]
    times = [item_times(results, one) for one in at.values()]
    rows += [[kind, *(units.nanoseconds(one[kind]) for one in times)] for kind in (SERIAL, ALONE, BESIDE)]
    return Table(["strategy", *(axis.step(one.iloc[0]) for one in at.values())], rows, set(range(1, len(steps) + 1)))


def _cell(results: Results, points: pd.DataFrame) -> str:
    """The cell for zero points or one point."""
    if points.empty:
        return units.NOTHING
    point = points.iloc[0]
    share = strategies.efficiency(results, point, overlap.EFFICIENCY).removeprefix(f"{units.NOTHING}\n")
    return "\n".join([strategies.ratio(point, "speedup"), share.replace("\n", ", ")])


def item_times(results: Results, points: pd.DataFrame) -> dict[str, float]:
    """Time per item (ns) with serial and in the slowest stage: medians over the points' rows."""
    rows = results.cells.loc[[member for members in points["members"] for member in members]]

    def slowest(key: str) -> float:
        return rows["stage_times"].map(lambda stages: max((stage[key] for stage in stages), default=math.nan)).median()

    return {
        SERIAL: (rows["serial_ns"] / rows["items"]).median(),
        ALONE: slowest("alone_ns"),
        BESIDE: slowest("contended_ns"),
    }
