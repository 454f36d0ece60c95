"""Synthetic result rows of `feeding`: closed loads, open loads, capacity searches, the ring's axes and transfers. A
small model of the machine with seeded noise replaces recorded runs. Times are in ns, sizes in bytes and rates per
second."""

import hashlib
import json
import lzma
from pathlib import Path

import numpy as np

from analysis import catalogue
from analysis.histogram import bucket_bounds

LIMITS = {
    "launch_sync_ns": 6200.0, "copy_launch_copy_ns": 9100.0, "word_round_trip_ns": 1800.0, "redis_round_trip_ns": 14000.0,
    "lone_message_ns": 2100.0, "copy_engine_both_bytes_per_second": 50e9, "sm_echo_bytes_per_second": 41e9,
    "redis_list_push_per_second": 5.2e6, "redis_stream_add_per_second": 9e5, "host_copy_bytes_per_second": 12e9,
}  # fmt: skip
# queue -> lone latency, peak message rate, peak byte rate, peak rate of an open load, ceiling, floor, threads, SMs
QUEUES = {
    "gpu_ring": (3100.0, 26e6, 39e9, 20e6, "sm_echo_bytes_per_second", "word_round_trip_ns", 2, 16),
    "host_polled": (11500.0, 9e6, 43e9, 5e6, "copy_engine_both_bytes_per_second", "copy_launch_copy_ns", 3, 0),
    "redis_list": (52e3, 1.3e6, 0.9e9, 4e5, "redis_list_push_per_second", "redis_round_trip_ns", 3, 0),
    "redis_stream": (61e3, 2.2e5, 0.6e9, 1.5e5, "redis_stream_add_per_second", "redis_round_trip_ns", 3, 0),
    "null": (180.0, 42e6, 90e9, 30e6, "host_copy_bytes_per_second", "thread_round_trip_ns", 2, 0),
}
SETTINGS = {"seconds": 0.5, "warmup_seconds": 0.1, "messages": 0, "seed": 1, "repetitions": 3, "pinned_threads": False}
TIME = {"started": "2026-11-21T08:00:00Z", "duration_seconds": 0.7}
# The output of `feedrate list --json`, from the committed results. It has four experiments.
CATALOGUE = json.loads(lzma.decompress((Path(__file__).parents[2] / "results/reference/h200/overlap/catalogue.json.xz").read_bytes()))
METRICS = catalogue.merged([CATALOGUE]).experiment("feeding").compared
RUNS: dict[str, dict] = {}  # all runs by id; `write` adds the runs of its rows to the file
LIMITED = "generator-bound: 97 % of the rate of the load generator alone"


def environment(gpu: str | None = "NVIDIA H200", **changes) -> dict:
    of_gpu = {"gpu_sms": 132, "gpu_memory_bytes": 141 << 30, "driver_version": "580.159.04", "cuda_driver": "13.0",
              "gpu_clock_mhz": 1980, "gpu_memory_clock_mhz": 3201, "throttle_reasons": "none", "pcie_generation": 5,
              "pcie_width": 16}  # fmt: skip
    return {
        "host": "node-7", "os": "Debian GNU/Linux 12", "cpu": "Intel Xeon Platinum 8480C", "cores": 16,
        "memory_bytes": 128 << 30, "gpu": gpu, **{name: gpu and value for name, value in of_gpu.items()},
        "cuda_runtime": "13.0",
        "services": {"redis": {"version": "7.0.15", "url": "private unix socket", "config": {"save": ""}}},
        "revision": "0123abc", "compiler": "GNU 12.2.0", "build_type": "Release", "command": "bin/feedrate sweep quick",
    } | changes  # fmt: skip


def run(where=None, limits=None, settings=None, experiment: str = "feeding") -> str:
    """The id of the run with this environment, these limits and settings."""
    facts = {
        "experiment": experiment,
        "settings": SETTINGS if settings is None else settings,
        "environment": environment() if where is None else where,
        "limits": LIMITS if limits is None else limits,
        "time": {"started": "2026-11-21T07:59:58Z"},
    }
    name = row_id(facts, 0)
    RUNS[name] = {"schema": 3, "kind": "run", "id": name} | facts
    return name


