"""Repetitions into points, points into the ones worth naming, and an interval over points."""

import numpy as np
import pandas as pd

from .load import Results
from .stability import judged

METRICS = (
    "messages_per_second",
    "bytes_per_second",
    "p50",
    "p90",
    "p99",
    "p999",
    "max",
    "throughput_ratio",
    "latency_ratio",
    "driver_ratio",
    "host_threads",
    "spinning_threads",
    "sms",
    "own_cores",
    "power_w",
)
_SEED = 20250  # fixed, so that the same rows always give the same interval


def points(results: Results) -> pd.DataFrame:
    """One line a point of the sweep: over its valid repetitions the median of each metric, and its range as
    `<metric>_low` and `<metric>_high`, the honest interval for the few repetitions of a sweep; `unstable` names the
    metrics whose range is too wide for a figure.
    """
    valid = results.cells[results.cells["status"] == "ok"].assign(row=lambda cells: cells.index)
    keys = ["variant", "rank", "work", "machine", *results.axes]
    groups = valid.groupby(keys, sort=False, dropna=False)
    metrics = groups[list(METRICS)].agg(["median", "min", "max"])
    metrics.columns = [f"{name}{suffix}" for name in METRICS for suffix in ("", "_low", "_high")]
    names = groups[["throughput_floor", "latency_floor", "delivery", "order"]].first()
    members = groups["row"].agg(list).rename("members")
    found = pd.concat([metrics, names, groups.size().rename("repetitions"), members], axis=1)
    return judged(found, ends(results.cells.groupby(keys, sort=False, dropna=False))).reset_index()


def ends(groups) -> pd.DataFrame:
    """What `judged` wants to know of all rows of each point, for the last of them need not be ok."""
    return groups.agg(stops=("stop", list), directories=("directory", list))


def best(candidates: pd.DataFrame, by: str, metric: str, largest: bool = True) -> pd.DataFrame:
    """For each value of the column `by`, the point with the best median of `metric`, in the variants' order."""
    ranked = candidates.dropna(subset=[metric]).sort_values(metric, ascending=not largest, kind="stable")
    return ranked.drop_duplicates(by).sort_values("rank")


def lone(measured: pd.DataFrame) -> pd.DataFrame:
    """For each variant its lone-message point: one message in flight, one producer, smallest payload, least p50."""
    alone = measured[(measured["window"] == 1) & (measured["producers"] == 1)]
    smallest = alone[alone["payload_bytes"] == alone.groupby("variant")["payload_bytes"].transform("min")]
    return best(smallest, "variant", "p50", largest=False)


def knee(measured: pd.DataFrame) -> pd.DataFrame:
    """For each variant the point of least p99 among those within 5 % of its most messages a second: deeper windows
    often add latency and nothing else."""
    rates = measured["messages_per_second"]
    near_peak = measured[rates >= 0.95 * rates.groupby(measured["variant"]).transform("max")]
    return best(near_peak, "variant", "p99", largest=False)


def main_work(measured: pd.DataFrame) -> str:
    """The workload that latency figures show: echo, which adds least of its own, else the one measured most."""
    works = measured["work"]
    return "echo" if (works == "echo").any() else works.value_counts().index[0]


def bootstrap_geometric_mean(ratios: np.ndarray, resamples: int = 2000) -> tuple[float, float, float]:
    """Geometric mean of ratios with its 95 % bootstrap interval over the cells."""
    logs = np.log(ratios)
    if len(logs) < 2:
        return float(np.exp(logs.mean())), float("nan"), float("nan")
    means = np.random.default_rng(_SEED).choice(logs, (resamples, len(logs))).mean(axis=1)
    return float(np.exp(logs.mean())), *(float(value) for value in np.exp(np.percentile(means, [2.5, 97.5])))
