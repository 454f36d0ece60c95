"""The cheapest way for each use and size, beside the next one."""

from dataclasses import dataclass

import pandas as pd

from .. import interval, quoted, stability, stats, tables, units
from ..document import Table
from ..load import Results
from ..ranking import Ranking
from . import points as handoff

COLUMNS = ["use", "size", "cheapest", "hand-off", "until start", "runner-up", "its hand-off", "ratio"]
NOTE = (
    f"{quoted.NOTE} Hand-off: from when the tensors are written until all readers' kernels have read them. Until "
    "start: until each reader's first kernel could start. Ratio: how many times as long the runner-up takes, its interval from "
    "those of both. Unclear: the two intervals overlap, or a single repetition has none."
)
FEWER = " Where a size names a number of ways, the others were not measured there, and no sentence is about it."


@dataclass(frozen=True)
class Place(Ranking):
    """One use and size: the points of its ways, the fastest first. `complete`: all ways were asked for there."""

    use: str
    size: int
    ranked: list[pd.Series]
    complete: bool = True

    @property
    def clear(self) -> bool:
        """Whether the cheapest is told apart from the next one."""
        return self.second is not None and below(self.best, self.second)

    @property
    def alike(self) -> list[str]:
        """The cheapest, and the ways that are not told apart from it."""
        return [point["variant"] for point in self.ranked if point is self.best or not below(self.best, point)]


def below(first: pd.Series, second: pd.Series) -> bool:
    """Never, where an interval is missing, or where the second's time is only known to be so long at most."""
    return bool(first[f"{handoff.TIME}_high"] < second[f"{handoff.TIME}_low"]) and not second["limited"]


def places(results: Results, to: str = "same") -> list[Place]:
    """In the order of uses and sizes, all at one setting. On another GPU a way competes in each of its reaches."""
    measured = handoff.read(results, to)
    if measured.empty:
        return []
    some = handoff.compared(results, measured)
    asked = handoff.beside(results, some).groupby(["use", "bytes"])["way"].nunique()
    found = []
    for (use, size), group in some.groupby(["use", "bytes"], sort=True):
        ranked = group.sort_values(handoff.TIME, kind="stable").drop_duplicates(["variant", "reach"])
        complete = bool(asked[use, size] == asked.max())
        found.append(Place(use, int(size), [point for _, point in ranked.iterrows()], complete))
    return sorted(found, key=lambda place: (handoff.use_place(place.use), place.size))


def where(results: Results, found: list[Place]) -> str:
    """The setting of all places, in words."""
    return f"All with {tables.place(results, found[0].best, handoff.told_axes(results))}."


def table(results: Results, found: list[Place], told: tuple[str, ...] = ()) -> Table:
    """A line a use and size. `told`: the axes that are said below a way."""

    def who(point: pd.Series) -> str:
        return f"{point['variant']}\n{tables.place(results, point, list(told))}".strip()

    rows = [
        [place.use, _size(place), who(place.best), time(place.best), start(place.best), *_next(place, who)]
        for place in found
    ]
    return Table(COLUMNS, rows, {1, 3, 4, 6, 7})


def _size(place: Place) -> str:
    count = len({point["variant"] for point in place.ranked})
    return units.size(place.size) + ("" if place.complete else f"\n{count} way{'' if count == 1 else 's'} only")


def time(point: pd.Series) -> str:
    said = quoted.figure(units.nanoseconds, point, handoff.TIME, False)
    alone = "\none repetition" if point["repetitions"] == 1 else ""
    return f"{said}{alone}{stability.mark(point, 'p50')}"


def start(point: pd.Series) -> str:
    return quoted.figure(units.nanoseconds, point, handoff.START, False)


def _next(place: Place, who) -> list[str]:
    second = place.second
    if second is None:
        return ["nothing else was measured", units.NOTHING, units.NOTHING]
    ratio = units.spread(units.ratio, *interval.ratio(second, place.best, handoff.TIME))
    return [who(second), time(second), ratio + ("" if place.clear else "\nunclear")]


def note(results: Results, found: list[Place]) -> str:
    fewer = "" if all(place.complete for place in found) else FEWER
    return " ".join([NOTE + fewer, *stats.explained(results)])