def rerun(row: dict, **changes) -> dict:
    """The row as part of another run with the given `where`, `limits` or `settings`."""
    old = RUNS[row["run"]]
    known = {"where": old["environment"], "limits": old["limits"], "settings": old["settings"]}
    return row | {"run": run(**known | changes)}


def row_id(coordinates, repetition: int) -> str:
    return hashlib.sha256(json.dumps([coordinates, repetition], sort_keys=True).encode()).hexdigest()[:16]


def write(directory: Path, rows: list, catalogue: dict | None = CATALOGUE) -> Path:
    """Writes a result folder with the runs of the rows, followed by the rows; no catalogue if `catalogue` is None."""
    directory.mkdir(parents=True, exist_ok=True)
    runs = dict.fromkeys(row["run"] for row in rows if isinstance(row, dict) and row.get("run") in RUNS)
    every = [*(RUNS[name] for name in runs), *rows]
    (directory / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in every))
    if catalogue is not None:
        (directory / "catalogue.json").write_text(json.dumps(catalogue))
    return directory


def params(queue="host_polled", transfer="pinned", **changes) -> dict:
    """A point: the shared axes, and the axes of its members."""
    alone = queue in ("null", "gpu_ring")
    base = {
        "queue": queue, "transfer": "none" if alone else transfer, "workload": "echo", "device": "cuda",
        "payload_bytes": 64, "batch": 64, "window": 256, "producers": 1, "workers": 0 if alone else 1, "block": 128,
    }  # fmt: skip
    base |= {"streams": 4} if base["transfer"] in ("pinned", "mapped") else {}
    base |= {"pack": 1} if queue.startswith("redis") else {}
    base |= {"lanes": 16} if queue == "gpu_ring" else {}
    return base | changes


def bucket_index(values: np.ndarray, bits: int) -> np.ndarray:
    """The bucket of each value, ns."""
    return np.searchsorted(bucket_bounds(np.arange(6000), bits)[0], values, "right") - 1


def histogram(samples: np.ndarray, bits: int = 8, largest: int = 1 << 37) -> dict:
    """The samples (ns) in the format of rows; samples above `largest` overflow."""
    inside = samples[samples <= largest]
    index, counts = np.unique(bucket_index(inside, bits), return_counts=True)
    overflow = int(len(samples) - len(inside))
    return {"sub_bucket_bits": bits, "index": index.tolist(), "counts": counts.tolist(), "overflow": overflow}


def latency(samples: np.ndarray) -> dict:
    samples = np.asarray(samples).astype(np.int64)
    percentiles = dict(zip(("p50", "p90", "p99", "p999"), map(float, np.percentile(samples, [50, 90, 99, 99.9]))))
    ends = {"min": int(samples.min()), "mean": float(samples.mean()), "max": int(samples.max())}
    return ends | percentiles | {"samples": len(samples), "sampled_every": 1, "histogram": histogram(samples)}


def machine() -> dict:
    """The `machine` of a row, for a phase of half a second on a GPU."""
    gpu = {"sm_clock_mhz": 1980, "memory_clock_mhz": 3201, "throttle_reasons": [], "power_w": 231.4, "utilisation": 1.0,
           "memory_utilisation": 0.04, "temperature_c": 41, "pcie_rx_bytes_per_second": 41e9,
           "pcie_tx_bytes_per_second": 42e9}  # fmt: skip
    summary = {"sm_clock_mhz": {"min": 1980, "mean": 1980, "max": 1980}, "sm_clock_limit_mhz": 1980, "energy_j": 116.2}
    host = {"cores": 2, "busy_cores": 1.5, "own_cores": 1.2, "other_cores": 0.3, "steal_share": 0.001,
            "steal_share_highest_core": 0.002, "per_core_busy": [1.0, 0.5],
            "context_switches": {"voluntary": 120, "involuntary": 3, "system": 4000}}  # fmt: skip
    samples = [{"t": t, "gpu": dict(gpu)} for t in (0.0, 0.501)]
    cost = {"sample_cost_seconds_max": 0.043, "sample_cpu_seconds_max": 0.0004}
    return {"period_seconds": 1.0, "samples": samples, "gpu": gpu | summary, "host": host, "disturbances": []} | cost


