"""Ratios with several runs per side. The run is a random effect: the results of two runs of the same code differ by more
than their repetitions show. A run's mean is therefore one observation, independent of its number of repetitions, and
the variance between runs is estimated from all points together (Kalibera and Jones, "Rigorous benchmarking in
reasonable time", 2013, who call the levels execution and iteration).

Runs differ for two reasons. An entire run may be slow at all points alike; the estimate of this variance has only as
many degrees of freedom as the number of runs allows. Each point may also vary from run to run; this variance differs
between points and is shrunk towards the common one. The error combines both, with Satterthwaite's degrees of freedom.
"""

import warnings
from collections.abc import Sequence

import numpy as np

from .shrinkage import ENOUGH, shrink
from .verdict import NOT_MEASURED, Ratio, from_log


def run_means(values: np.ndarray, runs: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """For each run, the mean logarithm of its repetitions; NaN if it has none, or if a value has no logarithm."""
    values = np.asarray(values, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(values > 0, np.log(values), np.nan)
    means = [logs[runs == name].mean() if (runs == name).any() else np.nan for name in names]
    return np.where(np.isfinite(means), means, np.nan)


def variances(before: np.ndarray, after: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Variances of the logarithms given to `ratios`: the variance between runs that all points of a run share, each
    point's own variance, and the degrees of freedom of the latter."""
    sides = [np.atleast_2d(before), np.atleast_2d(after)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # points that a side lacks are NaN
        away = np.hstack([side - np.nanmean(side, axis=1, keepdims=True) for side in sides])
        shared = np.nan_to_num(np.nanmean(away, axis=0)) if len(away) >= ENOUGH else np.zeros(away.shape[1])
    freedom = np.isfinite(np.hstack(sides)).sum(axis=1) - 2
    points = len(away)
    correction = points / (points - 1) if shared.any() else 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(freedom > 0, np.nansum((away - shared) ** 2, axis=1) * correction / freedom, np.nan)
    return float((shared**2).sum() / (away.shape[1] - 2)), own, freedom


def ratios(before: np.ndarray, after: np.ndarray, rounding: float) -> list[Ratio]:
    """B / A for each point. `before`, `after`: one row per point and one column per run, as returned by `run_means`.
    `rounding`: the standard deviation that histogram buckets add to each side."""
    sides = [np.atleast_2d(before), np.atleast_2d(after)]
    counts = [np.isfinite(side).sum(axis=1) for side in sides]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # points that a side lacks are NaN
        means = [np.nanmean(side, axis=1) for side in sides]
    common, own, freedom = variances(*sides)
    runs_freedom = sum(side.shape[1] for side in sides) - 2
    with np.errstate(divide="ignore", invalid="ignore"):
        own, own_freedom = shrink(own, freedom.astype(float))
        share = 1 / counts[0] + 1 / counts[1]
        variance = (common + own) * share + 2 * rounding**2
        estimated = share**2 * (own**2 / own_freedom + common**2 / runs_freedom)
        effective = np.where(estimated > 0, variance**2 / estimated, np.inf)
    return [_ratio(*one) for one in zip(means[1] - means[0], variance, effective, 2 * (common + own), *counts)]


def _ratio(change: float, variance: float, freedom: float, spread: float, before: int, after: int) -> Ratio:
    if not before or not after:
        return NOT_MEASURED
    if np.isnan(variance):
        return Ratio(float(np.exp(change)), float("nan"), float("nan"))
    return from_log(change, variance, freedom, spread)
