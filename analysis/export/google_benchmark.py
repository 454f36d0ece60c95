"""Google Benchmark's JSON, which its `tools/compare.py` and the trackers built on it read.

A benchmark is a point, an iteration a repetition: `real_time` is the nanoseconds a message takes at the measured
throughput, and `<point>/p50`, `<point>/p99` and `<point>/service_p99` are latencies. `cpu_time` is no measured CPU
time: it is `real_time` times the host threads that spin, which is how long a message keeps host cores busy.
`iterations` counts the messages received.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from ..files import write_all
from ..load import Results

_STATISTICS = {
    "mean": ("time", np.mean),
    "median": ("time", np.median),
    "stddev": ("time", lambda values: np.std(values, ddof=1)),
    "cv": ("percentage", lambda values: np.std(values, ddof=1) / np.mean(values)),
}
_SERIES = ("", "p50", "p99", "service_p99")


def write(points: dict[str, pd.DataFrame], results: Results, out: Path) -> list[Path]:
    benchmarks = [
        entry
        for family, (point, group) in enumerate(points.items())
        for place, series in enumerate(_SERIES)
        for entry in _entries(point, series, group, {"family_index": family, "per_family_instance_index": place})
    ]
    document = {"context": _context(points, results), "benchmarks": benchmarks}
    return write_all({out: json.dumps(document, indent=1) + "\n"})


def _context(points: dict[str, pd.DataFrame], results: Results) -> dict:
    """Google Benchmark's own keys, then the facts it has no key for, as its custom context."""
    first = results.environments[0]
    facts = ("gpu", "driver_version", "cuda_runtime", "revision", "compiler", "build_type")
    started = [time["started"] for group in points.values() for time in group["time"] if "started" in time]
    return {
        "date": min(started, default=""),
        "host_name": str(first.get("host", "")),
        "executable": str(first.get("command", "")),
        "num_cpus": first.get("cores", 0),
        "mhz_per_cpu": 0,
        "cpu_scaling_enabled": False,
        "caches": [],
        "load_avg": [],
        "library_build_type": "debug" if first.get("build_type") == "Debug" else "release",
        "cpu_time": "real_time times the host threads that spin; not measured",
    } | {name: str(first[name]) for name in facts if first.get(name) is not None}


def _entries(point: str, series: str, group: pd.DataFrame, place: dict) -> list[dict]:
    """The repetitions of one series, and their statistics where there are several."""
    real = 1e9 / group["messages_per_second"] if series == "" else group[series]
    group = group[real.notna()]
    run_name = f"{point}/{series}" if series else point
    common = place | {
        "run_name": run_name,
        "repetitions": len(group),
        "threads": int(group["producers"].iloc[0]) if len(group) else 0,
        "time_unit": "ns",
    }
    times = pd.DataFrame({"real_time": real, "cpu_time": real * group["spinning_threads"].fillna(0)}).loc[group.index]
    if series == "":
        times["items_per_second"] = group["messages_per_second"]
        times["bytes_per_second"] = group["bytes_per_second"]
    entries = [
        common
        | {
            "name": run_name,
            "run_type": "iteration",
            "repetition_index": place_in_group,
            "iterations": int(received),
        }
        | {name: float(value) for name, value in row.items()}
        for place_in_group, (received, (_, row)) in enumerate(zip(group["received"], times.iterrows()))
    ]
    for statistic, (unit, of) in _STATISTICS.items() if len(group) > 1 else ():
        entries.append(
            common
            | {
                "name": f"{run_name}_{statistic}",
                "run_type": "aggregate",
                "aggregate_name": statistic,
                "aggregate_unit": unit,
                "iterations": len(group),
            }
            # Where no thread spins, all CPU times are 0, and so is their variation.
            | {name: float(of(values)) if values.any() else 0.0 for name, values in times.items()}
        )
    return entries
