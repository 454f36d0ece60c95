"""The generated page blocks `ring` (the GPU ring against other queues, and its peaks) and `one_pair`."""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import pandas as pd

from ... import figure_text, units
from ...document import Table, markdown_table
from ...load import Results
from ...report import with_origin
from ...stats import explained
from ..columns import Column, number, table
from ..headline import of_ceiling
from . import points as ring
from .points import BYTES, P50, RATE

RING = "gpu_ring"
COMPARED = (64, 4096)  # payloads at which queues are compared
OTHERS = ("host_polled", "redis_list", "redis_stream")
COPIES = "copy_engine_both_bytes_per_second"
COPIES_FROM = 4096  # smallest payload in bytes that brings a copy engine near its limit
LONE_MOST = 4096  # largest payload in bytes of the lone messages
LONE_FLOORS = {
    "word_round_trip_ns": "floor: round trip of a word",
    "lone_message_ns": "floor: round trip of 64 B",
    "lone_4k_message_ns": "floor: round trip of 4 KiB",
}
RING_NOTE = (
    "Figures are medians over repetitions, with the 95 % interval in brackets. Each figure is the best of the points "
    "measured for it; below it are that point and the number of points, because noise flatters the best of many. "
    "“Lone”: one message in flight. The number of collecting host threads equals that of producing ones. Bytes are "
    "payload bytes one way. “Of its ceiling” counts all bytes that cross the bus; “of both copy engines” counts only "
    "the payload and compares it with simultaneous copies in both directions."
)
PAIR_NOTE = (
    "One thread produces and one collects. Figures are medians over repetitions, with the 95 % interval in brackets. "
    "The load generator alone (null) moves no messages: its rate is the rate at which these two threads can write and "
    "verify."
)


def ring_text(results: Results) -> str:
    points = ring.read(results)
    own = ring.of_ring(points)
    parts = []
    for title, found in (
        ("The GPU ring against other queues with the same work:", compared(points)),
        ("The ring's peaks by payload:", peaks(ring.many(own))),
        ("The ring's lone-message latency:", lone_latency(ring.lone(own))),
    ):
        parts += [title, markdown_table(found)] if found.rows else []
    return _with_note(results, parts if len(own) else [*parts, "No row of gpu_ring is ok."], RING_NOTE)


def pair_text(results: Results) -> str:
    found = one_pair(ring.many(ring.read(results)))
    missing = "No row of gpu_ring with one pair of threads is ok."
    return _with_note(results, [markdown_table(found) if found.rows else missing], PAIR_NOTE)


def _with_note(results: Results, parts: list[str], note: str) -> str:
    return with_origin(results, [*parts, " ".join([note, *explained(results.closed)])])


class Best(NamedTuple):
    """The best of some points, and these points."""

    candidates: pd.DataFrame
    point: pd.Series | None


def _best(candidates: pd.DataFrame, metric: ring.Metric) -> Best:
    return Best(candidates, ring.best(candidates, metric))


def _best_cell(best: Best, metric: ring.Metric, leave_out: Iterable[str] = ("payload_bytes",)) -> str:
    """The value with its interval; below it, its point and the number of points compared."""
    candidates, point = best
    if point is None:
        return units.NOTHING
    value = figure_text.figure(metric.formatter, point, metric.column, metric.larger)
    where = ring.wording(point["settings"], (*leave_out, "slots") if point["window"] == 1 else leave_out)
    count, ran = point["repetitions"], point["ran"]
    fewer = f", {count} of {ran} repetitions count" if count < ran else ""
    return "\n".join(part for part in (value, where, f"best of {len(candidates)}{fewer}") if part)


def compared(points: pd.DataFrame) -> Table:
    """One row for each payload with which the ring and another queue were measured, and each queue."""
    columns = ["payload", "queue", "peak verified messages", "ring / other", "lone message, p50", "other / ring"]
    rows = []
    for payload in COMPARED:
        at = points[(points["payload_bytes"] == payload) & (points["transfer"] != "pageable")]
        queues = {queue: some for queue in (RING, *OTHERS) if len(some := at[at["queue"] == queue])}
        if RING in queues and len(queues) > 1:
            for queue, some in queues.items():
                cells = []
                for regime, metric in ((ring.many, RATE), (ring.lone, P50)):
                    own, best = _best(regime(queues[RING]), metric), _best(regime(some), metric)
                    ratio = units.NOTHING if queue == RING else _ratio(own.point, best.point, metric)
                    cells += [_best_cell(best, metric), ratio]
                rows.append([units.size(payload), queue, *cells])
    return Table(columns, rows, {2, 3, 4, 5})


