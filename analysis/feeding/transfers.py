"""The best transfer for each payload and batch, compared with the runner-up and with the choice of `auto`. Each
transfer has the settings that a search found for it."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from .. import answer, interval, figure_text, stability, stats, tables, units
from ..document import Table, markdown_table
from ..load import Results
from ..ranking import Ranking, clearly_better, ranked_figure
from .columns import Column, number
from .columns import table as table_of

AUTO = "auto"
METRIC = "messages_per_second"
SETTINGS = ("window", "producers", "workers")
NOTE = (
    f"{figure_text.NOTE} Each transfer is shown with the settings that a search found for this payload and batch; the "
    "figures are from a separate measurement. “Ratio”: how many times faster the best is; its interval combines those "
    "of both. “Unclear”: the two intervals overlap, or there is only one repetition and hence no interval. The "
    "transfer “auto” chooses by the machine's limits; its rate is compared with the best one's, but it does not "
    "compete. Bytes are payload bytes one way."
)


@dataclass(frozen=True)
class Place(Ranking):
    """One payload and batch of a queue, with the points of its transfers, best first."""

    queue: str
    payload: int
    batch: int
    ranked: list[pd.Series]
    auto: pd.Series | None
    chosen: str  # the transfer that `auto` chose; empty if no row records it

    @property
    def clear(self) -> bool:
        """Whether the best is clearly faster than the runner-up; false if an interval is missing or if the runner-up's
        rate is only a lower bound."""
        return self.second is not None and clearly_better(self.best, self.second, METRIC, True)


def places(results: Results) -> list[Place]:
    """All places, sorted by queue, payload and batch. Empty if no place has two competing transfers."""
    points = _found(results)
    if points.empty:
        return []
    found = []
    for place, some in points.groupby(["queue", "payload_bytes", "batch"]):
        ranked = some.sort_values(METRIC, ascending=False, kind="stable").drop_duplicates("transfer")
        ranked = {point["transfer"]: point for _, point in ranked.iterrows()}
        auto = ranked.pop(AUTO, None)
        if ranked:
            chosen = "" if auto is None else _chosen(results, auto)
            found.append(Place(*place, list(ranked.values()), auto, chosen))
    return found if any(place.second is not None for place in found) else []


def _found(results: Results) -> pd.DataFrame:
    """The points found by searches with a given batch. A search such as `quick` chooses a different batch for each
    transfer, so its points do not allow a comparison at the same batch."""
    if not results.tried:
        return pd.DataFrame()
    experiment, variant = results.experiment, ["queue", "transfer", "payload_bytes"]
    settings = {
        tuple(one[axis] if axis in one else experiment.missing(axis, one) for axis in results.axes)
        for one in results.tried
    }

    def of_searches(rows: pd.DataFrame) -> pd.DataFrame:
        return rows[[row in settings for row in rows[results.axes].astype(object).itertuples(index=False, name=None)]]

    tried = pd.DataFrame(results.tried)
    # If the batch equals the window, the window may have capped a larger batch that was given.
    tried = tried[tried["batch"] != tried.get("window")].groupby(variant)["batch"].agg(set)
    measured = of_searches(results.closed.cells).groupby(variant)["batch"].agg(set)
    given = [name for name, batches in tried.items() if batches <= measured.get(name, set())]
    points = of_searches(answer.usable(results.closed)).dropna(subset=[METRIC])
    return points[(points["transfer"] != "none") & pd.MultiIndex.from_frame(points[variant]).isin(given)]


def _chosen(results: Results, auto: pd.Series) -> str:
    """The transfer that `auto` chose; if repetitions chose differently, all of them."""
    chosen = [choice.get("transfer") for choice in results.cells.loc[auto["members"], "chosen"]]
    return " or ".join(dict.fromkeys(filter(None, chosen)))


def table(results: Results, found: list[Place]) -> Table:
    """One row per payload and batch."""

    def of_second(heading: str, cell: Callable, missing: str = units.NOTHING, right: bool = True) -> Column:
        return Column(heading, lambda place: missing if place.second is None else cell(place), right)

    columns = [
        number("payload", lambda place: units.size(place.payload)),
        number("batch", lambda place: units.number(place.batch)),
        Column("best transfer", lambda place: _transfer_cell(results, place.best)),
        number("messages", lambda place: _rate_cell(place.best)),
        number("bytes", lambda place: figure_text.figure(units.bytes_per_second, place.best, "bytes_per_second", True)),
        of_second("runner-up", lambda place: _transfer_cell(results, place.second), "no other was measured", False),
        of_second("its messages", lambda place: _rate_cell(place.second)),
        of_second("ratio", lambda place: _ratio(place.best, place.second) + ("" if place.clear else "\nunclear")),
        Column("auto chose", lambda place: place.chosen or units.NOTHING),
        number("auto / best", _auto_cell),
    ]
    several = len({place.queue for place in found}) > 1
    return table_of([*([Column("queue", lambda place: place.queue)] if several else []), *columns], found)


def _transfer_cell(results: Results, point: pd.Series) -> str:
    """A transfer with its settings: the axes that every search varies, and its own axes."""
    known = results.experiment.axes
    own = [axis for axis in results.axes if axis in known and point["transfer"] in known[axis].owners]
    shown = [*SETTINGS, *(axis for axis in own if axis not in SETTINGS)]
    return f"{point['transfer']}\n{tables.place(results, point, shown)}".strip()


def _rate_cell(point: pd.Series) -> str:
    return ranked_figure(units.messages_per_second, point, METRIC, True, "throughput")


def _auto_cell(place: Place) -> str:
    if place.auto is None:
        return units.NOTHING
    return _ratio(place.auto, place.best) + stability.mark(place.auto, "throughput")


def _ratio(one: pd.Series, other: pd.Series) -> str:
    """The ratio of their rates. If the load generator limited one of them, the ratio is only a bound; if it limited
    both, the ratio is unknown."""
    if one["limited"] and other["limited"]:
        return units.NOTHING
    bounded = "at least " if one["limited"] else "at most " if other["limited"] else ""
    return bounded + units.spread(units.ratio, *interval.ratio(one, other, METRIC))


def note(results: Results) -> str:
    return " ".join([NOTE, *stats.explained(results.closed)])


def text(results: Results) -> list[str]:
    """The block's parts without its pictures; empty if there are no such rows."""
    found = places(results)
    return [markdown_table(table(results, found)), note(results)] if found else []
