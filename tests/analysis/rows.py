"""Realistic result rows for the tests: a small model of the machine stands in for recorded runs.

Times are ns, sizes bytes, rates per second. Everything is drawn from seeded generators.
"""

import hashlib
import json
from pathlib import Path

import numpy as np

from analysis.histogram import bucket_index

PAYLOADS = (64, 1024, 16384, 262144, 1048576)
WINDOWS = (1, 16, 256, 4096)
BLOCKS = (64, 128, 256, 512)
STREAMS = (1, 2, 4, 8)

FLOORS = {
    "launch_sync_ns": 6200.0,
    "graph_launch_sync_ns": 6600.0,
    "copy_launch_copy_ns": 9100.0,
    "mapped_launch_sync_ns": 7000.0,
    "word_round_trip_ns": 1800.0,
    "copy_engine_h2d_bytes_per_second": 55e9,
    "copy_engine_d2h_bytes_per_second": 56e9,
    "copy_engine_both_bytes_per_second": 46e9,
    "sm_echo_bytes_per_second": 41e9,
    "redis_round_trip_ns": 14000.0,
    "redis_list_push_per_second": 5.2e6,
    "redis_stream_add_per_second": 9e5,
    "redis_bytes_per_second": 2.1e9,
    "host_copy_bytes_per_second": 12e9,
}
# queue -> lone latency (ns), most messages a second, most bytes a second, throughput floor, latency floor, threads, SMs
QUEUES = {
    "gpu_ring": (3100.0, 26e6, 39e9, "sm_echo_bytes_per_second", "word_round_trip_ns", 2, 16),
    "host_polled": (11500.0, 9e6, 43e9, "copy_engine_both_bytes_per_second", "copy_launch_copy_ns", 3, 0),
    "redis_list": (52000.0, 1.3e6, 0.9e9, "redis_list_push_per_second", "redis_round_trip_ns", 3, 0),
    "redis_stream": (61000.0, 2.2e5, 0.6e9, "redis_stream_add_per_second", "redis_round_trip_ns", 3, 0),
    "null": (180.0, 42e6, 90e9, "host_copy_bytes_per_second", "thread_round_trip_ns", 2, 0),
}
TRANSFERS = {"pinned": 1.0, "pageable": 0.45, "mapped": 0.8, "none": 1.0}


def environment(gpu: str | None = "NVIDIA H200", **changes) -> dict:
    on_gpu = gpu is not None
    return {
        "host": "node-7",
        "os": "Debian GNU/Linux 12",
        "cpu": "Intel Xeon Platinum 8480C",
        "cores": 16,
        "memory_bytes": 128 << 30,
        "gpu": gpu,
        "gpu_sms": 132 if on_gpu else None,
        "gpu_memory_bytes": 141 << 30 if on_gpu else None,
        "driver_version": "580.159.04" if on_gpu else None,
        "cuda_driver": "13.0" if on_gpu else None,
        "cuda_runtime": "13.0",
        "gpu_clock_mhz": 1980 if on_gpu else None,
        "gpu_memory_clock_mhz": 3201 if on_gpu else None,
        "throttle_reasons": "none" if on_gpu else None,
        "pcie_generation": 5 if on_gpu else None,
        "pcie_width": 16 if on_gpu else None,
        "redis": {"version": "7.0.15", "url": "private unix socket", "config": {"save": "", "appendonly": "no"}},
        "revision": "0123abc",
        "compiler": "GNU 12.2.0",
        "build_type": "Release",
        "command": "bin/feedrate sweep quick",
    } | changes


def params(queue="host_polled", transfer="pinned", **changes) -> dict:
    base = {
        "queue": queue,
        "transfer": transfer,
        "workload": "echo",
        "device": "cuda",
        "payload_bytes": 64,
        "batch": 64,
        "window": 256,
        "producers": 1,
        "workers": 1,
        "streams": 4,
        "block": 128,
        "pack": 1,
        "lanes": 0,
        "flops_per_byte": 0,
    }
    if queue in ("null", "gpu_ring"):
        base |= {"transfer": "none", "streams": 0, "workers": 0}
    if queue == "gpu_ring":
        base |= {"lanes": 16}
    return base | changes


def histogram(samples: np.ndarray, bits: int = 8, largest: int = 1 << 37) -> dict:
    """The samples (ns) as a row holds them; those above `largest` overflow."""
    inside = samples[samples <= largest]
    index, counts = np.unique(bucket_index(inside, bits), return_counts=True)
    return {
        "sub_bucket_bits": bits,
        "index": index.tolist(),
        "counts": counts.tolist(),
        "overflow": int(len(samples) - len(inside)),
    }


