"""The ring's peaks: the highest message rate by payload, and lone-message latency next to its floors."""

import pandas as pd

from ... import figure_text, units
from ...document import Table
from . import points as ring
from .compared import best_said

COPIES = "copy_engine_both_bytes_per_second"
COPIES_FROM = 4096  # smallest payload in bytes that brings a copy engine near its limit
LONE_MOST = 4096
HEADED = ("payload_bytes", "producers", "slots")  # axes with separate columns
LONE_FLOORS = {
    "word_round_trip_ns": "floor: round trip of a word",
    "lone_message_ns": "floor: round trip of 64 B",
    "lone_4k_message_ns": "floor: round trip of 4 KiB",
}


def by_payload(points: pd.DataFrame) -> Table | None:
    """One line for each measured payload, number of host threads and kind of slots."""
    found = ring.many(ring.of_ring(points))
    rows, with_copies = [], any(COPIES in limits for limits in found.get("limits", ()))
    for payload in sorted(set(found.get("payload_bytes", ()))):
        at = found[found["payload_bytes"] == payload]
        for producers in sorted({at["producers"].min(), at["producers"].max()}):
            some = at[at["producers"] == producers]
            kinds = {ring.used(point, "slots") for _, point in some.iterrows()}
            for slots in sorted(kinds, key=ring.sort_key("slots")):
                chosen = ring.using(some, "slots", slots)
                point = ring.best(chosen, "messages_per_second")
                if point is not None:
                    rows.append(_line(chosen, point, slots, with_copies))
    columns = ["payload", "host threads", "slots", "peak verified messages", "each way", "of its ceiling"]
    columns += ["of both copy engines"] if with_copies else []
    return Table(columns, rows, {1, *range(3, len(columns))}) if rows else None


def _line(candidates: pd.DataFrame, point: pd.Series, slots: str, with_copies: bool) -> list[str]:
    bound = figure_text.bound(point, True)
    share = units.percent(point["messages_per_second_ratio"])
    name = point["messages_per_second_bound"]
    line = [
        units.size(point["payload_bytes"]),
        units.number(point["host_threads"]),
        units.NOTHING if slots in ring.UNSET else slots,  # old rows do not record the queue's choice
        best_said(candidates, point, "messages_per_second", units.messages_per_second, True, HEADED),
        bound + units.bytes_per_second(point["bytes_per_second"]),
        f"{bound if name else ''}{share}\n{name}".strip(),
    ]
    if not with_copies:
        return line
    limit = point["limits"].get(COPIES)
    near = limit and point["payload_bytes"] >= COPIES_FROM
    return [*line, bound + units.percent(point["bytes_per_second"] / limit) if near else units.NOTHING]


def alone(points: pd.DataFrame) -> Table | None:
    """One line for each payload up to 4 KiB: the point with the lowest p50."""
    found = ring.lone(ring.of_ring(points))
    found = found[found["payload_bytes"] <= LONE_MOST] if len(found) else found
    floors = {name: title for name, title in LONE_FLOORS.items() if any(name in one for one in found.get("limits", ()))}
    rows = []
    for payload in sorted(set(found.get("payload_bytes", ()))):
        at = found[found["payload_bytes"] == payload]
        point = ring.best(at, "p50", largest=False)
        if point is not None:
            p99 = figure_text.figure(units.nanoseconds, point, "p99", False)
            rows.append([units.size(payload), best_said(at, point, "p50", units.nanoseconds, False), p99])
            rows[-1] += [units.nanoseconds(point["limits"].get(name)) for name in floors]
    columns = ["payload", "p50", "p99", *floors.values()]
    return Table(columns, rows, set(range(1, len(columns)))) if rows else None
