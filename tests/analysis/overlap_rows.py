"""Made-up rows of the experiment `overlap`: a pipeline's stages and how much of the possible overlap a strategy reaches."""

import copy

import numpy as np
import rows
from launch_rows import axis

STAGES = {
    "producer_consumer": ("generate", "process"),
    "chain": ("decode", "normalise", "reduce"),
    "copy_process_copy": ("copy in", "process", "copy out"),
}
# The share of the possible overlap that a strategy reaches, where nothing stands against it.
REACHED = {
    "serial": 0.0, "two_stream": -0.03, "ping_pong": 0.9, "ring": 0.94, "graph": 0.97, "pdl": 0.12, "persistent": 0.98,
    "peer_copy": 0.6, "peer_load": 0.5,
}  # fmt: skip
BALANCES = {"even": (1, 1, 1), "first": (3, 1, 1), "middle": (1, 3, 1), "last": (1, 1, 3), "rising": (1, 2, 3)}
WITH_DEPTH = ("ring", "graph", "persistent", "peer_copy", "peer_load")
FIGURES = [
    {"name": "items_per_second", "unit": "items/s", "better": "higher", "distribution": False, "headline": True,
     "unstable_from": 1.5, "description": "verified items, whole runs"},
    {"name": "speedup", "unit": "", "better": "higher", "distribution": False, "headline": True, "unstable_from": 1.5,
     "description": "time of a run of serial / with this one"},
    {"name": "overlap_efficiency", "unit": "", "better": "higher", "distribution": False, "headline": True,
     "unstable_from": 1.5, "description": "by the stages' times beside each other"},
    {"name": "overlap_efficiency_alone", "unit": "", "better": "higher", "distribution": False, "headline": False,
     "unstable_from": 1.5, "description": "by the stages' times alone"},
    {"name": "run_ns", "unit": "ns", "better": "lower", "distribution": True, "headline": True,
     "unstable_from": {"p50": 1.5, "p99": 3}, "description": "a run"},
]  # fmt: skip


def _axis(name: str, default, **more) -> dict:
    return axis(name, default, **more) | {"experiment": "overlap"}


AXES = [
    _axis("pipeline", "chain", kind="word", values=list(STAGES)),
    _axis("strategy", "ring", kind="word", values=sorted(REACHED)),
    _axis("device", "auto", kind="word", values=["auto", "cpu", "cuda"]),
    _axis("item", 1 << 20) | {"key": "item_bytes"},
    _axis("items", 64),
    _axis("cost-us", 50.0) | {"key": "cost_us"},
    _axis("balance", "even", kind="word", values=list(BALANCES)),
    _axis("stage-blocks", 0) | {"key": "stage_blocks"},
    _axis("stages", 4, owners=["chain"]),
    _axis("depth", 3, owners=list(WITH_DEPTH)),
]


def catalogue() -> dict:
    base = copy.deepcopy(rows.CATALOGUE)
    one = {
        "name": "overlap", "description": "how stages overlap", "variant": ["strategy"], "rate": "items_per_second",
        "time": "run_ns", "offered_load": None, "figures": FIGURES, "axes": [one["name"] for one in AXES],
    }  # fmt: skip
    return base | {"units": base["units"] | {"items/s": "si"}, "experiments": [one], "axes": AXES}


