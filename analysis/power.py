"""What a comparison can find: how often a change of some size gets a verdict, and how much must be measured for it.

A change of one point among many is what is asked, the hardest case: Benjamini and Hochberg's correction then allows it
a p of 5 % divided by the number of points. With Student's t that is the noncentral t distribution.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from . import student
from .verdict import FALSE_DISCOVERIES, Ratio

USUAL = 0.8  # of the cases: what is called found
LEAST = 0.5  # below it, a gate would pass what it should stop more often than not
TAIL_CHANGE = 0.10  # what a tail must be able to show before it is judged, where no gate says otherwise
FINEST = 0.001  # smaller changes are not asked for
MOST = 10_000  # of repetitions, runs or pairs that are tried


def found(size: float, error: float, freedom: float, points: int) -> float:
    """How often a change by the share `size` of one point of these many is told from chance. `error`: the standard
    error of the logarithm of B / A."""
    if not error > 0 or np.isnan(freedom):
        return 0.0
    level = FALSE_DISCOVERIES / max(points, 1) / 2
    away = abs(np.log1p(size)) / error
    if not np.isfinite(freedom) or freedom > 1e4:
        return float(ndtr(ndtri(level) + away))
    from scipy.stats import nct  # late: it takes half a second, and few commands come here

    limit = student.isf(level, freedom)
    chance = float(nct.sf(limit, freedom, away))
    # Far out scipy's noncentral t has no value; there the normal distribution is near enough.
    return chance if np.isfinite(chance) else float(ndtr(away - limit))


def change(error: float, freedom: float, points: int, share: float = USUAL) -> float:
    """The smallest change that is found in this share of the cases, FINEST or more; infinite where none below a factor
    of 1000 is."""
    if found(999.0, error, freedom, points) < share:
        return np.inf
    if found(FINEST, error, freedom, points) >= share:
        return FINEST
    return float(brentq(lambda size: found(size, error, freedom, points) - share, FINEST, 999.0, xtol=1e-6))


@dataclass(frozen=True)
class Design:
    """What is measured how often: its error and degrees of freedom, by the count of what is repeated. `spread`: the
    variance of one ratio's logarithm; `fixed`: variance that no count makes smaller."""

    what: str
    error: Callable[[float, int], tuple[float, float]]  # of (spread, count): (error, degrees of freedom)

    def needed(self, spreads: Sequence[float], size: float, points: int) -> int | None:
        """How many are needed to find the change in 80 % of the cases at half of the points; None: no number will
        do."""
        spread = float(np.median(spreads))

        def enough(count: int) -> bool:
            return found(size, *self.error(spread, count), points) >= USUAL

        if not enough(MOST):
            return None
        low, high = 1, MOST  # a bisection: more of them never finds less
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high


def repetitions(run_noise: float, rounding: float = 0.0) -> Design:
    """Of one run a side, two runs being taken to differ by `run_noise`."""

    def error(spread: float, count: int) -> tuple[float, float]:
        own = spread / count
        variance = own + 2 * run_noise**2 + 2 * rounding**2
        return float(np.sqrt(variance)), 2 * (count - 1) * (variance / own) ** 2 if own else np.inf

    return Design("repetitions", error)


def runs(rounding: float = 0.0) -> Design:
    """Of so many runs a side. `spread` is that between runs."""
    return Design(
        "runs a side", lambda spread, count: (float(np.sqrt(spread / count + 2 * rounding**2)), 2 * (count - 1))
    )


def _averaged(what: str) -> Design:
    return Design(what, lambda spread, count: (float(np.sqrt(spread / count)), count - 1))


PAIRS, STARTS = _averaged("pairs"), _averaged("starts of both sides")


def of(ratios: Sequence[Ratio], size: float) -> list[float]:
    """For each ratio that has an error, how often such a change would be found among all of these."""
    known = [one for one in ratios if np.isfinite(one.error)]
    return [found(size, one.error, one.freedom, len(known)) for one in known]


def typical(ratios: Sequence[Ratio], size: float) -> float:
    """That of the middle point: half of the points are known better. 0 where no point has an error."""
    powers = of(ratios, size)
    return float(np.median(powers)) if powers else 0.0
