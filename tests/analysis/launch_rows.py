"""A made-up second experiment that the analysis has never heard of: what a kernel launch costs."""

import copy

import numpy as np
import rows

FORMS = {"plain": 4e5, "graph": 2.5e6, "streams": 9e5}  # launches a second
FLOORS = {"launch_sync_ns": 6200.0, "launch_per_second": 3e6}


def axis(name: str, default, **more) -> dict:
    told = {"experiment": "launch", "name": name, "key": name, "owners": [], "default": default, "description": name}
    return told | {"kind": "number"} | more


LAUNCH = {
    "name": "launch",
    "description": "what a kernel launch costs",
    "variant": ["form"],
    "rate": "launches_per_second",
    "time": "round_trip_ns",
    "offered_load": None,
    "figures": [
        {"name": "launches_per_second", "unit": "launches/s", "better": "higher", "distribution": False, "headline": True,
         "unstable_from": 1.5, "description": "launches"},
        {"name": "round_trip_ns", "unit": "ns", "better": "lower", "distribution": True, "headline": True,
         "unstable_from": {"p50": 1.5, "p99": 3}, "description": "launch and synchronize"},
    ],
    "axes": ["form", "device", "streams", "threads", "nodes"],
}  # fmt: skip
OCCUPANCY = {"name": "occupancy", "unit": "", "better": "lower", "distribution": False, "headline": True,
             "description": "share of the warps"}  # fmt: skip
AXES = [
    axis("form", "plain", kind="word", values=["plain", "graph", "streams"]),
    axis("device", "auto", kind="word", values=["auto", "cpu", "cuda"]),
    axis("streams", 1),
    axis("threads", 1),
    axis("nodes", 16, owners=["graph"]),
]


def catalogue(*figures: dict, feeding: bool = False) -> dict:
    """A catalogue of `launch` with these figures besides; with `feeding`'s experiment, too, where that is wanted."""
    base = copy.deepcopy(rows.CATALOGUE)
    experiments = [one for one in base["experiments"] if one["name"] == "feeding"] if feeding else []
    axes = [one for one in base["axes"] if one["experiment"] == "feeding"] if feeding else []
    return base | {
        "units": base["units"] | {"launches/s": "si"},
        "experiments": [*experiments, LAUNCH | {"figures": [*LAUNCH["figures"], *figures]}],
        "axes": [*axes, *AXES],
    }


def params(form: str = "plain", **changes) -> dict:
    own = {"nodes": 16} if form == "graph" else {}
    return {"form": form, "device": "cuda", "streams": 1, "threads": 1} | own | changes


def cell(coordinates: dict, repetition: int = 0, speed: float = 1.0, where: dict | None = None, **figures) -> dict:
    """One ok row; `speed` multiplies the rate and divides the times. `figures` are figures besides."""
    generator = np.random.default_rng(int(rows.row_id(coordinates, repetition), 16))
    rate = speed * FORMS[coordinates["form"]] * coordinates["threads"] ** 0.5 * generator.normal(1, 0.005)
    samples = 1e9 / rate * (3 + generator.gamma(1.5, 0.1, 2000))
    times = rows.latency(samples.astype(np.int64))
    return {
        "schema": 2,
        "kind": "cell",
        "experiment": "launch",
        "run": rows.run(where, FLOORS, experiment="launch"),
        "id": rows.row_id({"launch": coordinates}, repetition),
        "repetition": repetition,
        "status": "ok",
        "cause": "",
        "reason": "",
        "params": coordinates,
        "figures": {"launches_per_second": rate, "round_trip_ns": times} | figures,
        "bounds": {
            "launches_per_second": {"floor": "launch_per_second", "value": 3e6, "ratio": rate / 3e6},
            "round_trip_ns": {"floor": "launch_sync_ns", "value": 6200.0, "ratio": times["p50"] / 6200.0},
        },
        "cost": {"host_threads": coordinates["threads"], "spinning_threads": 0, "sms": 0},
        "machine": rows.machine(),
        "time": {"started": "2026-11-21T08:00:00Z", "duration_seconds": 0.7},
    }


def floor(name: str) -> dict:
    return rows.floor(name, FLOORS[name]) | {"run": rows.run(None, FLOORS, experiment="launch")}


def points() -> list[dict]:
    some = [params(form, threads=threads) for form in FORMS for threads in (1, 4)]
    return [*some, params("graph", nodes=64)]


def sweep(repetitions: int = 5, speed: float = 1.0, **figures) -> list[dict]:
    return [
        *map(floor, FLOORS),
        *(cell(point, repetition, speed, **figures) for repetition in range(repetitions) for point in points()),
    ]


def write(directory, some: list[dict], *figures: dict, feeding: bool = False):
    return rows.write(directory, some, catalogue(*figures, feeding=feeding))
