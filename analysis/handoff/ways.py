"""The cost of each way at one size: creating and deleting a tensor, handing it over, and the memory held."""

import math

import pandas as pd

from .. import figure_text, stats, tables, units
from ..document import Block, Table, Text
from ..load import Results
from . import points as handoff
from .cheapest import time

USUAL = 1 << 20  # bytes; ways are shown at the nearest size
COLUMNS = ["way", "create", "delete", "first", "cached", "device memory", "host memory"]
NOTE = (
    f"{figure_text.NOTE} “Create” and “delete” are for a tensor in the exporter's memory and are not part of a hand-off. "
    "“First”: the hand-off of new tensors. “Cached”: the hand-off of tensors that the readers have received before. "
    "“Memory”: the total held for the tensors by all processes, including the tensors themselves."
)


def blocks(results: Results) -> list[Block]:
    """The table of points at one setting, and its note; empty if no row counts."""
    measured = handoff.read(results)
    if measured.empty:
        return []
    some = handoff.compared(results, measured)
    setting = tables.place(results, some.iloc[0], handoff.named_axes(results))
    where = f"All figures are for {units.size(usual(some))}, {setting}, unless a row says otherwise."
    return [Text(where), table(results, some), Text(" ".join([NOTE, *stats.explained(results)]), "note")]


def usual(some: pd.DataFrame) -> int:
    """The size nearest to 1 MiB among those that most ways share; the larger of two equally near ones."""
    counts = some.groupby("bytes")["way"].nunique()
    return nearest(counts[counts == counts.max()].index)


def nearest(sizes) -> int:
    return int(min(sizes, key=lambda size: (abs(math.log2(size / USUAL)), -size)))


def table(results: Results, some: pd.DataFrame) -> Table:
    """One row per way. A way that was not measured at the common size has its own size in its row; the row of a way
    that could not run gives the reason."""
    at, rows = usual(some), []
    for variant in some["variant"].unique():
        own = some[some["variant"] == variant]
        size = at if at in set(own["bytes"]) else nearest(own["bytes"].unique())
        name = variant if size == at else f"{variant}\n{units.size(size)}"
        rows.append([name, *_figures(own[own["bytes"] == size])])
    cells = handoff.beside(results, some)
    rows += tables.not_measured(cells[~cells["way"].isin(some["way"])], "way", handoff.place, len(COLUMNS))
    return Table(COLUMNS, rows, set(range(1, len(COLUMNS))))


def _figures(own: pd.DataFrame) -> list[str]:
    """The cells of one way and size, which has at most one point per use. Only new tensors are created and deleted."""
    by_use = {point["use"]: point for _, point in own.iterrows()}
    first, cached = (by_use.get(use) for use in ("first", "cached"))
    held = [units.size(own.iloc[0][column]) for column in ("device_bytes", "host_bytes")]
    costs = [_figure_cell(first, column) for column in ("create_p50", "delete_p50")]
    return [*costs, _time_cell(first), _time_cell(cached), *held]


def _figure_cell(point: pd.Series | None, column: str) -> str:
    return units.NOTHING if point is None else figure_text.figure(units.nanoseconds, point, column, False)


def _time_cell(point: pd.Series | None) -> str:
    return units.NOTHING if point is None else time(point)
