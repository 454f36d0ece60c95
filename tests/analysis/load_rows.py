"""Realistic rows of open loads and of searches for a capacity: a queue with one server stands in for recorded runs."""

import numpy as np
import rows

SECONDS = 0.5
MOST = {"gpu_ring": 20e6, "host_polled": 5e6, "redis_list": 4e5, "redis_stream": 1.5e5, "null": 30e6}  # messages/s
RATES = (10_000, 100_000, 1_000_000, 10_000_000)


def params(queue: str = "host_polled", rate: int = 10_000, **changes) -> dict:
    load = {"arrivals": "poisson", "rate": rate, "burst_us": 0, "pause_us": 0}
    load |= {"payload_mix": "none", "priority_mix": "none", "trace_file": "none"}
    return rows.params(queue, **load | changes)


def cell(coordinates: dict, repetition: int = 0, samples: int = 20_000, slowness: float = 1.0, **options) -> dict:
    """One row of an open load: ok, or unsustainable where more is due than the queue can do."""
    generator = np.random.default_rng(int(rows.row_id(coordinates, repetition), 16))
    alone, rate, most = rows.QUEUES[coordinates["queue"]][0], coordinates["rate"], MOST[coordinates["queue"]]
    busy = rate / most
    service = slowness * alone * (0.85 + generator.gamma(1.5, 0.1, samples))
    longest = SECONDS * 1e9 * (1 - 1 / max(busy, 1.001))
    wait = (
        generator.exponential(alone * busy / (1 - busy), samples)
        if busy < 1
        else generator.uniform(0, longest, samples)
    )
    back = min(rate, most)
    row = rows.cell(coordinates, repetition, **options)
    del row["bounds"]["messages_per_second"]
    row["machine"] = rows.machine()
    row["figures"] = {
        "messages_per_second": back,
        "bytes_per_second": back * coordinates["payload_bytes"],
        "latency_ns": rows.latency((service + wait).astype(np.int64)),
        "service_ns": rows.latency(service.astype(np.int64)),
        "send_lag_ns": rows.latency(wait.astype(np.int64)),
    }
    row["details"] |= {
        "clock": {"within_ns": 640.0, "drift_ppm": 4.1},
        "load": {
            "due": int(rate * SECONDS),
            "unsent": 0,
            "due_per_second": rate * (1 + 0.001 * repetition),
            "own_lag_ns": {"p50": 40.0, "p99": 90.0, "max": 2000.0},
            "granularity_ns": 0.0,
            "batch": coordinates["batch"],
            "blocked_share": 0.0,
            "backlog": {"begin": 1.0, "end": 1.0, "max": 9.0, "per_second": rate - back},
        },
    }
    if busy >= 1:
        return rows.spoilt(row, "backlog", f"the backlog grew by {rate - back:.0f} msg/s", "unsustainable")
    return row


def late(coordinates: dict, repetition: int = 0) -> dict:
    """A row in which the generator was too late."""
    why = "generator: 1 % of the messages were sent 15.5 µs or more too late by its own fault"
    return rows.spoilt(cell(coordinates, repetition), "generator", why)


def capacity(
    coordinates: dict, low: int, high: int, slo: str = "p99:1ms", repetition: int = 0, probes: list[dict] = (),
    rates: list[dict] = (),
) -> dict:
    """One search's answer. `probes`: the rows that it measured; `rates`: what the tries of each rate came to."""
    percentile, time = slo.split(":")
    scale = {"us": 1e3, "ms": 1e6}[time.lstrip("0123456789")]
    why = "p99 2.22 ms"
    point = coordinates | {"rate": 1}
    told = rows.cell(point, samples=10)
    return {name: told[name] for name in ("schema", "experiment", "run", "cost", "time")} | {
        "kind": "capacity",
        "id": rows.row_id(point | {"slo": slo}, repetition),
        "repetition": repetition,
        "status": "ok",
        "cause": "",
        "reason": "",
        "params": point,
        "slo": {"percentile": percentile, "bound_ns": float(time.rstrip("ums")) * scale, "text": slo},
        "capacity": {
            "low": low,
            "high": high,
            "limit": why if high else "",
            "resolution": 0.05,
            "probes": [
                {
                    "id": row["id"],
                    "rate": row["params"]["rate"],
                    "sustained": row["status"] == "ok",
                    "why": row["reason"],
                }
                for row in probes
            ],
        }
        | ({"rates": list(rates)} if rates else {}),
    }  # fmt: skip


def sweep(repetitions: int = 3, queues=("gpu_ring", "host_polled", "redis_list"), payloads=(64,)) -> list[dict]:
    """Open loads of several queues at all rates, from idle to far too much."""
    return [
        cell(params(queue, rate, payload_bytes=payload), repetition)
        for repetition in range(repetitions)
        for queue in queues
        for payload in payloads
        for rate in RATES
    ]