def _ratio(own: pd.Series | None, other: pd.Series | None, metric: ring.Metric) -> str:
    """The factor by which the ring is better."""
    if own is None or other is None:
        return units.NOTHING
    if own["limited"] and other["limited"]:
        return "unknown"
    bound = "at least " if own["limited"] else "at most " if other["limited"] else ""
    better, worse = (own, other) if metric.larger else (other, own)
    return bound + units.ratio(better[metric.column] / worse[metric.column])


def peaks(found: pd.DataFrame) -> Table:
    """One row for each measured payload, number of host threads and kind of slots."""
    lines = [
        _best(ring.using(some, "slots", slots), RATE)
        for _, at in found.groupby("payload_bytes")
        for producers in sorted({at["producers"].min(), at["producers"].max()})
        for some in [at[at["producers"] == producers]]
        for slots in ring.used(some, "slots")
    ]
    copies = any(COPIES in limits for limits in found["limits"])
    columns = [
        Column("payload", lambda best: units.size(best.point["payload_bytes"])),
        number("host threads", lambda best: units.number(best.point["host_threads"])),
        Column("slots", lambda best: _slots(best.point)),
        number("peak verified messages", lambda best: _best_cell(best, RATE, ("payload_bytes", "producers", "slots"))),
        number("each way", lambda best: figure_text.bound(best.point, True) + BYTES.formatter(best.point[BYTES.column])),
        number("of its ceiling", lambda best: of_ceiling(best.point)),
        *([number("of both copy engines", lambda best: _of_copies(best.point))] if copies else []),
    ]
    return table(columns, [best for best in lines if best.point is not None])


def _slots(point: pd.Series) -> str:
    slots = point["settings"]["slots"]
    return units.NOTHING if slots in ring.UNSET else slots  # old rows do not record the queue's choice


def _of_copies(point: pd.Series) -> str:
    limit = point["limits"].get(COPIES)
    if not limit or point["payload_bytes"] < COPIES_FROM:
        return units.NOTHING
    return figure_text.bound(point, True) + units.percent(point[BYTES.column] / limit)


def lone_latency(found: pd.DataFrame) -> Table:
    """One row for each payload up to 4 KiB: the point with the lowest p50."""
    found = found[found["payload_bytes"] <= LONE_MOST]
    lines = [_best(at, P50) for _, at in found.groupby("payload_bytes")]
    floors = {name: title for name, title in LONE_FLOORS.items() if any(name in limits for limits in found["limits"])}
    columns = [
        Column("payload", lambda best: units.size(best.point["payload_bytes"])),
        number("p50", lambda best: _best_cell(best, P50)),
        number("p99", lambda best: figure_text.figure(units.nanoseconds, best.point, "p99", False)),
        *(number(title, partial(_limit, name)) for name, title in floors.items()),
    ]
    return table(columns, [best for best in lines if best.point is not None])


def _limit(name: str, best: Best) -> str:
    return units.nanoseconds(best.point["limits"].get(name))


def one_pair(found: pd.DataFrame) -> Table:
    """One row for each payload, window and batch with which the ring was measured with one pair of threads: the ring
    and the load generator alone."""
    shared = ["payload_bytes", "window", "batch"]  # axes with separate columns
    lines = []
    for _, at in found[found["producers"] == 1].groupby(shared):
        if len(own := ring.of_ring(at)):
            lines.append((_best(own, RATE), _best(at[at["queue"] == "null"], RATE)))
    columns = [
        Column("payload", lambda line: units.size(line[0].point["payload_bytes"])),
        number("batch", lambda line: str(line[0].point["batch"])),
        number("window", lambda line: str(line[0].point["window"])),
        number("gpu_ring", lambda line: _best_cell(line[0], RATE, (*shared, "producers"))),
        number("null (generator alone)", lambda line: _best_cell(line[1], RATE, (*shared, "producers"))),
        number("ring / null", lambda line: _share(line[0].point, line[1].point)),
    ]
    return table(columns, lines)


def _share(own: pd.Series, alone: pd.Series | None) -> str:
    if alone is None:
        return units.NOTHING
    return figure_text.bound(own, True) + units.percent(own[RATE.column] / alone[RATE.column])