def latency(samples: np.ndarray) -> dict:
    p50, p90, p99, p999 = (float(value) for value in np.percentile(samples, [50, 90, 99, 99.9]))
    return {
        "min": int(samples.min()),
        "mean": float(samples.mean()),
        "p50": p50,
        "p90": p90,
        "p99": p99,
        "p999": p999,
        "max": int(samples.max()),
        "samples": len(samples),
        "sampled_every": 1,
        "histogram": histogram(samples),
    }


def row_id(coordinates: dict, repetition: int) -> str:
    return hashlib.sha256(json.dumps([coordinates, repetition], sort_keys=True).encode()).hexdigest()[:16]


def machine() -> dict:
    """A row's `machine`, of a phase of half a second on a GPU."""
    gpu = {
        "sm_clock_mhz": 1980,
        "memory_clock_mhz": 3201,
        "throttle_reasons": [],
        "power_w": 231.4,
        "utilisation": 1.0,
        "memory_utilisation": 0.04,
        "temperature_c": 41,
        "pcie_rx_bytes_per_second": 41e9,
        "pcie_tx_bytes_per_second": 42e9,
    }
    summary = gpu | {"sm_clock_mhz": {"min": 1980, "mean": 1980, "max": 1980}, "sm_clock_limit_mhz": 1980}
    return {
        "period_seconds": 1.0,
        "samples": [{"t": t, "gpu": dict(gpu)} for t in (0.0, 0.501)],
        "gpu": summary | {"energy_j": 116.2},
        "host": {
            "cores": 2,
            "busy_cores": 1.5,
            "own_cores": 1.2,
            "other_cores": 0.3,
            "steal_share": 0.001,
            "steal_share_highest_core": 0.002,
            "per_core_busy": [1.0, 0.5],
            "context_switches": {"voluntary": 120, "involuntary": 3, "system": 4000},
        },
        "disturbances": [],
        "sample_cost_seconds_max": 0.043,
        "sample_cpu_seconds_max": 0.0004,
    }


def cell(
    coordinates: dict,
    repetition: int = 0,
    speed: float = 1.0,
    slowness: float = 1.0,
    samples: int = 2000,
    where: dict | None = None,
) -> dict:
    """One ok row. `speed` multiplies the throughput and `slowness` the latencies, for planted differences."""
    generator = np.random.default_rng(int(row_id(coordinates, repetition), 16))
    alone, most_messages, most_bytes, floor, latency_floor, threads, sms = QUEUES[coordinates["queue"]]
    share = TRANSFERS[coordinates["transfer"]]
    payload, window = coordinates["payload_bytes"], coordinates["window"]
    by_shape = (1 - 0.15 * abs(np.log2(max(coordinates["block"], 1) / 256)) / 3) * (
        1 - 0.6 / (1 + (coordinates["streams"] or 4))
    )
    peak = share * by_shape / (1 / most_messages + payload / most_bytes)
    rate = speed * min(window * 1e9 / alone, peak) * generator.normal(1, 0.01)
    typical = slowness * max(alone / share + payload / most_bytes * 1e9, window / rate * 1e9)
    spread = typical * (0.85 + generator.gamma(1.5, 0.1, samples)) * np.where(generator.random(samples) < 0.002, 6, 1)
    sent = int(rate * 0.5)
    floor_rate = FLOORS.get(floor, 12e9) / (payload if "bytes" in floor else 1)
    measured = latency(spread.astype(np.int64))
    stage_names = ("sent", "dequeued", "copied_in", "kernel_end", "copied_out", "collected")
    stages = dict(zip(stage_names, (0.05, 0.2, 0.2, 0.25, 0.2, 0.1)))
    return {
        "schema": 1,
        "kind": "cell",
        "id": row_id(coordinates, repetition),
        "repetition": repetition,
        "status": "ok",
        "reason": "",
        "params": coordinates,
        "run": {
            "seconds": 0.5,
            "warmup_seconds": 0.1,
            "messages": 0,
            "seed": 1,
            "repetitions": 3,
            "pinned_threads": False,
        },
        "environment": where or environment(),
        "floors": FLOORS,
        "bound": {
            "throughput": {"floor": floor, "value_messages_per_second": floor_rate, "ratio": rate / floor_rate},
            "latency": {
                "floor": latency_floor,
                "value_ns": FLOORS.get(latency_floor, 160.0),
                "ratio": measured["p50"] / FLOORS.get(latency_floor, 160.0),
            },
            "driver": {"messages_per_second": 42e6, "ratio": rate / 42e6},
        },
        "counts": {"sent": sent, "received": sent, "lost": 0, "duplicated": 0, "corrupted": 0, "reordered": 0},
        "throughput": {"messages_per_second": rate, "bytes_per_second": rate * payload, "seconds": 0.5},
        "latency_ns": measured,
        "stages_ns": {
            name: {"p50": part * measured["p50"], "p99": part * measured["p99"], "mean": part * measured["mean"]}
            for name, part in stages.items()
        },
        "cost": {
            "host_threads": threads,
            "spinning_threads": threads,
            "sms": sms,
            "delivery": "at least once" if coordinates["queue"] == "redis_stream" else "exactly once in process",
            "order": "per producer",
            "durable": False,
            "batch": coordinates["batch"],
            "window": window,
        },
        "time": {"started": "2026-11-21T08:00:00Z", "duration_seconds": 0.7},
    }


