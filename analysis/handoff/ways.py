"""What each way costs at one size: to create and to delete a tensor, to hand it over, and the memory that is held."""

import math

import pandas as pd

from .. import quoted, stats, tables, units
from ..document import Table
from ..load import Results
from . import points as handoff
from .cheapest import time

USUAL = 1 << 20  # bytes: ways are shown at the size that lies nearest
COLUMNS = ["way", "create", "delete", "first", "cached", "device memory", "host memory"]
NOTE = (
    f"{quoted.NOTE} Create, delete: of a tensor in the giver's memory, no part of a hand-off. First: the hand-off of "
    "new tensors. Cached: of tensors that the readers have had before. Memory: what is held for the tensors by all "
    "processes together, the tensors themselves included."
)


def where(results: Results, some: pd.DataFrame) -> str:
    told = tables.place(results, some.iloc[0], handoff.told_axes(results))
    return f"All with {units.size(usual(some))}, {told}, unless a line says otherwise."


def found(results: Results) -> pd.DataFrame:
    """The points to show, all at one setting; empty where no row counts."""
    measured = handoff.read(results)
    return handoff.compared(results, measured) if len(measured) else measured


def usual(some: pd.DataFrame) -> int:
    """Of the sizes that most ways share that nearest to 1 MiB; the larger of two that are as near."""
    counts = some.groupby("bytes")["way"].nunique()
    return nearest(counts[counts == counts.max()].index)


def nearest(sizes) -> int:
    return int(min(sizes, key=lambda size: (abs(math.log2(size / USUAL)), -size)))


def table(results: Results, some: pd.DataFrame) -> Table:
    """A line a way. One that was not measured at the size of the others says at which it was; one that could not run
    says why."""
    at, rows = usual(some), []
    for variant in some["variant"].unique():
        own = some[some["variant"] == variant]
        size = at if at in set(own["bytes"]) else nearest(own["bytes"].unique())
        name = variant if size == at else f"{variant}\n{units.size(size)}"
        rows.append([name, *_figures(own[own["bytes"] == size])])
    cells = handoff.beside(results, some)
    missing = cells[~cells["way"].isin(some["way"])]
    for variant, without in sorted(missing.groupby("variant"), key=lambda one: handoff.place(one[1]["way"].iloc[0])):
        first = without.iloc[0]
        rows.append([variant, f"{first['status']}: {first['reason']}", *[units.NOTHING] * (len(COLUMNS) - 2)])
    return Table(COLUMNS, rows, set(range(1, len(COLUMNS))))


def _figures(own: pd.DataFrame) -> list[str]:
    """Of the points of one way and size, one a use at most. Only new tensors are created and deleted."""
    by_use = {point["use"]: point for _, point in own.iterrows()}
    first, cached = (by_use.get(use) for use in ("first", "cached"))
    held = [units.size(own.iloc[0][column]) for column in ("device_bytes", "host_bytes")]
    return [*(_told(first, column) for column in ("create_p50", "delete_p50")), _time(first), _time(cached), *held]


def _told(point: pd.Series | None, column: str) -> str:
    return units.NOTHING if point is None else quoted.figure(units.nanoseconds, point, column, False)


def _time(point: pd.Series | None) -> str:
    return units.NOTHING if point is None else time(point)


def note(results: Results) -> str:
    return " ".join([NOTE, *stats.explained(results)])
