"""Ratios B / A from the slices of `feedrate ab`.

One start of both executables is one observation, because properties of a process that are fixed at its start, such as
its placement in memory, change results by several percent (Kalibera and Jones, Rigorous benchmarking in reasonable
time, 2013). Its value is the difference of the sides' logarithms in each block of four slices, in which a linear drift
cancels, and over the blocks the Hodges–Lehmann estimate. The ratio is the Hodges–Lehmann estimate over the starts: the
median of the means of all pairs, which ignores up to 29 % of outliers and loses 5 % of efficiency if there are none
(Hodges and Lehmann, Estimates of location based on rank tests, 1963). Its interval is that of Wilcoxon's
signed-rank test, which is exact for symmetric distributions of any shape.

Several runs, on several machines, are combined with the run as a random effect: each run's ratio is one observation.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pandas as pd

from . import student
from .verdict import CONFIDENCE, NOT_MEASURED, Ratio, from_log

BLOCK = 4  # slices in a block
MANY = 2000  # values
LEAST_STARTS = 6  # with fewer, no signed-rank interval of 95 % exists


def table(rows: Sequence[dict], keys: Sequence[str]) -> pd.DataFrame:
    """One line per slice: `start`, `block`, `place`, and the figure of each key; NaN if the slice has none, or if its
    visit failed."""
    found = [
        {"start": row["ab_start"], "block": slice["block"], "place": slice["place"]}
        | {key: (slice.get("figures") or {}).get(key, np.nan) if row["status"] != "failed" else np.nan for key in keys}
        for row in rows
        for slice in row["ab_slices"]
    ]
    return pd.DataFrame(found, columns=["start", "block", "place", *keys])


def by_start(a: pd.DataFrame, b: pd.DataFrame, key: str) -> pd.Series:
    """log B / A of each start, from the blocks that are complete on both sides."""
    with np.errstate(divide="ignore", invalid="ignore"):
        sides = [np.log(one[key].astype(float)).where(lambda log: np.isfinite(log)) for one in (a, b)]
    blocks = [
        log.groupby([one["start"], one["block"]]).agg(["mean", "count"]) for one, log in zip((a, b), sides)
    ]
    both = blocks[0].join(blocks[1], lsuffix="_a", rsuffix="_b", how="inner")
    whole = both[(both["count_a"] == BLOCK // 2) & (both["count_b"] == BLOCK // 2)]
    return (whole["mean_b"] - whole["mean_a"]).groupby("start").agg(lambda logs: middle(logs.to_numpy()))


def walsh(values: np.ndarray) -> np.ndarray:
    """The means of all pairs, including each value with itself, in ascending order."""
    row, column = np.triu_indices(len(values))
    return np.sort((values[row] + values[column]) / 2)


def middle(values: np.ndarray) -> float:
    """The Hodges–Lehmann estimate; of very many values their median, which needs less memory."""
    if not len(values):
        return float("nan")
    return float(np.median(walsh(values) if len(values) <= MANY else values))


@lru_cache(maxsize=None)
def _at_most(count: int) -> np.ndarray:
    """P(W ≤ w) of the signed-rank statistic of `count` values, for w = 0, 1, …"""
    ways = np.zeros(count * (count + 1) // 2 + 1)
    ways[0] = 1
    for rank in range(1, count + 1):
        ways[rank:] = (ways[rank:] + ways[:-rank]) / 2
        ways[:rank] /= 2
    return np.cumsum(ways)


def ratio(logs: np.ndarray) -> Ratio:
    """The ratio of these observations. Its error is the one with which Student's t gives the same interval."""
    logs = np.asarray(logs, dtype=float)
    logs = logs[np.isfinite(logs)]
    if not len(logs):
        return NOT_MEASURED
    change = middle(logs)
    if len(logs) < LEAST_STARTS:
        return Ratio(float(np.exp(change)), float("nan"), float("nan"))
    sums = walsh(logs)
    outside = int(np.searchsorted(_at_most(len(logs)), (1 - CONFIDENCE) / 2, side="right")) - 1
    low, high = sums[outside], sums[len(sums) - 1 - outside]
    freedom = len(logs) - 1
    error = max(float(high - low) / 2 / float(student.ppf((1 + CONFIDENCE) / 2, freedom)), 1e-12)
    ends = map(float, np.exp([change, low, high]))
    return Ratio(*ends, error=error, freedom=float(freedom), spread=error**2 * len(logs))


def combine(runs: Sequence[Ratio]) -> Ratio:
    """The ratio over several runs: each run's logarithm is one observation, with Student's t. Its variance is at least
    the one that the runs' own errors give, because few runs may agree by chance. Runs without an error do not count."""
    known = [one for one in runs if np.isfinite(one.error)]
    if len(runs) == 1 or not known:
        return runs[0] if len(runs) == 1 else next((one for one in runs if one is not NOT_MEASURED), NOT_MEASURED)
    logs, count = np.log([one.value for one in known]), len(known)
    if count == 1:
        return Ratio(known[0].value, float("nan"), float("nan"))
    spread = max(float(logs.var(ddof=1)), float(np.mean([one.error**2 for one in known])))
    return from_log(float(logs.mean()), spread / count, count - 1, spread)
