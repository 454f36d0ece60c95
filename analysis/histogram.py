"""Latency histograms in HdrHistogram's layout: 2^bits buckets of 1 ns each, then 2^(bits-1) buckets per doubling.

With 8 bits, the width of a bucket is at most 1/128 of its value, so its middle is accurate to 0.4 %.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Histogram:
    """Counts of the non-empty buckets in ascending order of their index. Values are in nanoseconds."""

    bits: int
    index: np.ndarray
    counts: np.ndarray
    overflow: int  # samples above the range, which have a rank but no value

    @staticmethod
    def from_row(histogram: dict) -> "Histogram":
        """A histogram from a row, which gives the buckets by `index` or by `steps`, the differences between indexes."""
        index = histogram.get("index")
        index = np.cumsum(histogram["steps"]) if index is None else index
        return _collect(
            histogram["sub_bucket_bits"],
            np.asarray(index, dtype=np.int64),
            np.asarray(histogram["counts"], dtype=np.int64),
            histogram.get("overflow", 0),
        )

    @property
    def total(self) -> int:
        return int(self.counts.sum()) + self.overflow

    def middles(self) -> np.ndarray:
        """The middle of each bucket, ns."""
        low, width = bucket_bounds(self.index, self.bits)
        return low + (width - 1) / 2

    def percentile(self, percent: float) -> float:
        """The value in ns at or below which `percent` of the samples lie; infinite if that rank overflowed."""
        return float(self.percentiles(np.array([percent]))[0])

    def percentiles(self, percents: np.ndarray) -> np.ndarray:
        """`percentile` of each."""
        if self.total == 0:
            return np.full(len(percents), np.nan)
        # The epsilon keeps 99.9 % of 1000 samples at rank 999, although 0.999 * 1000 is slightly above 999 in binary.
        ranks = np.maximum(1, np.ceil(percents / 100 * self.total - 1e-9))
        return np.append(self.middles(), np.inf)[np.searchsorted(np.cumsum(self.counts), ranks)]

    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Points (1 / (1 - quantile), value in ns) for a percentile plot; x ends at the number of samples."""
        above = self.total - np.cumsum(self.counts)
        return self.total / np.maximum(above, 1), self.middles()


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """All samples of several histograms of equal layout."""
    parts = list(histograms)
    if len({part.bits for part in parts}) != 1:
        raise ValueError("cannot merge histograms of different layouts")
    return _collect(
        parts[0].bits,
        np.concatenate([part.index for part in parts]),
        np.concatenate([part.counts for part in parts]),
        sum(part.overflow for part in parts),
    )


def bucket_bounds(index: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Lowest value and width, ns, of each bucket."""
    index = np.asarray(index, dtype=np.int64)
    exact, half = 1 << bits, 1 << (bits - 1)
    beyond = np.maximum(index - exact, 0)
    shift = np.where(index < exact, 0, beyond // half + 1)
    low = np.where(index < exact, index, (beyond % half + half) << shift)
    return low, np.int64(1) << shift


def _collect(bits: int, index: np.ndarray, counts: np.ndarray, overflow: int) -> Histogram:
    unique, inverse = np.unique(index, return_inverse=True)
    totals = np.zeros(len(unique), dtype=np.int64)
    np.add.at(totals, inverse, counts)
    return Histogram(bits, unique, totals, int(overflow))
