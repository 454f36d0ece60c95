"""The cheapest way for each use and size, compared with the runner-up."""

from dataclasses import dataclass

import pandas as pd

from .. import figure_text, interval, stats, tables, units
from ..document import Block, Table, Text
from ..load import Results
from ..ranking import Ranking, clearly_better, ranked_figure
from . import points as handoff

COLUMNS = ["use", "size", "cheapest", "hand-off", "time to start", "runner-up", "its hand-off", "ratio"]
NOTE = (
    f"{figure_text.NOTE} “Hand-off”: from when the tensors are written until all readers' kernels have read them. "
    "“Time to start”: until each reader's first kernel could start. “Ratio”: how many times as long the runner-up takes; its "
    "interval combines those of both. “Unclear”: the two intervals overlap, or there is only one repetition and hence "
    "no interval."
)
FEWER = " If a size has a number of ways, the other ways were not measured at it, and no sentence mentions it."


@dataclass(frozen=True)
class Place(Ranking):
    """One use and size: the points of its ways, fastest first. `complete`: whether all ways were requested there."""

    use: str
    size: int
    ranked: list[pd.Series]
    complete: bool = True

    @property
    def clear(self) -> bool:
        """Whether the cheapest is clearly faster than the runner-up."""
        return self.second is not None and below(self.best, self.second)

    @property
    def alike(self) -> list[str]:
        """The cheapest way, and the ways that are not clearly slower."""
        return [point["variant"] for point in self.ranked if point is self.best or not below(self.best, point)]


def below(first: pd.Series, second: pd.Series) -> bool:
    """Whether the first is clearly faster: false without an interval, or if the second time is an upper bound."""
    return clearly_better(first, second, handoff.TIME, False)


def places(results: Results, to: str = "same") -> list[Place]:
    """All places at one setting, sorted by use and size. With two GPUs, a way competes once for each reach."""
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


def two_gpus_blocks(results: Results) -> list[Block]:
    """The table of rows whose readers compute on another GPU, with the way in which they reach the tensors."""
    return blocks(results, places(results, "other"), ("reach",))


def blocks(results: Results, found: list[Place], shown: tuple[str, ...] = ()) -> list[Block]:
    """The table with its setting and its note; empty without places. `shown`: as for `table`."""
    if not found:
        return []
    setting = tables.place(results, found[0].best, handoff.named_axes(results))
    fewer = "" if all(place.complete for place in found) else FEWER
    note = Text(" ".join([NOTE + fewer, *stats.explained(results)]), "note")
    return [Text(f"All figures are for {setting}."), table(results, found, shown), note]


def table(results: Results, found: list[Place], shown: tuple[str, ...] = ()) -> Table:
    """One row per use and size. `shown`: the axes that are written below a way."""

    def who(point: pd.Series) -> str:
        return f"{point['variant']}\n{tables.place(results, point, list(shown))}".strip()

    rows = [
        [place.use, _size(place), who(place.best), time(place.best), start(place.best), *_runner_up_cells(place, who)]
        for place in found
    ]
    return Table(COLUMNS, rows, {1, 3, 4, 6, 7})


def _size(place: Place) -> str:
    count = len({point["variant"] for point in place.ranked})
    return units.size(place.size) + ("" if place.complete else f"\n{count} way{'' if count == 1 else 's'} only")


def time(point: pd.Series) -> str:
    return ranked_figure(units.nanoseconds, point, handoff.TIME, False, "p50")


def start(point: pd.Series) -> str:
    return figure_text.figure(units.nanoseconds, point, handoff.START, False)


def _runner_up_cells(place: Place, who) -> list[str]:
    second = place.second
    if second is None:
        return ["no other was measured", units.NOTHING, units.NOTHING]
    ratio = units.spread(units.ratio, *interval.ratio(second, place.best, handoff.TIME))
    return [who(second), time(second), ratio + ("" if place.clear else "\nunclear")]
