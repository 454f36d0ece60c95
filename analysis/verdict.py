"""Verdicts FASTER, SLOWER, SAME and UNCLEAR on the ratio B / A of one metric at one point.

A ratio is computed on logarithms, where multiplicative noise is symmetric: the geometric mean of B's repetitions
divided by that of A's, with Welch's t interval. On simulated runs (3 to 5 repetitions; lognormal noise, heavy tails,
outliers, drift) this interval covers the truth 95 to 98 % of the time. The bootstrap of medians reached 90 % with three
repetitions. Student's pooled variance is slightly more powerful but fails if one side is noisier. Welch's weakness is
two repetitions against five or more: 90 %.

With one run per side, A and B are two runs and their repetitions are not paired. Repetition 3 of A and repetition 3 of
B have the same number and, with one seed, the same shuffled order, but they were not measured side by side. They share
no noise that pairing could cancel, and pairing would only halve the few degrees of freedom.

Repetitions do not show how much a *run* differs from the next run of the same code (placement in memory, clocks, the
host's neighbours). The margin absorbs run-to-run noise of up to 0.5 %. Noise of 1 %, with repetitions that vary by
1 %, gave 9 % false verdicts with five repetitions per side. `python -m analysis aa` measures the noise; with
`--run-noise`, FASTER and SLOWER require a larger difference. Sides measured next to each other, in one shuffled run,
have no such noise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from . import student, units

FASTER, SLOWER, SAME, UNCLEAR = VERDICTS = ("FASTER", "SLOWER", "SAME", "UNCLEAR")
CONFIDENCE = 0.95
FALSE_DISCOVERIES = 0.05  # expected share of chance findings among the FASTER and SLOWER verdicts of one metric
# A row's percentile is the middle of a bucket, whose width is 1/128 of its value; this is the standard deviation of the
# uniform distribution. It does not average out, because repetitions that agree are in the same bucket.
BUCKET_NOISE = 1 / 128 / np.sqrt(12)
# Default noise between two runs: a round value that is not fitted to rows. `python -m analysis aa A B` measures the noise
# of two runs. For results/reference/h200/aa/{a,b} and h200/quick/{a,b}, each pair from one host within minutes, it gives
# 1.6 to 2.8 % for throughput and p50, and no verdict is false, even with `--run-noise 0`. For runs on a shared H100 host
# (results/reference/h100/separate.jsonl), tests/trials/separate_runs.py gives 6.6 % for throughput.
RUN_NOISE = 0.05


@dataclass(frozen=True)
class Metric:
    """A column of the cells that is compared. `tail`: a high percentile, which varies so much that it gets a verdict
    only at points with enough power."""

    column: str
    name: str  # the name in tables and on the command line
    larger_is_better: bool
    resolution: float = BUCKET_NOISE  # standard deviation that rounding adds to a value's logarithm
    key: str = ""  # the name in a row's `stop`: the figure, or figure.percentile
    unstable_from: float | None = None  # factor between repetitions at and above which a point is unstable
    tail: bool = False


@dataclass(frozen=True)
class Ratio:
    """The ratio B / A. The ends and the error are NaN if a side has a single repetition, because its spread is
    unknown."""

    value: float
    low: float
    high: float
    verdict: str = ""
    error: float = float("nan")  # standard error of the log ratio, as used for verdicts
    freedom: float = float("nan")  # degrees of freedom of that error
    spread: float = float("nan")  # variance of the log ratio of a single repetition, start or run

    def __str__(self) -> str:
        if np.isnan(self.low):
            return units.ratio(self.value)
        return f"{units.ratio(self.value)} [{units.ratio(self.low)}, {units.ratio(self.high)}]"

    def worse_by(self, metric: Metric) -> float:
        """The share by which B is worse than A; negative if B is better."""
        return 1 - self.value if metric.larger_is_better else self.value - 1


NOT_MEASURED = Ratio(*[float("nan")] * 3)  # at least one side lacks the metric


def ratio(before: np.ndarray, after: np.ndarray, common_noise: float = 0.0, run_noise: float = 0.0) -> Ratio:
    """The ratio B / A of the geometric means, with Welch's interval. `common_noise`: standard deviation (of the
    logarithm) of noise that all repetitions of a side share and therefore do not show. `run_noise`: standard deviation
    of the noise between runs. It widens the error behind verdicts, which are about the code that ran, but not the
    interval, which is about these two runs."""
    return mean_ratio([(before, after)], common_noise, run_noise)


def mean_ratio(
    points: Sequence[tuple[np.ndarray, np.ndarray]], common_noise: float = 0.0, run_noise: float = 0.0
) -> Ratio:
    """The geometric mean of the ratios of these points, each with the values of both sides. The points are fixed: the
    interval is about these points, and its variance is that of their repetitions. Noise between runs is assumed to be
    shared by all points of a run."""
    points = [pair for pair in points if not any(np.isnan(side).all() for side in pair)]
    if not points:
        return NOT_MEASURED
    if not all(np.all(np.isfinite(side) & (side > 0)) for pair in points for side in pair):
        return Ratio(*[float("nan")] * 3)  # measured, but beyond the histogram, so without a logarithm
    logs = [[np.log(side) for side in pair] for pair in points]
    change = float(np.mean([after.mean() - before.mean() for before, after in logs]))
    sides = [side for pair in logs for side in pair]
    if min(map(len, sides)) < 2:
        return Ratio(float(np.exp(change)), float("nan"), float("nan"))
    count = len(points)
    parts = [side.var(ddof=1) / len(side) / count**2 for side in sides]
    variance = sum(parts) + 2 * common_noise**2 / count
    estimated = sum(part**2 / (len(side) - 1) for part, side in zip(parts, sides))

    def freedom(variance: float) -> float:
        """Welch and Satterthwaite's degrees of freedom; only the variance of the repetitions reduces them."""
        return variance**2 / estimated if estimated > 0 else np.inf

    tested = variance + 2 * run_noise**2
    one = sum(float(side.var(ddof=1)) for side in sides) / count
    return from_log(change, variance, freedom(variance), one, (tested, freedom(tested)))


