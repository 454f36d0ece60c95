"""The best transfer for each payload and batch, with each transfer at the settings that a search found for it: compares
the best with the runner-up and with the choice of `auto`."""

from dataclasses import dataclass

import pandas as pd

from .. import answer, interval, figure_text, stability, stats, tables, units
from ..document import Table, markdown_table
from ..load import Results
from ..ranking import Ranking

AUTO = "auto"
METRIC = "messages_per_second"
PLACE = ("queue", "payload_bytes", "batch")
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
        """Whether the best is clearly faster than the runner-up."""
        return self.second is not None and above(self.best, self.second)


def above(first: pd.Series, second: pd.Series) -> bool:
    """Whether the first is clearly faster: false if an interval is missing or the second rate is only a lower bound."""
    return bool(first[f"{METRIC}_low"] > second[f"{METRIC}_high"]) and not second["limited"]


def places(results: Results) -> list[Place]:
    """All places, sorted by queue, payload and batch. Empty if no place has two competing transfers."""
    points = _found(results)
    if points.empty:
        return []
    several = []
    for (queue, payload, batch), some in points.groupby(list(PLACE)):
        ranked = some.sort_values(METRIC, ascending=False, kind="stable").drop_duplicates("transfer")
        own = [point for _, point in ranked[ranked["transfer"] == AUTO].iterrows()]
        rest = [point for _, point in ranked[ranked["transfer"] != AUTO].iterrows()]
        if rest:
            auto = own[0] if own else None
            several.append(Place(queue, payload, batch, rest, auto, "" if auto is None else _chosen(results, auto)))
    return several if any(place.second is not None for place in several) else []


def _found(results: Results) -> pd.DataFrame:
    """The points found by searches with a given batch. A search such as `quick` chooses a different batch for each
    transfer, so its points do not allow a comparison at equal batch."""
    settings = _settings(results)
    if not settings:
        return pd.DataFrame()
    cells = results.closed.cells
    fresh = cells[[_key(results, cell) in settings for cell in cells.to_dict("records")]]
    measured: dict[tuple, set] = {}
    for queue, transfer, payload, batch in zip(*(fresh[axis] for axis in ("queue", "transfer", *PLACE[1:]))):
        measured.setdefault((queue, transfer, payload), set()).add(batch)
    tried: dict[tuple, set] = {}
    for one in results.tried:
        if one["batch"] == one.get("window"):
            continue  # the window caps the batch, so a larger batch may have been given
        tried.setdefault((one["queue"], one["transfer"], one["payload_bytes"]), set()).add(one["batch"])
    given = {variant for variant, batches in tried.items() if batches <= measured.get(variant, set())}
    points = answer.usable(results.closed)
    if points.empty:
        return points
    kept = [
        point["transfer"] != "none"
        and (point["queue"], point["transfer"], point["payload_bytes"]) in given
        and _key(results, point) in settings
        for point in points.to_dict("records")
    ]
    return points[kept].dropna(subset=[METRIC])


def _settings(results: Results) -> set[tuple]:
    experiment = results.experiment
    return {
        tuple(one[axis] if axis in one else experiment.missing(axis, one) for axis in results.axes)
        for one in results.tried
    }


def _key(results: Results, point: dict) -> tuple:
    return tuple(point[axis] for axis in results.axes)


def _chosen(results: Results, auto: pd.Series) -> str:
    """The transfer that `auto` chose; if repetitions chose differently, all of them."""
    told = [one.get("transfer", "") for one in results.cells.loc[auto["members"], "chosen"]]
    return " or ".join(dict.fromkeys(one for one in told if one))


def table(results: Results, found: list[Place]) -> Table:
    """One line per payload and batch."""
    queues = len({place.queue for place in found}) > 1
    rows = [
        [
            *([place.queue] if queues else []),
            units.size(place.payload),
            units.number(place.batch),
            _transfer_cell(results, place.best),
            rate(place.best),
            figure_text.figure(units.bytes_per_second, place.best, "bytes_per_second", True),
            *_runner_up_cells(results, place),
            *_auto_cells(place),
        ]
        for place in found
    ]
    first = [*(["queue"] if queues else []), "payload", "batch"]
    columns = [*first, "best transfer", "messages", "bytes", "runner-up", "its messages", "ratio"]
    columns += ["auto chose", "auto / best"]
    at = len(first)
    return Table(columns, rows, {at - 2, at - 1, at + 1, at + 2, at + 4, at + 5, at + 7})


def _transfer_cell(results: Results, point: pd.Series) -> str:
    """A transfer with its settings: those that every search varies, and its own axes."""
    known = results.experiment.axes
    own = [axis for axis in results.axes if axis in known and point["transfer"] in known[axis].owners]
    shown = [*SETTINGS, *(axis for axis in own if axis not in SETTINGS)]
    return f"{point['transfer']}\n{tables.place(results, point, shown)}".strip()


def rate(point: pd.Series) -> str:
    said = figure_text.figure(units.messages_per_second, point, METRIC, True)
    alone = "\none repetition" if point["repetitions"] == 1 else ""
    return f"{said}{alone}{stability.mark(point, 'throughput')}"


def _runner_up_cells(results: Results, place: Place) -> list[str]:
    second = place.second
    if second is None:
        return ["no other was measured", units.NOTHING, units.NOTHING]
    doubt = "" if place.clear else "\nunclear"
    return [_transfer_cell(results, second), rate(second), _share(place.best, second) + doubt]


def _auto_cells(place: Place) -> list[str]:
    if place.auto is None:
        return [units.NOTHING, units.NOTHING]
    return [place.chosen or units.NOTHING, _share(place.auto, place.best) + stability.mark(place.auto, "throughput")]


def _share(one: pd.Series, other: pd.Series) -> str:
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