def cell(
    point: dict, repetition: int = 0, rate: float | None = None, p50: float | None = None, p99: float | None = None,
    speed: float = 1.0, slowness: float = 1.0, samples: int = 1000, where: dict | None = None, **changes,
) -> dict:  # fmt: skip
    """One ok row. `rate`, `p50` and `p99` replace values of the model; `speed` multiplies the rate and `slowness` the
    times; `changes` are changes to the row."""
    generator = np.random.default_rng(int(row_id(point, repetition), 16))
    alone, most_messages, most_bytes, _, ceiling, floor, threads, sms = QUEUES[point["queue"]]
    payload, window = point["payload_bytes"], point["window"]
    share = {"pageable": 0.45, "mapped": 0.8}.get(point["transfer"], 1.0) * (1 - 0.1 * abs(np.log2(point["block"] / 256)))
    modelled = speed * share * min(window * 1e9 / alone, 1 / (1 / most_messages + payload / most_bytes))
    rate = modelled * generator.normal(1, 0.01) if rate is None else rate
    typical = slowness * max(alone / share + payload / most_bytes * 1e9, window / modelled * 1e9)
    outliers = np.where(generator.random(samples) < 0.002, 6, 1)
    measured = latency(typical * (0.85 + generator.gamma(1.5, 0.1, samples)) * outliers)
    measured |= {name: value for name, value in (("p50", p50), ("p99", p99)) if value is not None}
    least, most = LIMITS.get(floor, 160.0), LIMITS[ceiling] / (payload if "bytes" in ceiling else 1)
    sent = int(modelled * 0.5)
    counts = {"sent": sent, "received": sent, "lost": 0, "duplicated": 0, "corrupted": 0, "reordered": 0}
    parts = {"sent": 0.05, "dequeued": 0.2, "copied_in": 0.2, "kernel_end": 0.25, "copied_out": 0.2, "collected": 0.1}
    stages = {name: {one: part * measured[one] for one in ("p50", "p99", "mean")} for name, part in parts.items()}
    return {
        "schema": 3, "kind": "cell", "experiment": "feeding", "run": run(where), "id": row_id(point, repetition),
        "repetition": repetition, "status": "ok", "cause": "", "reason": "", "params": point,
        "figures": {"messages_per_second": rate, "bytes_per_second": rate * payload, "latency_ns": measured},
        "bounds": {
            "messages_per_second": {"bound": of_ceiling(ceiling, payload), "value": most, "ratio": rate / most},
            "latency_ns": {"bound": {"floor": floor}, "value": least, "ratio": measured["p50"] / least},
        },
        "details": {
            "counts": counts, "throughput_seconds": 0.5,
            "driver": {"messages_per_second": 42e6, "ratio": rate / 42e6}, "stages_ns": stages,
        },
        "cost": {
            "host_threads": threads, "spinning_threads": threads, "sms": sms, "order": "per producer", "durable": False,
            "delivery": "at least once" if point["queue"] == "redis_stream" else "exactly once in process",
            "batch": point["batch"], "window": window,
        },
        "time": dict(TIME),
    } | changes  # fmt: skip


def repeated(queue="host_polled", rates=(1e6,), p50=1e4, p99=2e4, transfer="pinned", **changes) -> list[dict]:
    """Repetitions of one point. Each figure is one number or one number per repetition."""
    count = max(len(one) for one in (rates, p50, p99) if isinstance(one, tuple))
    each = [one if isinstance(one, tuple) and len(one) == count else (np.ravel(one)[-1],) * count for one in (rates, p50, p99)]
    point = params(queue, transfer, **changes)
    return [cell(point, number, *map(float, figures)) for number, figures in enumerate(zip(*each))]


