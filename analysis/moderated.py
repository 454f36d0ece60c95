"""The variances of many points, each known from a few values: moderated by what the points have in common.

With two to five repetitions a point's own variance is hardly known, and Student's t must be wide. One variance for all
points would be wrong for most of them: some vary by 0.5 %, others by 15 %. Between the two stands the empirical Bayes
estimate of Smyth ("Linear models and empirical Bayes methods for assessing differential expression", 2004, section
6.2), as in the package limma: the points' variances are taken to be scattered around a common one; how far, the points
themselves tell. Each gets the mean of its own and the common one, by their degrees of freedom.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, polygamma

ENOUGH = 3  # points from which on a common variance can be told
LEAST = 1e-5  # of the median: equal repetitions have no variance, and that has no logarithm


def moderate(variances: np.ndarray, freedoms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The moderated variances and their degrees of freedom. Where there is no degree of freedom, the variance is
    NaN and stays so."""
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
    """The common variance, and how many degrees of freedom it is worth: infinite where the points' variances scatter no
    more than equal ones would. Moments of the logarithms."""
    half = freedoms / 2
    logs = np.log(np.maximum(variances, LEAST * np.median(variances))) - digamma(half) + np.log(half)
    scatter = logs.var(ddof=1) - polygamma(1, half).mean()
    if scatter <= polygamma(1, 1e6):
        return float(np.exp(logs.mean())), np.inf
    own_half = brentq(lambda x: polygamma(1, x) - scatter, 1e-6, 1e7)
    return float(np.exp(logs.mean() + digamma(own_half) - np.log(own_half))), 2 * own_half
