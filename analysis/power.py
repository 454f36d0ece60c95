"""Power of a comparison: how often a change of a given size gets a verdict, and how much data that takes.

The question is about a change of one point among many, which is the hardest case: Benjamini and Hochberg's correction
then requires a p of 5 % divided by the number of points. With Student's t, the power follows from the noncentral t
distribution.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from . import student
from .verdict import FALSE_DISCOVERIES, Metric, Ratio

USUAL = 0.8  # share of cases in which a change must be found
LEAST = 0.5  # with less power, a gate would miss its change more often than not
TAIL_CHANGE = 0.10  # change that a tail must be able to show to get a verdict, unless a gate sets another
FINEST = 0.001  # smallest change considered
MOST = 10_000  # largest number of repetitions, runs or starts considered


def found(size: float, error: float, freedom: float, points: float, margin: float = 0.0) -> float:
    """The probability that a change of one point among `points` by the share `size` is found to be more than `margin`.
    `error`: the standard error of the logarithm of B / A."""
    if not error > 0 or np.isnan(freedom):
        return 0.0
    level = FALSE_DISCOVERIES / max(points, 1) / 2
    away = (abs(np.log1p(size)) - np.log1p(margin)) / error
    if not np.isfinite(freedom) or freedom > 1e4:
        return float(ndtr(ndtri(level) + away))
    from scipy.stats import nct  # imported here because it takes half a second and few commands need it

    limit = student.isf(level, freedom)
    chance = float(nct.sf(limit, freedom, away))
    # In the far tail, scipy's noncentral t returns NaN; the normal distribution is close enough there.
    return chance if np.isfinite(chance) else float(ndtr(away - limit))


def change(error: float, freedom: float, points: int, margin: float = 0.0) -> float:
    """The smallest change, at least FINEST, that is found in 80 % of the cases to be more than `margin`; infinite if no
    change below a factor of 1000 is."""

    def lacking(size: float) -> float:
        return found(size, error, freedom, points, margin) - USUAL

    if lacking(999.0) < 0:
        return np.inf
    return FINEST if lacking(FINEST) >= 0 else float(brentq(lacking, FINEST, 999.0, xtol=1e-6))


@dataclass(frozen=True)
class Design:
    """A way of measuring: the repeated unit, and the error and degrees of freedom for a number of repeats. `spread` is
    the variance of the log ratio of one repeat."""

    what: str
    error: Callable[[float, int], tuple[float, float]]  # (spread, count) -> (error, degrees of freedom)

    def needed(self, spreads: Sequence[float], size: float, points: int, margin: float = 0.0) -> int | None:
        """The number of repeats needed to find the change in 80 % of the cases at half of the points; None if no number
        is enough."""
        spread = float(np.median(spreads))

        def enough(count: int) -> bool:
            return found(size, *self.error(spread, count), points, margin) >= USUAL

        if not enough(MOST):
            return None
        low, high = 1, MOST  # bisection: more repeats never find less
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high


def repetitions(run_noise: float, rounding: float = 0.0) -> Design:
    """Repetitions with one run per side, if two runs are assumed to differ by `run_noise`."""

    def error(spread: float, count: int) -> tuple[float, float]:
        own = spread / count
        variance = own + 2 * run_noise**2 + 2 * rounding**2
        return float(np.sqrt(variance)), 2 * (count - 1) * (variance / own) ** 2 if own else np.inf

    return Design("repetitions", error)


def runs(rounding: float = 0.0) -> Design:
    """Several runs per side. `spread` is the spread between runs."""
    return Design(
        "runs per side", lambda spread, count: (float(np.sqrt(spread / count + 2 * rounding**2)), 2 * (count - 1))
    )


def _averaged(what: str) -> Design:
    return Design(what, lambda spread, count: (float(np.sqrt(spread / count)), count - 1))


STARTS, SEVERAL = _averaged("starts of both sides"), _averaged("runs of `feedrate ab`")


def of(ratios: Sequence[Ratio], size: float, margin: float, points: float | None = None) -> list[float]:
    """For each ratio that has an error, the power to find that such a change among `points`, by default all of these
    ratios, is more than `margin`."""
    known = [one for one in ratios if np.isfinite(one.error)]
    return [found(size, one.error, one.freedom, points or len(known), margin) for one in known]


def share_found(ratios: Sequence[Ratio], size: float, margin: float) -> float:
    """The share of these ratios that is found if each of them changes by `size`. Benjamini and Hochberg's correction then
    tests nearly every ratio at the full risk: if a share f is found, at f times the risk. This is the largest f that
    leads to itself."""
    share = 1.0
    for _ in range(100):
        before = share
        share = float(np.mean(of(ratios, size, margin, 1 / max(share, 1e-6)) or [0.0]))
        if abs(share - before) < 1e-4:
            break
    return share


def shown(ratios: Sequence[Ratio], metric: Metric, size: float | None, margin: float) -> list[bool]:
    """For each ratio, whether it can have a verdict. At a point of a tail, a change of this size (TAIL_CHANGE if None)
    must be found in at least half of the cases. This depends on the spread, not on the ratio, so points are not
    selected by their result."""
    known = sum(np.isfinite(one.error) for one in ratios)
    return [
        not metric.tail or found(size or TAIL_CHANGE, one.error, one.freedom, known, margin) >= LEAST for one in ratios
    ]


def typical(ratios: Sequence[Ratio], size: float, margin: float) -> float:
    """The power at the median point; 0 if no point has an error."""
    powers = of(ratios, size, margin)
    return float(np.median(powers)) if powers else 0.0