CAUSES = {"failed": "error", "skipped": "impossible", "unsustainable": "backlog"}


def spoilt(row: dict, cause: str, reason: str = "because", status: str = "invalid") -> dict:
    """The row with this status, cause and reason, including its measured values."""
    return row | {"status": status, "cause": cause, "reason": reason}


def limited(some: list[dict]) -> list[dict]:
    """The rows, marked as limited by the load generator."""
    return [row if "search" in row else spoilt(row, "driver_bound", LIMITED) for row in some]


def not_ok(point: dict, status: str, reason: str, cause: str = "wrong_results", where=None, **counts) -> dict:
    """A row that was not measured (skipped), was aborted (failed), or ran and does not count (invalid)."""
    row = spoilt(cell(point, where=where), CAUSES.get(status, cause), reason, status)
    del row["bounds"]
    if counts:
        row["figures"] = {"latency_ns": row["figures"]["latency_ns"]}
        row["details"]["counts"] |= counts
    else:
        del row["figures"], row["details"]
    return row


def attempt(row: dict, number: int = 0, **changes) -> dict:
    """A try of the search that found the row's settings. It is far better than any row, so that a test notices if the
    try is counted."""
    figures = row["figures"] | {"messages_per_second": 1e12, "bytes_per_second": 1e15}
    search = {"variant": "host_polled + it", "goal": "messages_per_second", "rung": 0, "try": number} | changes
    time = row["time"] | {"duration_seconds": 0.25}
    return row | {"id": row_id(row["params"], 1000 + number), "figures": figures, "search": search, "time": time}


def of_ceiling(name: str, payload: int) -> dict:
    """The bound of a message rate."""
    ceiling = {"ceiling": name}
    return {"quotient": [ceiling, {"given": "bytes", "value": payload}]} if "bytes" in name else ceiling


def limit(name: str, value: float, device: str = "cuda", where: dict | None = None) -> dict:
    unit = "ns" if name.endswith("_ns") else "bytes/s" if "bytes" in name else "1/s"
    reading = {"name": name, "value": value, "unit": unit, "scope": {"of": "gpu", "which": "0"}, "method": f"synthetic {name}"}
    return {
        "schema": 3, "kind": "limit", "run": run(where), "id": row_id({"limit": name}, 0), "status": "ok", "reason": "",
        "limit": reading, "device": device, "time": dict(TIME),
    }  # fmt: skip


# --- open loads, and searches for a capacity


def load_params(queue: str = "host_polled", rate: float = 10_000, **changes) -> dict:
    load = {"arrivals": "poisson", "rate": rate, "burst_us": 0, "pause_us": 0}
    return params(queue, **load | {"payload_mix": "none", "priority_mix": "none", "trace_file": "none"} | changes)


def load_cell(point: dict, repetition: int = 0, samples: int = 1000, **options) -> dict:
    """One row of an open load on a queue with one server: ok, or unsustainable if the rate exceeds its maximum."""
    generator = np.random.default_rng(int(row_id(point, repetition), 16))
    alone, rate, most = QUEUES[point["queue"]][0], point["rate"], QUEUES[point["queue"]][3]
    busy, back = rate / most, min(rate, most)
    service = alone * (0.85 + generator.gamma(1.5, 0.1, samples))
    if busy < 1:
        wait = generator.exponential(alone * busy / (1 - busy), samples)
    else:
        wait = generator.uniform(0, 5e8 * (1 - 1 / max(busy, 1.001)), samples)
    row = cell(point, repetition, back, samples=10, **options)
    del row["bounds"]["messages_per_second"]
    response = latency(service + wait) | {
        name: options[name] for name in ("p50", "p99") if options.get(name) is not None
    }
    row["figures"] |= {"latency_ns": response, "service_ns": latency(service), "send_lag_ns": latency(wait)}
    row["details"] |= {
        "clock": {"within_ns": 640.0, "drift_ppm": 4.1},
        "load": {
            "due": int(rate / 2), "unsent": 0, "due_per_second": rate * (1 + 0.001 * repetition),
            "own_lag_ns": {"p50": 40.0, "p99": 90.0, "max": 2000.0}, "granularity_ns": 0.0, "batch": point["batch"],
            "blocked_share": 0.0, "backlog": {"begin": 1.0, "end": 1.0, "max": 9.0, "per_second": rate - back},
        },
    }  # fmt: skip
    row["machine"] = machine()
    return backlog(row, f"the backlog grew by {rate - back:.0f} msg/s") if busy >= 1 else row


