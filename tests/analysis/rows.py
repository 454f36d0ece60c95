"""Realistic result rows for the tests: a small model of the machine stands in for recorded runs.

Times are ns, sizes bytes, rates per second. Everything is drawn from seeded generators.
"""

import hashlib
import json
from pathlib import Path

import numpy as np

from analysis import catalogue
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
SETTINGS = {
    "seconds": 0.5,
    "warmup_seconds": 0.1,
    "messages": 0,
    "seed": 1,
    "repetitions": 3,
    "pinned_threads": False,
}
# What `feedrate list --json` tells: the catalogue beside the committed rows.
CATALOGUE = json.loads((Path(__file__).parents[2] / "results/reference/h200/catalogue.json").read_text())
METRICS = catalogue.merged([CATALOGUE]).experiment("feeding").compared
RUNS: dict[str, dict] = {}  # every run that some row names; `write` puts those of its rows into the file
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
    """A point: the shared axes, and those of the members that it is made of."""
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
        "block": 128,
    }
    if queue in ("null", "gpu_ring"):
        base |= {"transfer": "none", "workers": 0}
    base |= {"streams": 4} if base["transfer"] in ("pinned", "mapped") else {}
    base |= {"pack": 1} if queue.startswith("redis") else {}
    base |= {"lanes": 16} if queue == "gpu_ring" else {}
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
        1 - 0.6 / (1 + coordinates.get("streams", 4))
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
        "schema": 2,
        "kind": "cell",
        "experiment": "feeding",
        "run": run(where),
        "id": row_id(coordinates, repetition),
        "repetition": repetition,
        "status": "ok",
        "cause": "",
        "reason": "",
        "params": coordinates,
        "figures": {
            "messages_per_second": rate,
            "bytes_per_second": rate * payload,
            "latency_ns": measured,
        },
        "bounds": {
            "messages_per_second": {"floor": floor, "value": floor_rate, "ratio": rate / floor_rate},
            "latency_ns": {
                "floor": latency_floor,
                "value": FLOORS.get(latency_floor, 160.0),
                "ratio": measured["p50"] / FLOORS.get(latency_floor, 160.0),
            },
        },
        "details": {
            "counts": {"sent": sent, "received": sent, "lost": 0, "duplicated": 0, "corrupted": 0, "reordered": 0},
            "throughput_seconds": 0.5,
            "driver": {"messages_per_second": 42e6, "ratio": rate / 42e6},
            "stages_ns": {
                name: {"p50": part * measured["p50"], "p99": part * measured["p99"], "mean": part * measured["mean"]}
                for name, part in stages.items()
            },
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


CAUSES = {"failed": "error", "skipped": "impossible", "unsustainable": "backlog"}


def spoilt(row: dict, cause: str, reason: str, status: str = "invalid") -> dict:
    """The row as it would be had it gone wrong in this way, with all that it measured."""
    return row | {"status": status, "cause": cause, "reason": reason}


def not_ok(
    coordinates: dict, status: str, reason: str, where: dict | None = None, cause: str = "wrong_results", **counts
) -> dict:
    """A row that did not make it: nothing ran (skipped), broke off (failed), or ran and does not count (invalid)."""
    row = spoilt(cell(coordinates, where=where), CAUSES.get(status, cause), reason, status)
    del row["bounds"]
    if counts:
        row["figures"] = {"latency_ns": row["figures"]["latency_ns"]}
        row["details"]["counts"] |= counts
    else:
        del row["figures"], row["details"]
    return row


def attempt(coordinates: dict, number: int = 0, **changes) -> dict:
    """One try of a search for the best settings: far better than any row, so that it shows wherever it counts."""
    row = cell(coordinates, 1000 + number, speed=1e6)
    row["figures"]["latency_ns"] |= {"p50": 1.0, "p99": 1.0}
    search = {"variant": "host_polled + pinned", "goal": "messages_per_second", "rung": 2, "try": number}
    return row | {"search": search | changes, "time": row["time"] | {"duration_seconds": 0.25}}


def floor(name: str, value: float, device: str = "cuda", where: dict | None = None) -> dict:
    unit = "ns" if name.endswith("_ns") else "B/s" if "bytes" in name else "1/s"
    return {
        "schema": 2,
        "kind": "floor",
        "run": run(where),
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
        "time": {"started": "2026-11-21T08:00:00Z", "duration_seconds": 0.2},
    }


def run(
    where: dict | None = None, floors: dict | None = None, settings: dict | None = None, experiment: str = "feeding"
) -> str:
    """The id of the run with this environment, these floors and settings."""
    facts = {
        "experiment": experiment,
        "settings": SETTINGS if settings is None else settings,
        "environment": environment() if where is None else where,
        "floors": FLOORS if floors is None else floors,
        "time": {"started": "2026-11-21T07:59:58Z"},
    }
    name = row_id(facts, 0)
    RUNS[name] = {"schema": 2, "kind": "run", "id": name} | facts
    return name


def rerun(row: dict, **changes) -> None:
    """The row as if of another run: `where`, `floors` or `settings` as they are given."""
    old = RUNS[row["run"]]
    known = {"where": old["environment"], "floors": old["floors"], "settings": old["settings"]}
    row["run"] = run(**known | changes)


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


def with_runs(rows: list[dict]) -> list[dict]:
    """The rows after the runs that they name."""
    runs = dict.fromkeys(row["run"] for row in rows if isinstance(row, dict) and row.get("run") in RUNS)
    return [*(RUNS[name] for name in runs), *rows]


def write(directory: Path, rows: list[dict], told: dict | None = CATALOGUE) -> Path:
    """A result folder; without a catalogue where that is None."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in with_runs(rows)))
    if told is not None:
        (directory / "catalogue.json").write_text(json.dumps(told))
    return directory
