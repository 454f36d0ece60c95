"""Comparison of the ring with other queues that do the same work."""

import pandas as pd

from ... import figure_text, units
from ...document import Table
from . import points as ring

PAYLOADS = (64, 4096)
OTHERS = ("host_polled", "redis_list", "redis_stream")
# heading of the ratio, heading of the value, filter for points, metric, formatter, whether higher is better
SIDES = (
    ("ring / other", "peak verified messages", ring.many, "messages_per_second", units.messages_per_second, True),
    ("other / ring", "lone message, p50", ring.lone, "p50", units.nanoseconds, False),
)


def table(points: pd.DataFrame) -> Table | None:
    """One line for each measured payload and queue; None if there is nothing to compare."""
    rows = []
    for payload in PAYLOADS:
        at = points[(points["payload_bytes"] == payload) & (points["transfer"] != "pageable")]
        queues = [queue for queue in ("gpu_ring", *OTHERS) if (at["queue"] == queue).any()]
        if "gpu_ring" in queues and len(queues) > 1:
            rows += [[units.size(payload), *_line(at, queue)] for queue in queues]
    if not rows:
        return None
    columns = ["payload", "queue", *(name for heading, value, *_ in SIDES for name in (value, heading))]
    return Table(columns, rows, {2, 3, 4, 5})


def _line(at: pd.DataFrame, queue: str) -> list[str]:
    """The queue and, for each of SIDES, its best value and the ratio to the ring's."""
    cells = [queue]
    for _, _, regime, metric, formatter, largest in SIDES:
        mine = regime(at[at["queue"] == queue])
        point, own = ring.best(mine, metric, largest), ring.best(regime(ring.of_ring(at)), metric, largest)
        cells += [best_said(mine, point, metric, formatter, largest), _ratio(own, point, metric, largest)]
    return cells


def best_said(
    candidates: pd.DataFrame, point, metric: str, formatter, largest: bool, leave_out=("payload_bytes",)
) -> str:
    """The value with its interval; below it, its point and the number of points compared."""
    if point is None:
        return units.NOTHING
    value = figure_text.figure(formatter, point, metric, largest)
    where = ring.said(ring.told(point), (*leave_out, "slots") if point["window"] == 1 else leave_out)
    count, ran = point["repetitions"], point["ran"]
    fewer = f", {count} of {ran} repetitions count" if count < ran else ""
    return "\n".join(part for part in (value, where, f"best of {len(candidates)}{fewer}") if part)


def _ratio(own, other, metric: str, largest: bool) -> str:
    if own is None or other is None or own["queue"] == other["queue"]:
        return units.NOTHING
    if own["limited"] and other["limited"]:
        return "unknown"
    bound = "at least " if own["limited"] else "at most " if other["limited"] else ""
    return bound + units.ratio(own[metric] / other[metric] if largest else other[metric] / own[metric])