def backlog(row: dict, reason: str = "the backlog grew") -> dict:
    return spoilt(row, "backlog", reason, "unsustainable")


def late(point: dict, repetition: int = 0, **options) -> dict:
    """A row with a late generator."""
    return spoilt(load_cell(point, repetition, **options), "generator", "generator: 1 % of the messages were sent too late")


def load_sweep(repetitions=3, queues=("gpu_ring", "host_polled", "redis_list"), payloads=(64,)) -> list[dict]:
    """Open loads of several queues at all rates, from idle to far beyond saturation."""
    return [
        load_cell(load_params(queue, rate, payload_bytes=payload), repetition)
        for repetition in range(repetitions)
        for queue in queues
        for payload in payloads
        for rate in (10_000, 100_000, 1_000_000, 10_000_000)
    ]


def capacity(
    point: dict, low: int, high: int, slo: str = "p99:1ms", repetition: int = 0, probes=(), rates=(),
    undecided: bool | None = None,
) -> dict:  # fmt: skip
    """The answer of one search. `probes`: the rows that it measured; `rates`: the outcome of the tries at each rate.
    Without `undecided`, the row is one of 2026-11-23."""
    percentile, time = slo.split(":")
    bound = float(time.rstrip("ums")) * {"us": 1e3, "ms": 1e6}[time.lstrip("0123456789")]
    point = point | {"rate": 1}
    measured = cell(point, samples=10)
    tried = [
        {
            "id": row["id"], "rate": row["params"]["rate"], "kept": row["status"] == "ok", "why": row["reason"],
            "disturbed": row["cause"] == "disturbed",
        }
        for row in probes
    ]  # fmt: skip
    found = {"low": low, "high": high, "limit": "p99 2.22 ms" if high else "", "resolution": 0.05, "probes": tried}
    if undecided is not None:
        between = [one for one in rates if one["rate"] > low and (one["rate"] < high or not high)] if undecided else []
        disturbed = sum(one["disturbed"] for one in tried)
        found |= {"undecided": undecided, "between": between, "tries": len(tried), "disturbed": disturbed}
    return {name: measured[name] for name in ("schema", "experiment", "run", "cost", "time")} | {
        "kind": "capacity", "id": row_id(point | {"slo": slo}, repetition), "repetition": repetition, "status": "ok",
        "cause": "", "reason": "", "params": point, "slo": {"percentile": percentile, "bound_ns": bound, "text": slo},
        "capacity": found | ({"rates": list(rates)} if rates else {}),
    }  # fmt: skip


# --- the ring's axes, and transfers


OWN = {"pollers": 0, "mirrors": 0, "granularity": "auto", "notify": "auto", "slots": "auto", "results": "in_order",
       "ring_idle": "spin", "slot_bytes": 0, "capacity": 0}  # fmt: skip
CHOSEN = {"mirrors": "1", "notify": "counter", "pollers": "2", "slots": "pinned"}


