"""Price of delivery guarantees: the Redis queues against `redis_list`, which guarantees least and does least work."""

import numpy as np
import pandas as pd

from .. import flags, figure_text, stats, units
from ..document import Table
from ..interval import ratio
from ..load import Results
from .columns import Column, number
from .columns import table as table_of

AGAINST = "redis_list"
PERSISTENT = {"everysec": ", AOF every second", "always": ", AOF always"}
NOTE = (
    f"{figure_text.NOTE} Each queue is shown at its best measured point. In the `guarantees` spec a search, equally "
    "long for each queue, found the points of “most messages”. The settings of “one message per element” (one, two and four "
    "workers) and of lone messages (one in flight) were fixed, not searched for. "
    f"“× {AGAINST}” is the ratio of the medians; its interval combines those of both."
)
# Each measure: its name, a filter for its points, its metric, whether higher is better, and its formatter.
RATE = ("messages_per_second", True, units.messages_per_second)
MEASURES = (
    ("most messages", lambda points: points["window"] > 1, *RATE),
    ("one message per element", lambda points: (points["window"] > 1) & _single(points), *RATE),
    ("lone p50", lambda points: points["window"] == 1, "p50", False, units.nanoseconds),
)


def _single(points: pd.DataFrame) -> pd.Series:
    """Selects the points of “one message per element”: no packing (a search would pack), and no `once`."""
    return (points["pack"] == 1) & (points["once_seconds"].map(_number) == 0)


def _number(value) -> float:
    return float(value) if isinstance(value, (int, float, np.number)) and value == value else 0.0


def prices(results: Results) -> pd.DataFrame:
    """One row for each queue, payload and measure: `point`, and `share`, its ratio to `redis_list`, with `share_low`
    and `share_high`. A queue that can deliver results effectively once has an additional row “…, once”, and each kind
    of append-only file has a row. Empty without `redis_list` and at least two other queues."""
    points = stats.points(results.closed)
    if points.empty or not {"pack", "once_seconds"} <= set(points):
        return pd.DataFrame()
    points = points[points["queue"].str.startswith("redis_")]
    if AGAINST not in set(points["queue"]) or points["queue"].nunique() < 3:
        return pd.DataFrame()
    once = points["once_seconds"].map(_number) > 0
    aof = points["aof"].where(points["aof"].isin(PERSISTENT), "") if "aof" in points else pd.Series("", points.index)
    points = points.assign(line=points["queue"] + np.where(once, ", once", "") + aof.map(PERSISTENT).fillna(""))
    found = []
    for measure, which, metric, larger, _ in MEASURES:
        for payload, some in points[which(points)].groupby("payload_bytes"):
            best = stats.best(some, "line", metric, largest=larger).set_index("line")
            if AGAINST not in best.index:
                continue
            base = best.loc[AGAINST]
            for line, point in best.iterrows():
                share, low, high = ratio(point, base, metric) if line != AGAINST else (1.0, np.nan, np.nan)
                delivery = "results effectively once" if ", once" in line else point["delivery"]
                found.append((line, delivery, payload, measure, point, share, low, high))
    columns = ["line", "delivery", "payload", "measure", "point", "share", "share_low", "share_high"]
    return pd.DataFrame(found, columns=columns).sort_values("line", kind="stable", ignore_index=True)


def table(found: pd.DataFrame) -> Table:
    """One row per queue, one column per measure and payload."""
    columns = [Column("queue", lambda queue: queue.line), Column("delivery", lambda queue: queue.delivery)]
    for name, _, metric, _, formatter in MEASURES:
        for payload, some in found[found["measure"] == name].groupby("payload"):
            at = {price.line: _ratio_cell(price, metric, formatter) for price in some.itertuples()}
            cell = lambda queue, at=at: at.get(queue.line, units.NOTHING)  # noqa: E731
            columns.append(number(f"{name}, {units.size(payload)}", cell))
    return table_of(columns, found.drop_duplicates("line").itertuples())


def _ratio_cell(price, metric: str, formatter) -> str:
    figure = formatter(price.point[metric]) + flags.mark(price.point)
    if price.line == AGAINST:
        return figure
    return f"{figure}\n× {units.spread(units.ratio, price.share, price.share_low, price.share_high)}"
