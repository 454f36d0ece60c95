"""Google Benchmark's JSON, which its `tools/compare.py` and the trackers built on it read.

A benchmark is a point, an iteration a repetition: `real_time` is the nanoseconds that one of what is counted (a
message, a launch) takes at the measured rate, and `<point>/p50`, `<point>/p99` and the like are times. `cpu_time` is no
measured CPU time: it is `real_time` times the host threads that spin, which is how long one keeps host cores busy.
`iterations` counts what was received, or sampled. Figures that are no times are counters; `items_per_second` is the
rate.
"""

import json
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd

from ..catalogue import Experiment
from ..files import write_all
from ..load import Results
from ..verdict import Metric

_STATISTICS = {
    "mean": ("time", np.mean),
    "median": ("time", np.median),
    "stddev": ("time", lambda values: np.std(values, ddof=1)),
    "cv": ("percentage", lambda values: np.std(values, ddof=1) / np.mean(values)),
}


def write(experiments: list[tuple[dict[str, pd.DataFrame], Results]], out: Path) -> list[Path]:
    benchmarks, families = [], count()
    for points, results in experiments:
        for point, group in points.items():
            family = next(families)
            for place, metric in enumerate(_series(results.experiment)):
                where = {"family_index": family, "per_family_instance_index": place}
                benchmarks += _entries(results.experiment, point, metric, group, where)
    document = {"context": _context(experiments), "benchmarks": benchmarks}
    return write_all({out: json.dumps(document, indent=1) + "\n"})


def _series(experiment: Experiment) -> list[Metric | None]:
    """None: the rate and all that is no time; then the times that are compared."""
    times = {figure.name for figure in experiment.figures.values() if experiment.kinds.get(figure.unit) == "time"}
    return [None, *(metric for metric in experiment.compared if metric.key.partition(".")[0] in times)]


def _context(experiments: list[tuple[dict[str, pd.DataFrame], Results]]) -> dict:
    """Google Benchmark's own keys, then the facts it has no key for, as its custom context."""
    first = experiments[0][1].environments[0]
    facts = ("gpu", "driver_version", "cuda_runtime", "revision", "compiler", "build_type")
    groups = [group for points, _ in experiments for group in points.values()]
    started = [time["started"] for group in groups for time in group["time"] if "started" in time]
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


def _entries(experiment: Experiment, point: str, metric: Metric | None, group: pd.DataFrame, place: dict) -> list[dict]:
    """The repetitions of one series, and their statistics where there are several."""
    real = _time_of_one(experiment, group) if metric is None else group[metric.column]
    group = group[real.notna()]
    run_name = f"{point}/{metric.name}" if metric else point
    threads = group["producers"] if "producers" in group else group["host_threads"].fillna(1)
    common = place | {
        "run_name": run_name,
        "repetitions": len(group),
        "threads": int(threads.iloc[0]) if len(group) else 0,
        "time_unit": "ns",
    }
    times = pd.DataFrame({"real_time": real, "cpu_time": real * group["spinning_threads"].fillna(0)}).loc[group.index]
    if metric is None:
        for figure in _counters(experiment):
            if group[figure].notna().all():
                times["items_per_second" if figure == experiment.rate else figure] = group[figure]
    done = group["received"] if "received" in group else group["samples"]
    entries = [
        common
        | {
            "name": run_name,
            "run_type": "iteration",
            "repetition_index": place_in_group,
            "iterations": int(received),
        }
        | {name: float(value) for name, value in row.items()}
        for place_in_group, (received, (_, row)) in enumerate(zip(done, times.iterrows()))
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


def _time_of_one(experiment: Experiment, group: pd.DataFrame) -> pd.Series:
    """At the rate; where an experiment has none, the median of its main time."""
    if experiment.rate:
        return 1e9 / group[experiment.rate]
    return group["p50"] if experiment.time else pd.Series(np.nan, group.index)


def _counters(experiment: Experiment) -> list[str]:
    """The figures that are numbers and no times, the rate first."""
    numbers = [figure.name for figure in experiment.figures.values() if not figure.distribution]
    return sorted(numbers, key=lambda name: name != experiment.rate)
