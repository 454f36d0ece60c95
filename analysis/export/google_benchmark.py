"""Google Benchmark's JSON format, which its `tools/compare.py` and compatible trackers read.

Each point becomes a benchmark and each repetition an iteration. `real_time` is the time in nanoseconds per counted item
(a message, a launch) at the measured rate; `<point>/p50`, `<point>/p99` and similar entries are times. `cpu_time` is
not a measured CPU time but host core time per item: `real_time` times the number of spinning host threads.
`iterations` is the number of received or sampled items. Figures that are not times are counters; `items_per_second` is
the rate.
"""

import json
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
    groups = [(results.experiment, *one) for points, results in experiments for one in points.items()]
    benchmarks = []
    for family, (experiment, point, group) in enumerate(groups):
        for place, metric in enumerate(_series(experiment)):
            where = {"family_index": family, "per_family_instance_index": place}
            benchmarks += _entries(experiment, point, metric, group, where)
    document = {"context": _context(experiments), "benchmarks": benchmarks}
    return write_all({out: json.dumps(document, indent=1) + "\n"})


def _series(experiment: Experiment) -> list[Metric | None]:
    """The series of a point: None (the rate and all figures that are not times), then the compared times."""
    times = {figure.name for figure in experiment.figures.values() if experiment.kinds.get(figure.unit) == "time"}
    return [None, *(metric for metric in experiment.compared if metric.key.partition(".")[0] in times)]


def _context(experiments: list[tuple[dict[str, pd.DataFrame], Results]]) -> dict:
    """Google Benchmark's own keys, then further facts as custom context."""
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
    """The repetitions of one series, and their statistics if there are several."""
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
    for figure in _counters(experiment) if metric is None else ():
        if group[figure].notna().all():
            times["items_per_second" if figure == experiment.rate else figure] = group[figure]
    done = group["received"] if "received" in group else group["samples"]
    entries = []
    for repetition, (count, values) in enumerate(zip(done, times.to_dict("records"))):
        run = {"name": run_name, "run_type": "iteration", "repetition_index": repetition, "iterations": int(count)}
        entries.append(common | run | values)
    for statistic, (unit, of) in _STATISTICS.items() if len(group) > 1 else ():
        aggregate = {
            "name": f"{run_name}_{statistic}",
            "run_type": "aggregate",
            "aggregate_name": statistic,
            "aggregate_unit": unit,
            "iterations": len(group),
        }
        # If no thread spins, all CPU times are 0, and so are their statistics.
        values = {name: float(of(values)) if values.any() else 0.0 for name, values in times.items()}
        entries.append(common | aggregate | values)
    return entries


def _time_of_one(experiment: Experiment, group: pd.DataFrame) -> pd.Series:
    """The time of one item at the rate; for an experiment without a rate, the median of its main time."""
    if experiment.rate:
        return 1e9 / group[experiment.rate]
    return group["p50"] if experiment.time else pd.Series(np.nan, group.index)


def _counters(experiment: Experiment) -> list[str]:
    """The figures that are numbers, not distributions, with the rate first."""
    numbers = [figure.name for figure in experiment.figures.values() if not figure.distribution]
    return sorted(numbers, key=lambda name: name != experiment.rate)