def from_log(
    change: float, variance: float, freedom: float, spread: float, tested: tuple[float, float] | None = None
) -> Ratio:
    """The ratio whose logarithm is `change`, with Student's t interval. `tested`: the variance and the degrees of
    freedom behind verdicts, if they differ from those of the interval."""
    # The lower limit avoids a division by 0 if all repetitions of a side are equal.
    error = max(float(np.sqrt(variance)), 1e-12)
    reach = float(student.ppf((1 + CONFIDENCE) / 2, freedom)) * error
    low, middle, high = (float(np.exp(change + step)) for step in (-reach, 0, reach))
    variance, freedom = tested or (variance, freedom)
    error = max(float(np.sqrt(variance)), 1e-12)
    return Ratio(middle, low, high, "", error, float(freedom), float(spread))


def judge(
    ratios: Sequence[Ratio],
    metric: Metric,
    margin: float,
    shown: Sequence[bool] | None = None,
    is_same: Callable[[Ratio], bool] | None = None,
) -> list[Ratio]:
    """The ratios of one metric at all points, each with its verdict.

    FASTER and SLOWER: the test that the ratio differs from 1 by more than `margin` survives Benjamini and Hochberg's
    correction for many points. SAME: `is_same` or, by default, the entire interval lies within the margin. UNCLEAR:
    everything else, and all points that are not `shown`.
    """
    shown = [True] * len(ratios) if shown is None else shown
    is_same = is_same or (lambda one: 1 - margin < one.low and one.high < 1 + margin)
    real = discoveries(np.array([beyond(one, margin) if shows else np.nan for one, shows in zip(ratios, shown)]))

    def verdict(one: Ratio, differs: bool, shows: bool) -> str:
        if one is NOT_MEASURED:
            return ""
        if differs:
            return FASTER if (one.value > 1) == metric.larger_is_better else SLOWER
        return SAME if shows and is_same(one) else UNCLEAR

    return [replace(one, verdict=verdict(one, *judged)) for one, *judged in zip(ratios, real, shown)]


def beyond(one: Ratio, margin: float) -> float:
    """The p value of the hypothesis that B differs from A by at most this share of A; NaN without a spread."""
    change = np.log(one.value)
    distance = max(change - np.log1p(margin), np.log1p(-margin) - change)
    return min(1.0, 2 * float(student.sf(distance / one.error, one.freedom))) if np.isfinite(one.error) else np.nan


def at_least(share: float, wanted: float) -> bool:
    """`share >= wanted` to ten decimals, because 1 - 0.92 is less than 0.08 in binary."""
    return round(share - wanted, 10) >= 0


def discoveries(p: np.ndarray) -> np.ndarray:
    """A mask of the p values that Benjamini and Hochberg's procedure accepts; NaN is never accepted."""
    known = np.sort(p[~np.isnan(p)])
    allowed = known[known <= FALSE_DISCOVERIES * np.arange(1, len(known) + 1) / max(len(known), 1)]
    return p <= (allowed[-1] if len(allowed) else -1.0)
