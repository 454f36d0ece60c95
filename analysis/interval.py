"""95 % intervals of points' medians.

On logarithms: the median's, with Student's t and the moderated variance of the point's repetitions. What other methods
cover, by simulation (tests/analysis/test_statistics.py): the percentile bootstrap of two to five repetitions 50 to 95 %,
a point's own t 95 % with ends three times as far apart where there are two; this one 93 to 98 %, and of the noisiest
fifth of the points 77 to 94 %. Figures that may be 0 or less have no logarithms: theirs are taken on the values.

Repetitions of one point understate what a point's figure varies by: two points of equal settings that one run measured
apart may differ more. Where a run holds such points, their variance is part of every interval of the run.
"""

from dataclasses import dataclass

import numpy as np

from . import student
from .moderated import moderate
from .verdict import BUCKET_NOISE

CONFIDENCE = 0.95
# Variance of the median of n normal values over that of their mean (order statistics; pi / 2 of many).
OF_MEDIAN = {1: 1.0, 2: 1.0, 3: 1.346, 4: 1.192, 5: 1.434, 6: 1.288}


@dataclass(frozen=True)
class Between:
    """What separate points of equal settings differ by, beyond their repetitions."""

    variance: float = 0.0  # of the logarithm
    freedom: int = 0  # points less groups; 0: the run holds no such points


def between(means: np.ndarray, variances: np.ndarray, groups: np.ndarray) -> Between:
    """`means`: of each point's logarithms; `variances`: of these means; `groups`: equal numbers are equal settings."""
    known = np.isfinite(means) & np.isfinite(variances)
    means, variances = means[known], variances[known]
    _, group, sizes = np.unique(groups[known], return_inverse=True, return_counts=True)
    shared = sizes[group] > 1
    freedom = int(shared.sum() - (sizes > 1).sum())
    if not freedom:
        return Between()
    away = means - (np.bincount(group, means) / sizes)[group]
    square = (away[shared] ** 2).sum() / freedom
    return Between(max(0.0, float(square - variances[shared].mean())), freedom)


def ends(
    medians: np.ndarray, means: np.ndarray, variances: np.ndarray, counts: np.ndarray, groups: np.ndarray, rounded: bool,
    linear: bool = False,
) -> tuple[np.ndarray, np.ndarray, Between]:  # fmt: skip
    """Both ends for each point, and what its settings measured apart add. `means`, `variances`: of the repetitions'
    logarithms, or with `linear` of the values; `counts`: of the repetitions; `rounded`: to a histogram's buckets. NaN of
    a single repetition."""
    moderated, freedom = moderate(np.asarray(variances, float), np.asarray(counts, float) - 1)
    share = np.array([OF_MEDIAN.get(int(count), np.pi / 2) for count in counts]) / np.maximum(counts, 1)
    apart = between(np.asarray(means, float), moderated / np.maximum(counts, 1), groups)
    own = moderated * share
    total = own + apart.variance + (BUCKET_NOISE**2 if rounded else 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        estimated = own**2 / freedom + (apart.variance**2 / apart.freedom if apart.freedom else 0)
        effective = np.where(estimated > 0, total**2 / estimated, np.inf)
    reach = np.where(np.isfinite(total), student.ppf((1 + CONFIDENCE) / 2, effective) * np.sqrt(total), np.nan)
    if linear:
        return medians - reach, medians + reach, apart
    return medians * np.exp(-reach), medians * np.exp(reach), apart


def ratio(point, base, metric: str) -> tuple[float, float, float]:
    """Of two medians, with the interval that their two give on a scale of logarithms."""
    share = point[metric] / base[metric]
    half = np.hypot(*(np.log(one[f"{metric}_high"] / one[f"{metric}_low"]) / 2 for one in (point, base)))
    return share, share * np.exp(-half), share * np.exp(half)
