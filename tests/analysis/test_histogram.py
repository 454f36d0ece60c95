"""Histograms: percentiles against numpy, merging, overflow, and the layout itself."""

import numpy as np
import pytest
import rows

from analysis.histogram import Histogram, bucket_bounds, bucket_index, merge


def of(samples, **options) -> Histogram:
    return Histogram.from_row(rows.histogram(np.asarray(samples, dtype=np.int64), **options))


@pytest.mark.parametrize(
    "samples",
    [
        np.random.default_rng(1).lognormal(9, 1.2, 50_000),
        np.random.default_rng(2).exponential(2e6, 50_000),
        np.random.default_rng(3).integers(0, 300, 50_000),
        np.random.default_rng(4).uniform(1e3, 1e10, 50_000),
    ],
    ids=["lognormal", "exponential", "below the first doubling", "up to ten seconds"],
)
@pytest.mark.parametrize("percent", [50, 90, 99, 99.9, 100])
def test_percentiles_are_within_one_percent_of_numpy(samples, percent):
    samples = samples.astype(np.int64)
    exact = np.percentile(samples, percent, method="inverted_cdf")
    assert of(samples).percentile(percent) == pytest.approx(exact, rel=0.01, abs=0.5)


def test_layout_is_the_documented_one():
    values = np.array([0, 255, 256, 257, 258, 511, 512, 515, 1023, 1024])
    assert bucket_index(values, 8).tolist() == [0, 255, 256, 256, 257, 383, 384, 384, 511, 512]


def test_bucket_holds_its_value_at_every_power_of_two():
    values = np.array([value for power in range(1, 45) for value in ((1 << power) - 1, 1 << power, (1 << power) + 1)])
    low, width = bucket_bounds(bucket_index(values, 8), 8)
    assert np.all((low <= values) & (values < low + width))
    assert np.all(width <= np.maximum(values / 128, 1))


def test_merging_is_the_histogram_of_all_samples():
    parts = [np.random.default_rng(seed).lognormal(10, 1, 5000).astype(np.int64) for seed in range(3)]
    merged, whole = merge(of(part) for part in parts), of(np.concatenate(parts))
    assert merged.index.tolist() == whole.index.tolist()
    assert merged.counts.tolist() == whole.counts.tolist()


def test_layouts_do_not_mix():
    with pytest.raises(ValueError, match="one layout"):
        merge([of([1, 2]), of([1, 2], bits=7)])


def test_overflow_is_counted_and_never_clamped():
    histogram = of([100] * 90 + [10_000] * 10, largest=1000)
    assert histogram.total == 100
    assert histogram.percentile(90) == 100
    assert histogram.percentile(91) == float("inf")


def test_curve_ends_at_the_number_of_samples():
    x, y = of(np.arange(1, 1001)).curve()
    assert x[-1] == 1000
    assert np.all(np.diff(x) >= 0) and np.all(np.diff(y) > 0)