def params(pipeline: str = "chain", strategy: str = "ring", **changes) -> dict:
    told = {"pipeline": pipeline, "strategy": strategy, "device": "cuda", "item_bytes": 1 << 20, "items": 64}
    told |= {"cost_us": 60.0, "balance": "even", "stage_blocks": 132 // len(STAGES[pipeline])}
    told |= {"stages": 3} if pipeline == "chain" else {}
    return told | ({"depth": 3} if strategy in WITH_DEPTH else {}) | changes


def cell(point: dict, repetition: int = 0, **figures) -> dict:
    """One ok row. `figures` replace those of the model."""
    names = STAGES[point["pipeline"]]
    generator = np.random.default_rng(int(rows.row_id(point, repetition), 16))
    shares = np.array(BALANCES[point["balance"]][: len(names)], float)
    alone = shares / shares.sum() * len(names) * point["cost_us"] * 1e3 * generator.normal(1, 0.003, len(names))
    beside = 1.06 * alone
    serial = point["items"] * (alone.sum() + 4000)
    ideal, ideal_alone = (times.sum() + (point["items"] - 1) * times.max() for times in (beside, alone))
    hidden = 5 / max(point["cost_us"], 5)  # a launch is as long as the shortest kernels
    reached = REACHED[point["strategy"]] - 0.3 * hidden + (-0.5 if point.get("depth") == 1 else 0)
    reached = 0.0 if point["strategy"] == "serial" else reached + generator.normal(0, 0.006)
    run = serial - reached * (serial - ideal)
    rate = point["items"] / run * 1e9
    stages = [
        {"name": name, "rounds": 90, "alone_ns": one, "contended_ns": other}
        for name, one, other in zip(names, alone, beside)
    ]
    slowest = 1e9 / alone.max()
    return {
        "schema": 2,
        "kind": "cell",
        "experiment": "overlap",
        "run": rows.run(None, {}, experiment="overlap"),
        "id": rows.row_id({"overlap": point}, repetition),
        "repetition": repetition,
        "status": "ok",
        "cause": "",
        "reason": "",
        "params": point,
        "figures": {
            "items_per_second": rate,
            "speedup": serial / run,
            "overlap_efficiency": reached,
            "overlap_efficiency_alone": (serial - run) / (serial - ideal_alone),
            "run_ns": rows.latency((run * generator.normal(1, 0.01, 20)).astype(np.int64)),
        }
        | figures,
        "bounds": {"items_per_second": {"floor": "slowest_stage_alone", "value": slowest, "ratio": rate / slowest}},
        "details": {
            "verified": {"items": 4000, "wrong": 0},
            "stages": stages,
            "runs": 20,
            "serial_ns": {"p50": serial, "runs": 20},
            "ideal_ns": {"alone": ideal_alone, "contended": ideal},
        },
        "cost": {"host_threads": 1, "spinning_threads": 1, "sms": 132 if point["strategy"] == "persistent" else 0},
        "time": {"started": "2026-11-21T08:00:00Z", "duration_seconds": 0.7},
    }


def skipped(point: dict, reason: str) -> dict:
    row = cell(point) | {"status": "skipped", "cause": "impossible", "reason": reason}
    return {name: value for name, value in row.items() if name not in ("figures", "bounds", "details")}


def nothing_to_save(row: dict, *figures: str, saved: float = 0.04) -> dict:
    """The row as it is where overlapping could save next to nothing."""
    row["details"]["no_saving"] = {figure: saved for figure in figures}
    for figure in figures:
        del row["figures"][figure]
    return row


SIZES = ((4 << 10, 5.0, 256), (64 << 10, 10.0, 256), (1 << 20, 60.0, 64), (16 << 20, 400.0, 16))


def points() -> list[dict]:
    """Those of the spec `overlap`."""
    peers = ("peer_copy", "peer_load")
    found = [params(pipeline, strategy) for pipeline in STAGES for strategy in REACHED if strategy not in peers]
    found = [one for one in found if (one["pipeline"], one["strategy"]) != ("copy_process_copy", "persistent")]
    some = ("ping_pong", "ring", "graph", "persistent")
    found += [params("chain", strategy, balance=balance) for strategy in some for balance in BALANCES]
    found += [
        params(pipeline, strategy, item_bytes=size, cost_us=cost, items=items)
        for pipeline in ("chain", "copy_process_copy")
        for strategy in ("serial", "ping_pong", "ring", "graph", "pdl")
        for size, cost, items in SIZES
    ]
    found += [params("chain", strategy, depth=depth) for strategy in some[1:] for depth in (1, 2, 3, 4, 8)]
    found += [
        params("producer_consumer", strategy, cost_us=1.0, stage_blocks=132, item_bytes=size, items=items)
        for strategy in peers
        for size, items in ((1 << 20, 128), (16 << 20, 32), (64 << 20, 16))
    ]
    return list({str(sorted(one.items())): one for one in found}.values())


def sweep(repetitions: int = 3) -> list[dict]:
    why = "strategy persistent runs kernels; copies from and to the host are none"
    measured = [cell(point, repetition) for repetition in range(repetitions) for point in points()]
    return [*measured, skipped(params("copy_process_copy", "persistent"), why)]


def write(directory, some: list[dict]):
    return rows.write(directory, some, catalogue())
