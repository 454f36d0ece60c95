"""Synthetic rows of the `launch`, `overlap` and `handoff` experiments."""

import copy

import numpy as np
import rows

KI, MI = 1 << 10, 1 << 20
CATALOGUE = rows.CATALOGUE


def _row(experiment: str, point: dict, repetition: int, figures: dict, **more) -> dict:
    return {
        "schema": 3, "kind": "cell", "experiment": experiment, "run": rows.run(None, LAUNCH_LIMITS, experiment=experiment),
        "id": rows.row_id({experiment: point}, repetition), "repetition": repetition, "status": "ok", "cause": "",
        "reason": "", "params": point, "figures": figures, "time": dict(rows.TIME),
        "cost": {"host_threads": 1, "spinning_threads": 1, "sms": 0},
    } | more  # fmt: skip


def skipped(row: dict, reason: str) -> dict:
    row = rows.spoilt(row, "impossible", reason, "skipped")
    return {name: value for name, value in row.items() if name not in ("figures", "bounds", "details")}


def _times(value: float, samples: int = 20) -> dict:
    return rows.latency(np.full(samples, round(value)))


# --- launch: the analysis has no section for it


LAUNCH_LIMITS = {"launch_sync_ns": 6200.0, "launch_per_second": 3e6}
FORMS = {"plain": 4e5, "graph": 2.5e6, "pdl": 9e5}  # kernels per second


def with_figure(figure: dict, experiment: str = "launch") -> dict:
    """The catalogue with an additional figure of an experiment."""
    catalogue = copy.deepcopy(CATALOGUE)
    (one,) = (one for one in catalogue["experiments"] if one["name"] == experiment)
    one["figures"].append({"distribution": False, "headline": True, "description": figure["name"]} | figure)
    return catalogue


def launch(form: str = "plain", repetition: int = 0, speed: float = 1.0, threads: int = 1, kernels: int = 1, **figures):
    """One ok row; `speed` multiplies the rate and divides the times. `figures` are additional figures."""
    point = {"form": form, "device": "cuda", "kernels": kernels, "streams": 1, "threads": threads, "block": 32}
    generator = np.random.default_rng(int(rows.row_id(point, repetition), 16))
    rate = speed * FORMS[form] * threads**0.5 * generator.normal(1, 0.005)
    times = rows.latency(1e9 / rate * (3 + generator.gamma(1.5, 0.1, 500)))
    bounds = {"launch_per_second": (rate, 1e8), "launch_sync_ns": (times["p50"], 100.0)}
    return _row(
        "launch", point, repetition, {"kernels_per_second": rate, "round_trip_ns": times} | figures,
        bounds={
            figure: {"bound": {"ceiling" if "per" in name else "floor": name}, "value": value, "ratio": number / value}
            for figure, (name, (number, value)) in zip(("kernels_per_second", "round_trip_ns"), bounds.items())
        },
    )  # fmt: skip


def launches(repetitions: int = 5, speed: float = 1.0, **figures) -> list[dict]:
    """Rows of seven points."""
    shapes = [{"threads": 1}, {"threads": 4}]
    points = [(form, shape) for form in FORMS for shape in shapes] + [("graph", {"kernels": 64})]
    return [launch(form, n, speed, **shape, **figures) for n in range(repetitions) for form, shape in points]


# --- overlap


SLOWEST = {"quotient": [1, {"given": "slowest_stage_alone", "value": 60e-6}]}
STAGES = {
    "producer_consumer": ("generate", "process"),
    "chain": ("decode", "normalise", "reduce"),
    "copy_process_copy": ("copy in", "process", "copy out"),
}


def overlap(strategy: str = "ring", repetition: int = 0, pipeline: str = "chain", **changes) -> dict:
    """One ok row. `changes` apply to its point, or to its figures if they have a figure's name."""
    known = ("items_per_second", "speedup", "overlap_efficiency", "overlap_efficiency_alone")
    figures = {name: changes.pop(name) for name in known if name in changes}
    point = {"pipeline": pipeline, "strategy": strategy, "device": "cuda", "item_bytes": MI, "items": 64, "cost_us": 60.0,
             "balance": "even", "stage_blocks": 44}  # fmt: skip
    point |= {"stages": 3} if pipeline == "chain" else {}
    point |= {"depth": 3} if strategy in ("ring", "graph", "persistent", "peer_copy", "peer_load") else {}
    alone, noise = 60e3, 1 + 0.002 * repetition
    stages = [
        {"name": name, "rounds": 90, "alone_ns": alone * noise, "contended_ns": 1.06 * alone * noise}
        for name in STAGES[pipeline]
    ]
    speedup = (1.0 if strategy == "serial" else 2.5) * noise
    rate = speedup * 1e9 / (len(stages) * alone)
    efficiency = 0.0 if strategy == "serial" else 0.9 * noise
    modelled = dict(zip(known, (rate, speedup, efficiency, efficiency)))
    serial = 64 * len(stages) * alone
    return _row(
        "overlap", point | changes, repetition, modelled | {"run_ns": _times(64e9 / rate)} | figures,
        bounds={"items_per_second": {"bound": SLOWEST, "value": 1e9 / alone, "ratio": rate * alone / 1e9}},
        details={
            "verified": {"items": 4000, "wrong": 0}, "stages": stages, "runs": 20,
            "serial_ns": {"p50": serial, "runs": 20}, "ideal_ns": {"alone": serial / 3, "contended": serial / 2.8},
        },
    )  # fmt: skip


def nothing_to_save(row: dict, *figures: str, saved: float = 0.04) -> dict:
    """The row as measured if overlapping could save almost nothing."""
    row["details"]["no_saving"] = dict.fromkeys(figures, saved)
    for figure in figures:
        del row["figures"][figure]
    return row


# --- handoff


MOVES = ("redis_value", "shm_copy", "shm_pinned")  # the ways that move a tensor's bytes over the bus


def handoff(way: str = "store", size: int = MI, use: str = "cached", repetition: int = 0, time: float = 1e5, **changes):
    """One ok row in which every hand-off takes `time` (ns)."""
    point = {"way": way, "device": "cuda", "bytes": size, "tensors": 1, "readers": 1, "use": use, "to": "same", "reach": "map"}
    point |= changes
    held = size * point["tensors"]
    figures = {"handoff_ns": _times(time), "to_start_ns": _times(0.1 * time), "bytes_per_second": held / time * 1e9}
    figures |= {"create_ns": _times(200e3), "delete_ns": _times(40e3)} if use == "first" else {}
    bound, value = {"floor": "launch_sync_ns"}, 9e3
    if way in MOVES:
        ceilings = ({"ceiling": f"copy_engine_{way}_bytes_per_second"} for way in ("d2h", "h2d"))
        moved = [{"quotient": [{"given": "bytes", "value": held}, ceiling]} for ceiling in ceilings]
        bound, value = {"sum": [bound, *moved]}, value + held / 27
    cost = {"host_threads": 2, "spinning_threads": 2, "sms": 0}
    cost |= {"device_bytes": held * (1 + (way in MOVES)), "host_bytes": held * (way in MOVES)}
    return _row(
        "handoff", point, repetition, figures, cost=cost, details={"verified": {"tensors": 20, "wrong": 0}},
        bounds={"handoff_ns": {"bound": bound, "value": value, "ratio": time / value}},
    )  # fmt: skip


def handoffs(times, way: str = "store", size: int = MI, use: str = "cached", **changes) -> list[dict]:
    """The rows of a point, one for each time (ns)."""
    return [handoff(way, size, use, number, time, **changes) for number, time in enumerate(times)]
