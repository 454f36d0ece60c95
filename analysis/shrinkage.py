"""Shrunken variances of many points with only a few values each.

Two to five repetitions give only a poor estimate of a point's own variance, so Student's t would be wide. A common
variance would be wrong for most points: some vary by 0.5 %, others by 15 %. The empirical Bayes estimate of Smyth
("Linear models and empirical Bayes methods for assessing differential expression", 2004, section 6.2), as in the
package limma, is a compromise. It assumes that the points' variances scatter around a common one and estimates the
scatter from the points. Each point gets the mean of its own and the common variance, weighted by degrees of freedom.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, polygamma

ENOUGH = 3  # minimum number of points for estimating a common variance
LEAST = 1e-5  # lower limit as a share of the median, because the variance 0 of equal repetitions has no logarithm


def shrink(variances: np.ndarray, freedoms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The shrunken variances and their degrees of freedom. A variance without a degree of freedom is NaN and stays
    NaN."""
    known = np.isfinite(variances) & (freedoms > 0)
    if known.sum() < ENOUGH or np.median(variances[known]) == 0:
        return variances, np.where(known, freedoms, np.nan)
    common, weight = prior(variances[known], freedoms[known])
    if np.isinf(weight):
        return np.where(known, common, np.nan), np.where(known, np.inf, np.nan)
    own = np.where(known, freedoms, 0) * np.where(known, variances, 0)
    total = freedoms + weight
    return np.where(known, (own + weight * common) / total, np.nan), np.where(known, total, np.nan)


def prior(variances: np.ndarray, freedoms: np.ndarray) -> tuple[float, float]:
    """The common variance and its degrees of freedom, which are infinite if the points' variances scatter no more than
    equal variances would. Estimated by moments of the logarithms."""
    half = freedoms / 2
    logs = np.log(np.maximum(variances, LEAST * np.median(variances))) - digamma(half) + np.log(half)
    scatter = logs.var(ddof=1) - polygamma(1, half).mean()
    if scatter <= polygamma(1, 1e6):
        return float(np.exp(logs.mean())), np.inf
    own_half = brentq(lambda x: polygamma(1, x) - scatter, 1e-6, 1e7)
    return float(np.exp(logs.mean() + digamma(own_half) - np.log(own_half))), 2 * own_half
