"""Made-up rows of the experiment `handoff`: what it takes until another process has read a tensor."""

import copy

import numpy as np
import rows
from launch_rows import axis

KI, MI = 1 << 10, 1 << 20
LAUNCH, BUS = 9e3, 54e9  # a launch with its wait (ns), the copy engines each way (bytes a second)
# way -> time of a small tensor (ns), bytes a second of those it moves (0: none), device and host copies.
WAYS = {
    "redis_value": (220e3, 1.2e9, 2, 3),
    "shm_copy": (160e3, 4e9, 2, 1),
    "shm_pinned": (150e3, 26e9, 2, 1),
    "ipc_vmm": (153e3, 0, 1, 0),
    "ipc_pool": (156e3, 0, 1, 0),
    "ipc_legacy": (158e3, 0, 1, 0),
    "ipc_memfd": (8e3, 0, 1, 0),
    "store": (155e3, 0, 1, 0),
}
SIZES = (KI, 64 * KI, MI, 64 * MI)
ON_GPU = tuple(way for way in WAYS if way != "ipc_memfd")
SPREAD = (1.0, 1.004, 0.996)  # of three repetitions


def _figure(name: str, unit: str, better: str, distribution: bool, headline: bool) -> dict:
    bounds = {"p50": 1.5, "p99": 3} if distribution else 1.5
    return {
        "name": name, "unit": unit, "better": better, "distribution": distribution, "headline": headline,
        "unstable_from": bounds, "description": name,
    }  # fmt: skip


FIGURES = [
    _figure("handoff_ns", "ns", "lower", True, True),
    _figure("to_start_ns", "ns", "lower", True, False),
    _figure("bytes_per_second", "B/s", "higher", False, True),
    _figure("create_ns", "ns", "lower", True, False),
    _figure("delete_ns", "ns", "lower", True, False),
]


def _axis(name: str, default, **more) -> dict:
    return axis(name, default, **more) | {"experiment": "handoff"}


AXES = [
    _axis("way", "store", kind="word", values=sorted(WAYS)),
    _axis("device", "auto", kind="word", values=["auto", "cpu", "cuda"]),
    _axis("bytes", MI),
    _axis("tensors", 1),
    _axis("readers", 1),
    _axis("use", "cached", kind="word", values=["cached", "first"]),
    _axis("to", "same", kind="word", values=["same", "other"]),
    _axis("reach", "map", kind="word", values=["map", "copy"]),
]


def catalogue() -> dict:
    base = copy.deepcopy(rows.CATALOGUE)
    one = {
        "name": "handoff", "description": "how a tensor gets to another process", "variant": ["way"],
        "rate": "bytes_per_second", "time": "handoff_ns", "offered_load": None, "figures": FIGURES,
        "axes": [one["name"] for one in AXES],
    }  # fmt: skip
    ways = [{"name": name, "moves_over_bus": int(told[1] > 0)} for name, told in WAYS.items()]
    return base | {"experiments": [one], "axes": AXES, "ways": ways}


def params(way: str = "store", size: int = MI, use: str = "cached", **changes) -> dict:
    told = {"way": way, "device": "cuda", "bytes": size, "tensors": 1, "readers": 1, "use": use}
    return told | {"to": "same", "reach": "map"} | changes


def time_of(point: dict) -> float:
    """The model: new tensors take longer by a mapping, another GPU by a way over the link."""
    small, speed, *_ = WAYS[point["way"]]
    bytes_read = point["bytes"] * point["tensors"] * point["readers"]
    mapping = 50e3 * point["tensors"] if point["use"] == "first" else 0
    link = 20e3 if point["to"] == "other" and point["reach"] == "copy" else 0
    return small + mapping + link + bytes_read / 3e3 + (bytes_read / speed * 1e9 if speed else 0)


def _times(value: float) -> dict:
    return rows.latency(np.full(20, round(value)))


def cell(point: dict, repetition: int = 0, time_ns: float | None = None) -> dict:
    """One ok row, whose hand-offs all take `time_ns`, or what the model says."""
    time = time_of(point) * SPREAD[repetition % len(SPREAD)] if time_ns is None else time_ns
    _, speed, device, host = WAYS[point["way"]]
    held = point["bytes"] * point["tensors"]
    floor, least = "launch_sync_ns", LAUNCH
    if speed:
        floor += "+bytes/copy_engine_d2h+bytes/copy_engine_h2d"
        least += 2 * held / BUS * 1e9
    figures = {
        "handoff_ns": _times(time),
        "to_start_ns": _times(0.1 * time),
        "bytes_per_second": held * point["readers"] / time * 1e9,
    }
    if point["use"] == "first":
        figures |= {"create_ns": _times(200e3), "delete_ns": _times(40e3)}
    return {
        "schema": 2,
        "kind": "cell",
        "experiment": "handoff",
        "run": rows.run(None, {}, experiment="handoff"),
        "id": rows.row_id({"handoff": point}, repetition),
        "repetition": repetition,
        "status": "ok",
        "cause": "",
        "reason": "",
        "params": point,
        "figures": figures,
        "bounds": {"handoff_ns": {"floor": floor, "value": least, "ratio": time / least}},
        "details": {"verified": {"tensors": 20, "wrong": 0}},
        "cost": {
            "host_threads": 1 + point["readers"], "spinning_threads": 2, "sms": 0,
            "device_bytes": held * (1 + (device - 1) * point["readers"]), "host_bytes": held * host,
        },
        "time": {"started": "2026-11-25T08:00:00Z", "duration_seconds": 0.2},
    }  # fmt: skip


def cells(times, *told, **changes) -> list[dict]:
    """A point's rows, a time (ns) each."""
    return [cell(params(*told, **changes), number, time) for number, time in enumerate(times)]


def skipped(point: dict, reason: str) -> dict:
    row = cell(point) | {"status": "skipped", "cause": "impossible", "reason": reason}
    return {name: value for name, value in row.items() if name not in ("figures", "bounds", "details")}


def points() -> list[dict]:
    """Those of a small sweep: by size, several tensors, several readers."""
    found = [params(way, size, use) for way in ON_GPU for size in SIZES for use in ("cached", "first")]
    some = ("redis_value", "shm_pinned", "ipc_vmm", "store")
    for use in ("cached", "first"):
        found += [params(way, MI, use, tensors=count) for way in some for count in (1, 4, 16)]
    found += [params(way, 4 * MI, readers=count) for way in some for count in (1, 2, 4)]
    return list({str(one): one for one in found}.values())


def to_other() -> list[dict]:
    """Points of two GPUs."""
    ways = ("shm_pinned", "ipc_vmm")
    return [params(way, size, to="other", reach=reach) for way in ways for size in SIZES for reach in ("map", "copy")]


def sweep(repetitions: int = 3, two_gpus: bool = True) -> list[dict]:
    some = [*points(), *(to_other() if two_gpus else [])]
    found = [cell(point, repetition) for repetition in range(repetitions) for point in some]
    found += [skipped(params("ipc_memfd", size, use), WHY) for size in SIZES for use in ("cached", "first")]
    return found if two_gpus else [*found, *(skipped(point, "this machine has no second GPU") for point in to_other())]


WHY = "it shares host memory; a GPU's is shared by ipc_vmm"


def write(directory, some: list[dict]):
    return rows.write(directory, some, catalogue())
