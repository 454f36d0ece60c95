"""Price of delivery guarantees: the Redis queues against `redis_list`, which guarantees least and does least work."""

import numpy as np
import pandas as pd

from .. import flags, figure_text, stats, units
from ..document import Table
from ..interval import ratio
from ..load import Results

AGAINST = "redis_list"
NOTE = (
    f"{figure_text.NOTE} Each queue is shown at its best measured point. In the spec `guarantees` a search, equally long for "
    "each queue, found the points of “most messages”. The settings of “one message per element” (one, two and four "
    "workers) and of lone messages (one in flight) were fixed, not searched for. "
    f"“× {AGAINST}” is the ratio of the medians; its interval combines those of both."
)
# Each measure: its name, a filter for its points, its metric, whether higher is better, and its formatter.
MEASURES = (
    ("most messages", lambda points: points["window"] > 1, "messages_per_second", True, units.messages_per_second),
    ("one message per element", lambda points: (points["window"] > 1) & _single(points), "messages_per_second", True, units.messages_per_second),
    ("lone p50", lambda points: points["window"] == 1, "p50", False, units.nanoseconds),
)  # fmt: skip


def _single(points: pd.DataFrame) -> pd.Series:
    """Selects the points of the spec's part of that name: unpacked although a search would pack, without `once`."""
    return (points["pack"] == 1) & (points["once_seconds"].map(_number) == 0)


def _number(value) -> float:
    return float(value) if isinstance(value, (int, float, np.number)) and value == value else 0.0


def prices(results: Results) -> pd.DataFrame:
    """One line for each queue, payload and measure: `point`, and `share`, its ratio to `redis_list`, with `share_low`
    and `share_high`. A queue that can deliver results effectively once has an additional line “…, once”. Empty
    without `redis_list` and at least two other queues."""
    points = stats.points(results.closed)
    if points.empty or not {"pack", "once_seconds"} <= set(points):
        return pd.DataFrame()
    points = points[points["queue"].str.startswith("redis_")]
    if AGAINST not in set(points["queue"]) or points["queue"].nunique() < 3:
        return pd.DataFrame()
    once = points["once_seconds"].map(_number) > 0
    points = points.assign(line=points["queue"] + np.where(once, ", once", ""))
    found = []
    for measure, which, metric, larger, _ in MEASURES:
        for payload, some in points[which(points)].groupby("payload_bytes"):
            best = stats.best(some, "line", metric, largest=larger).set_index("line")
            if AGAINST not in best.index:
                continue
            base = best.loc[AGAINST]
            for line, point in best.iterrows():
                share, low, high = ratio(point, base, metric) if line != AGAINST else (1.0, np.nan, np.nan)
                found.append(
                    {"line": line, "delivery": _promise(line, point), "payload": payload, "measure": measure}
                    | {"point": point, "share": share, "share_low": low, "share_high": high}
                )
    return pd.DataFrame(found).sort_values("line", kind="stable", ignore_index=True) if found else pd.DataFrame()


def _promise(line: str, point: pd.Series) -> str:
    return "results effectively once" if line != point["queue"] else point["delivery"]


def table(found: pd.DataFrame) -> Table:
    """One line per queue, one column per measure and payload."""
    columns = [(name, payload) for name, *_ in MEASURES for payload in sorted(found["payload"].unique())]
    at = {(row.measure, row.payload, row.line): row for row in found.itertuples()}
    columns = [key for key in columns if any((*key, line) in at for line in found["line"])]
    metrics = {name: (metric, formatter) for name, _, metric, _, formatter in MEASURES}
    rows = []
    for line, delivery in found.drop_duplicates("line")[["line", "delivery"]].itertuples(index=False):
        row = [line, delivery]
        for measure, payload in columns:
            one = at.get((measure, payload, line))
            row.append(units.NOTHING if one is None else _ratio_cell(one, *metrics[measure]))
        rows.append(row)
    heads = [f"{measure}, {units.size(payload)}" for measure, payload in columns]
    return Table(["queue", "delivery", *heads], rows, set(range(2, 2 + len(columns))))


def _ratio_cell(one, metric: str, formatter) -> str:
    said = formatter(one.point[metric]) + flags.mark(one.point)
    if one.line == AGAINST:
        return said
    return f"{said}\n× {units.spread(units.ratio, one.share, one.share_low, one.share_high)}"