def ring(queue="gpu_ring", repetition=0, rate=None, p50=None, p99=None, where=None, **changes) -> dict:
    """An ok row of the `ring` spec. The ring's choices follow the requested values."""
    transfer = changes.pop("transfer", "pinned")
    own = OWN if queue == "gpu_ring" else {"capacity": 0}
    row = cell(params(queue, transfer, **own | changes), repetition, rate, p50, p99, samples=50, where=where)
    if queue == "gpu_ring":
        asked = {axis: str(row["params"][axis]) for axis in CHOSEN}
        row["chosen"] = {axis: CHOSEN[axis] if asked[axis] in ("0", "auto") else asked[axis] for axis in CHOSEN}
    return row


def transfer(name: str, rate: float, repetition: int = 0, chosen: str = "", **where) -> dict:
    """One ok row with this rate; `chosen` is the transfer that `auto` reports."""
    shape = {"producers": 2, "workers": 2, "touch": "all", "batch": 1} | where
    point = params("host_polled", "pinned", **shape) | {"transfer": name}
    row = cell(point, repetition, rate, samples=20)
    del row["bounds"]
    return row | ({"chosen": {"transfer": chosen, "transfer-why": "by the limits"}} if chosen else {})


def winner(name: str, rates, **where) -> list[dict]:
    """The rows of the setting that a search found, measured again with these rates, and two tries of the search."""
    some = [transfer(name, rate, repetition, **where) for repetition, rate in enumerate(rates)]
    return [*some, attempt(some[0]), attempt(transfer(name, 1, **where | {"window": 64}), 1)]


# --- entire runs


def sweep(repetitions: int = 2, device: str = "cuda", gpu: str | None = "NVIDIA H200") -> list[dict]:
    """A complete small run: limits, every queue against payload, window and launch shape, and a row for each status
    that is not ok."""
    where, points = environment(gpu), []
    for queue in QUEUES:
        for name in ("pinned", "mapped") if queue == "host_polled" else ("pinned",):
            points += [params(queue, name, payload_bytes=size, device=device) for size in (64, 4096, 1 << 20)]
            points += [params(queue, name, window=window, device=device) for window in (1, 64, 4096)]
            for block in (64, 256) if queue == "host_polled" else ():
                points += [params(queue, name, payload_bytes=4096, block=block, streams=n, device=device) for n in (1, 8)]
    rows = [limit(name, value, device, where) for name, value in LIMITS.items()]
    rows += [cell(point, repetition, where=where) for repetition in range(repetitions) for point in points]
    memory = "Redis: OOM command not allowed"
    rows.append(not_ok(params("redis_list", window=8, device=device), "failed", memory, where=where))
    for size in (64, 1024, 16384, 1 << 20):
        shape = {"window": 8, "payload_bytes": size, "device": device}
        lanes = "needs a window of at least one lane each"
        rows.append(not_ok(params("gpu_ring", **shape), "skipped", lanes, where=where))
        rows.append(not_ok(params("null", **shape), "invalid", f"at 0.9{size} of the limit", where=where, reordered=2))
    return rows


def every_figure() -> list[dict]:
    """A run on a GPU and on the CPU device that has all figures of closed loads, open loads and capacities, queues
    unknown to the analysis, and a bound that is a sum."""
    some = [*sweep(1, "cpu", None), *load_sweep(1)]
    some += [capacity(load_params(queue), 1000, 1100) for queue in ("gpu_ring", "redis_list")]
    some += [late(load_params("gpu_ring", rate=123_456))]
    some += [cell(params(window=1, queue="host_polled"), 0) for _ in range(4)]
    for number, row in enumerate(some[-4:]):
        row |= {"params": row["params"] | {"queue": f"new_{number}"}, "id": f"{number:016}"}
    for row in some:
        if row["kind"] == "cell" and row["params"]["queue"] == "redis_list" and "bounds" in row:
            trips = {"product": [2, {"floor": "redis_round_trip_ns"}]}
            row["bounds"]["latency_ns"]["bound"] = {"sum": [trips, {"floor": "copy_launch_copy_ns"}]}
    return some
