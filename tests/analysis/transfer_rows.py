"""Made-up rows of the spec `transfers`: for each payload and batch what searches found for each transfer, with their
tries, and open loads whose batches are held back."""

import load_rows
import rows

PLACES = ((64, 1), (64, 16), (64, 256), (4096, 1), (4096, 16), (65536, 1), (65536, 16), (1 << 20, 1))
# Million messages a second of each transfer, at 64 B and a batch of 1; a batch helps `gather` more than the others.
SPEEDS = {"mapped": 2.0, "pinned": 1.0, "double_buffer": 1.1, "graph": 1.6, "batched_copy": 1.2, "gather": 1.9}
WINDOWS = (64, 256)


def params(transfer: str, payload: int = 64, batch: int = 1, **changes) -> dict:
    shape = {"payload_bytes": payload, "batch": batch, "producers": 2, "workers": 2, "touch": "all"}
    return rows.params("host_polled", "pinned", **shape | changes) | {"transfer": transfer}


def made(transfer: str, rate: float, repetition: int = 0, chosen: str = "", **where) -> dict:
    """One ok row of this rate; `chosen` is what `auto` says it took."""
    point = params(transfer, **where)
    row = rows.cell(point | {"transfer": "pinned"}, repetition, samples=50)
    row["params"], row["id"] = point, rows.row_id(point, repetition)
    row["figures"] |= {"messages_per_second": rate, "bytes_per_second": rate * point["payload_bytes"]}
    del row["bounds"]
    return row | ({"chosen": {"transfer": chosen, "transfer-why": "by the floors"}} if chosen else {})


def tried(row: dict, number: int = 0) -> dict:
    """A try of the search that found the row's settings, far faster than any row that counts."""
    figures = row["figures"] | {"messages_per_second": 1e12, "bytes_per_second": 1e15}
    search = {"variant": "host_polled + it", "goal": "messages_per_second", "rung": 0, "try": number}
    return row | {"id": rows.row_id(row["params"], 1000 + number), "figures": figures, "search": search}


def winner(transfer: str, rates, **where) -> list[dict]:
    """What a search found, measured afresh at these rates, with two of its tries."""
    some = [made(transfer, rate, repetition, **where) for repetition, rate in enumerate(rates)]
    other = made(transfer, 1, window=WINDOWS[0], **{name: value for name, value in where.items() if name != "window"})
    return [*some, tried(some[0]), tried(other, 1)]


def rate_of(transfer: str, payload: int, batch: int) -> float:
    speed = SPEEDS[transfer] * 1e6 * batch ** (0.5 if transfer == "gather" else 0.4)
    return 1 / (1 / speed + payload / (30e9 if transfer == "mapped" else 40e9))


def sweep(repetitions: int = 3, places=PLACES, auto: str = "graph") -> list[dict]:
    found = []
    for payload, batch in places:
        where = {"payload": payload, "batch": batch, "window": 256}
        for transfer in SPEEDS:
            rate = rate_of(transfer, payload, batch)
            found += winner(transfer, [rate * (1 + 0.01 * number) for number in range(repetitions)], **where)
        found += winner("auto", [rate_of(auto, payload, batch)] * repetitions, chosen=auto, **where)
    return found


def held_back(queue: str, timeout_us: int, rate: int = 1_000_000, repetition: int = 0, **options) -> dict:
    """A row of an open load whose producers hold batches back: the longer, the later the median."""
    point = load_rows.params(queue, rate, batch=256, window=8192, batch_timeout_us=timeout_us)
    row = load_rows.cell(point, repetition, samples=2000, **options)
    for percentile in ("p50", "p99"):
        row["figures"]["latency_ns"][percentile] += 500.0 * timeout_us
    return row


def timeouts(repetitions: int = 3, queues=("gpu_ring", "host_polled"), rates=(100_000, 1_000_000, 10_000_000)) -> list[dict]:
    return [
        held_back(queue, timeout, rate, repetition)
        for repetition in range(repetitions)
        for queue in queues
        for rate in rates
        for timeout in (0, 5, 20, 100)
    ]