def not_ok(coordinates: dict, status: str, reason: str, where: dict | None = None, **counts) -> dict:
    """A row that did not make it: nothing ran (skipped), broke off (failed), or ran and does not count (invalid)."""
    row = cell(coordinates, where=where) | {"status": status, "reason": reason}
    for name in ("throughput", "bound") if counts else ("throughput", "bound", "latency_ns", "stages_ns", "counts"):
        del row[name]
    if counts:
        row["counts"] = row["counts"] | counts
    return row


def attempt(coordinates: dict, number: int = 0, **changes) -> dict:
    """One try of a search for the best settings: far better than any row, so that it shows wherever it counts."""
    row = cell(coordinates, 1000 + number, speed=1e6)
    row["latency_ns"] |= {"p50": 1.0, "p99": 1.0}
    search = {"variant": "host_polled + pinned", "goal": "messages_per_second", "rung": 2, "try": number}
    return row | {"search": search | changes, "time": row["time"] | {"duration_seconds": 0.25}}


def floor(name: str, value: float, device: str = "cuda", where: dict | None = None) -> dict:
    unit = "ns" if name.endswith("_ns") else "bytes/s" if "bytes" in name else "1/s"
    return {
        "schema": 1,
        "kind": "floor",
        "id": row_id({"floor": name}, 0),
        "status": "ok",
        "reason": "",
        "floor": {
            "name": name,
            "value": value,
            "unit": unit,
            "description": f"synthetic {name}",
            "p50": value,
            "p99": value * 1.3,
        },
        "device": device,
        "environment": where or environment(),
        "time": {"started": "2026-11-21T08:00:00Z", "duration_seconds": 0.2},
    }


def sweep_points(device: str = "cuda") -> list[dict]:
    """Every queue with its transfers against payload and window, and block x streams where they apply."""
    found = []
    for queue in QUEUES:
        for transfer in ("none",) if queue in ("null", "gpu_ring") else ("pageable", "pinned", "mapped"):
            base = {"device": device}
            found += [params(queue, transfer, payload_bytes=payload, **base) for payload in PAYLOADS]
            found += [params(queue, transfer, window=window, **base) for window in WINDOWS]
            if queue == "host_polled":
                found += [
                    params(queue, transfer, payload_bytes=16384, block=block, streams=streams, **base)
                    for block in BLOCKS
                    for streams in STREAMS
                ]
    return list({json.dumps(point, sort_keys=True): point for point in found}.values())


def sweep(repetitions: int = 3, device: str = "cuda", gpu: str | None = "NVIDIA H200", **planted) -> list[dict]:
    """The rows of a whole small run: floors, ok cells, and one of each way not to be ok."""
    where = environment(gpu)
    rows = [floor(name, value, device, where) for name, value in FLOORS.items()]
    rows += [
        cell(point, repetition, where=where, **planted)
        for repetition in range(repetitions)
        for point in sweep_points(device)
    ]
    lanes, memory = "needs a window of at least one lane each", "Redis: OOM command not allowed"
    rows.append(not_ok(params("redis_list", window=8, device=device), "failed", memory, where))
    for size in PAYLOADS:
        shape = {"window": 8, "payload_bytes": size, "device": device}
        rows.append(not_ok(params("gpu_ring", **shape), "skipped", lanes, where))
        rows.append(not_ok(params("null", **shape), "invalid", f"at 0.9{size} of the limit", where, reordered=2))
    return rows


def write(directory: Path, rows: list[dict]) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return directory
