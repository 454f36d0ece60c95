"""A made-up sweep of the ring, small and with figures that are easy to check by hand."""

import rows

OWN = {
    "pollers": 0,
    "mirrors": 0,
    "granularity": "auto",
    "notify": "auto",
    "slots": "auto",
    "results": "in_order",
    "ring_idle": "spin",
    "slot_bytes": 0,
    "capacity": 0,
}
CHOSEN = {"mirrors": "1", "notify": "counter", "pollers": "2", "slots": "pinned"}
BOTH = 50e9
FLOORS = rows.FLOORS | {"lone_message_ns": 2100.0, "copy_engine_both_bytes_per_second": BOTH}


def point(queue="gpu_ring", repetition=0, rate=None, p50=None, p99=None, where=None, **changes) -> dict:
    """An ok row; `rate` in messages a second, p50 and p99 in ns. What the ring chose follows what was asked for."""
    transfer = changes.pop("transfer", "none" if queue == "gpu_ring" else "pinned")
    own = OWN if queue == "gpu_ring" else {"capacity": 0}
    row = rows.cell(rows.params(queue, transfer, **(own | changes)), repetition, samples=50, where=where)
    if queue == "gpu_ring":
        row["chosen"] = {axis: str(row["params"][axis]) for axis in CHOSEN} | {
            axis: value for axis, value in CHOSEN.items() if row["params"][axis] in (0, "auto")
        }
    rows.rerun(row, floors=FLOORS)
    if rate:
        row["figures"] |= {"messages_per_second": rate, "bytes_per_second": rate * row["params"]["payload_bytes"]}
    row["figures"]["latency_ns"] |= {name: value for name, value in (("p50", p50), ("p99", p99)) if value}
    return row


def sweep() -> list[dict]:
    """Each axis once, and others beside the ring; rates and latencies are round numbers."""
    some = [point(lanes=lanes, rate=lanes * 10e6, window=8192, producers=4) for lanes in (4, 8, 16)]
    some += [point(lanes=4, producers=1, rate=30e6, window=8192)]
    for notify, share in (("counter", 1), ("flags", 2)):
        some += [point(notify=notify, batch=batch, rate=batch * share * 1e6, p50=9e3 / share) for batch in (1, 8)]
    for size, pulled, copied in ((4096, 8e6, 7e6), (65536, 5e5, 5.5e5), (1 << 20, 3.5e4, 4e4)):
        some += [point(payload_bytes=size, slots="pinned", rate=pulled, producers=4, batch=32)]
        some += [point(payload_bytes=size, slots="vram", rate=copied, producers=4, batch=256)]
    some += [point(pollers=pollers, notify="counter", rate=1e6 * pollers, batch=128) for pollers in (1, 2, 4)]
    for granularity in ("thread", "warp", "block"):
        some += [point(granularity=granularity, payload_bytes=size, rate=64e6 / size, batch=16) for size in (64, 1024)]
    some += [point(results=order, rate=2e6, window=2048) for order in ("in_order", "as_finished")]
    for idle, p50 in (("spin", 2500), ("backoff", 3000), ("park", 9000)):
        some += [point(ring_idle=idle, window=1, batch=1, p50=p50, p99=2 * p50, rate=2e5)]
        some += [point(ring_idle=idle, window=1024, batch=128, rate=3e6)]
    some += [
        point(window=1, batch=1, notify="flags", pollers=pollers, mirrors=mirrors, p50=2900, p99=4e3, rate=1e5)
        for pollers in (1, 2, 4)
        for mirrors in (1, 2, 4)
        if mirrors <= pollers
    ]
    some += [point(payload_bytes=4096, window=1, batch=1, p50=4000, p99=5000, rate=1e5)]
    some += [point(slot_bytes=size, rate=4e6, capacity=4096, window=512) for size in (64, 256)]
    for queue, rate, p50 in (("host_polled", 40e6, 10000), ("redis_list", 8e6, 50000), ("redis_stream", 4e6, 75000)):
        some += [point(queue, rate=rate, window=8192), point(queue, rate=9e4, window=1, batch=1, p50=p50)]
    some += [point("host_polled", transfer="mapped", rate=32e6, window=8192)]
    some += [point("host_polled", transfer="mapped", rate=9e4, window=1, batch=1, p50=12500)]
    return some
