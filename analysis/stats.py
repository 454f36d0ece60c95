"""Repetitions into points, points into the ones worth naming, and an interval over points."""

import numpy as np
import pandas as pd

from . import sections
from .load import COST, MACHINE, Results
from .stability import judged

_SEED = 20250  # fixed, so that the same rows always give the same interval


def numbers(results: Results) -> list[str]:
    """The cells' columns that a point has a median of."""
    experiment = results.experiment
    ratios = [f"{figure}_ratio" for figure in experiment.figures]
    return [*experiment.columns, *ratios, *COST, *MACHINE, *sections.of(experiment.name).numbers]


def points(results: Results) -> pd.DataFrame:
    """One line a point of the sweep: over its valid repetitions the median of each metric, and its range as
    `<metric>_low` and `<metric>_high`, the honest interval for the few repetitions of a sweep; `unstable` names the
    metrics whose range is too wide for a figure.
    """
    valid = results.cells[results.cells["status"] == "ok"].assign(row=lambda cells: cells.index)
    keys = ["variant", "rank", "work", "machine", *results.axes]
    groups = valid.groupby(keys, sort=False, dropna=False)
    columns = numbers(results)
    metrics = groups[columns].agg(["median", "min", "max"])
    metrics.columns = [f"{name}{suffix}" for name in columns for suffix in ("", "_low", "_high")]
    names = groups[[*(f"{figure}_floor" for figure in results.experiment.figures), "delivery"]].first()
    members = groups["row"].agg(list).rename("members")
    found = pd.concat([metrics, names, groups.size().rename("repetitions"), members], axis=1)
    every = results.cells.groupby(keys, sort=False, dropna=False)
    return judged(results.experiment, found, ends(every)).reset_index()


def ends(groups) -> pd.DataFrame:
    """What `judged` wants to know of all rows of each point, for the last of them need not be ok."""
    return groups.agg(stops=("stop", list), directories=("directory", list))


def best(candidates: pd.DataFrame, by: str, metric: str, largest: bool = True) -> pd.DataFrame:
    """For each value of the column `by`, the point with the best median of `metric`, in the variants' order."""
    ranked = candidates.dropna(subset=[metric]).sort_values(metric, ascending=not largest, kind="stable")
    return ranked.drop_duplicates(by).sort_values("rank")


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
