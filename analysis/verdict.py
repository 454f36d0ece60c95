"""FASTER, SLOWER, SAME or UNCLEAR: the ratio B / A of one metric at one point, and what may be said of it.

A ratio is taken on logarithms, where noise that multiplies is symmetric: the geometric mean of B's repetitions over
that of A's, with Welch's t interval. Of the methods tried on simulated runs (3 to 5 repetitions; lognormal noise, heavy
tails, outliers, drift) its intervals cover the truth 95 to 98 % of the time. The bootstrap of medians reached 90 % with
three repetitions; Student's pooled variance, a little more powerful, goes wrong where one side is noisier. Welch's own
weak place is two repetitions beside five or more: 90 %.

Of one run a side: A and B are two runs, so their repetitions are not paired: repetition 3 of A and repetition 3 of B
carry the same number and, of one seed, the same shuffled order, but were not measured side by side, so they share no
noise that a pair could cancel; pairing would only halve the few degrees of freedom.

What no repetition shows is how much a *run* differs from the next one of the same code (placement in memory, clocks,
the host's neighbours). The margin absorbs half a percent of it; 1 % of it, beside repetitions that vary by 1 %, gave
9 % false verdicts with five repetitions a side. `python -m analysis aa` measures it; as `--run-noise` it takes
more for a FASTER or SLOWER. What was measured side by side, in one shuffled run, has none.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from . import student, units

FASTER, SLOWER, SAME, UNCLEAR = VERDICTS = ("FASTER", "SLOWER", "SAME", "UNCLEAR")
CONFIDENCE = 0.95
FALSE_DISCOVERIES = 0.05  # of what is called FASTER or SLOWER in one metric, at most this share by chance
# A row's percentiles are a bucket's middle, and a bucket is 1/128 of its value wide: a rectangle's standard deviation.
# It doesn't average out, for repetitions that agree lie in the same bucket.
BUCKET_NOISE = 1 / 128 / np.sqrt(12)
# Two runs' where nothing else is said. Four runs of the spec quick on H200 hosts, two days, make six pairs: with this 2
# of 1044 verdicts were false, without it 25.
RUN_NOISE = 0.05


@dataclass(frozen=True)
class Metric:
    """A column of the cells that is compared. `tail`: a percentile far out, which varies so much that a verdict needs
    more than its interval."""

    column: str
    name: str  # as the command line and the tables say it
    larger_is_better: bool
    resolution: float = BUCKET_NOISE  # standard deviation of what rounding adds to a value's logarithm
    key: str = ""  # as a row's `stop` says it: the figure, or figure.percentile
    unstable_from: float | None = None  # the factor between repetitions from which on they differ too much
    tail: bool = False


@dataclass(frozen=True)
class Ratio:
    """B / A. The ends and `p` are NaN where a side has a single repetition: one number says nothing of its spread."""

    value: float
    low: float
    high: float
    p: float = float("nan")  # how often chance alone would give a ratio this far from 1
    verdict: str = ""
    error: float = float("nan")  # of the ratio's logarithm, as in `p`
    freedom: float = float("nan")  # of that error
    spread: float = float("nan")  # variance of one repetition's (or run's, or pair's) ratio, of the logarithm

    def __str__(self) -> str:
        if np.isnan(self.low):
            return units.ratio(self.value)
        return f"{units.ratio(self.value)} [{units.ratio(self.low)}, {units.ratio(self.high)}]"

    def worse_by(self, metric: Metric) -> float:
        """The share by which B is worse than A; negative where it is better."""
        return 1 - self.value if metric.larger_is_better else self.value - 1


NOT_MEASURED = Ratio(*[float("nan")] * 3)  # where a side has no such metric, there is nothing to judge


def ratio(before: np.ndarray, after: np.ndarray, common_noise: float = 0.0, run_noise: float = 0.0) -> Ratio:
    """B / A of the geometric means, with Welch's interval. `common_noise` is the standard deviation, of the logarithm,
    of what all repetitions of one side share, and so do not show. `run_noise` is the same, of what is no part of the
    interval, which is about these two runs, but of `p`, which is about what was run."""
    if np.isnan(before).all() or np.isnan(after).all():
        return NOT_MEASURED
    if not all(np.all(np.isfinite(side) & (side > 0)) for side in (before, after)):
        return Ratio(*[float("nan")] * 3)  # a percentile beyond the histogram: measured, and has no logarithm
    logs = [np.log(side) for side in (before, after)]
    change = logs[1].mean() - logs[0].mean()
    if min(map(len, logs)) < 2:
        return Ratio(float(np.exp(change)), float("nan"), float("nan"))
    parts = [side.var(ddof=1) / len(side) for side in logs]
    variance = sum(parts) + 2 * common_noise**2
    estimated = sum(part**2 / (len(side) - 1) for part, side in zip(parts, logs))

    def spread(variance: float) -> tuple[float, float]:
        """The standard error, and Welch's and Satterthwaite's degrees of freedom: only what the repetitions had to
        estimate costs some."""
        error = max(np.sqrt(variance), 1e-12)  # equal repetitions on both sides: nothing to divide by
        return error, variance**2 / estimated if estimated > 0 else np.inf

    error, freedom = spread(variance)
    reach = student.ppf((1 + CONFIDENCE) / 2, freedom) * error
    low, middle, high = (float(np.exp(change + step)) for step in (-reach, 0, reach))
    error, freedom = spread(variance + 2 * run_noise**2)
    one = sum(float(side.var(ddof=1)) for side in logs)
    return Ratio(middle, low, high, float(2 * student.sf(abs(change) / error, freedom)), "", error, freedom, one)


def judge(ratios: Sequence[Ratio], metric: Metric, margin: float) -> list[Ratio]:
    """The ratios of one metric at all points, each with its verdict.

    FASTER and SLOWER: further from 1 than `margin`, and the difference survives Benjamini and Hochberg's correction
    for the many points, which is stricter than an interval that leaves out 1. SAME: the whole interval lies within
    the margin. UNCLEAR: everything else.
    """
    real = discoveries(np.array([one.p for one in ratios]))
    return [replace(one, verdict=_verdict(one, differs, metric, margin)) for one, differs in zip(ratios, real)]


def _verdict(one: Ratio, differs: bool, metric: Metric, margin: float) -> str:
    if one is NOT_MEASURED:
        return ""
    if differs and at_least(abs(one.value - 1), margin):
        return FASTER if (one.value > 1) == metric.larger_is_better else SLOWER
    return SAME if 1 - margin < one.low and one.high < 1 + margin else UNCLEAR


def at_least(share: float, wanted: float) -> bool:
    """`share >= wanted` to ten decimals, for in binary 1 - 0.92 is less than 0.08."""
    return round(share - wanted, 10) >= 0


def discoveries(p: np.ndarray) -> np.ndarray:
    """Which of these p values Benjamini and Hochberg's procedure accepts; never one that is NaN."""
    known = np.sort(p[~np.isnan(p)])
    allowed = known[known <= FALSE_DISCOVERIES * np.arange(1, len(known) + 1) / max(len(known), 1)]
    return p <= (allowed[-1] if len(allowed) else -1.0)
