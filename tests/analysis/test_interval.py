"""Intervals of points: how often they hold the truth where it is known, and what points of equal settings add."""

import numpy as np
import pytest
import rows
from test_report import with_rows
from test_verdict import run

from analysis import stats
from analysis.interval import between, ends
from analysis.load import load
from analysis.moderated import moderate, prior

POINTS, TRIALS = 90, 25


def coverage(noise: str, repetitions: int) -> tuple[float, float]:
    """The share of intervals that hold 1, of all points and of the noisiest fifth. Points as of a sweep on a GPU."""
    generator, found, noisiest = np.random.default_rng(11), [], []
    for _ in range(TRIALS):
        spreads = np.exp(generator.normal(np.log(0.03), 0.9, POINTS))
        low, high, _ = of(run(generator, noise, spreads, repetitions))
        hit = (low <= 1) & (1 <= high)
        found.append(hit.mean())
        noisiest.append(hit[np.argsort(spreads)[-POINTS // 5 :]].mean())
    return float(np.mean(found)), float(np.mean(noisiest))


def of(logs: np.ndarray, groups: np.ndarray | None = None):
    counts = np.full(len(logs), logs.shape[1])
    groups = np.arange(len(logs)) if groups is None else groups
    return ends(np.exp(np.median(logs, 1)), logs.mean(1), logs.var(1, ddof=1), counts, groups, False)


@pytest.mark.parametrize("noise", ["lognormal", "outliers", "drift"])
@pytest.mark.parametrize("repetitions, of_noisiest", [(2, 0.75), (3, 0.84), (5, 0.9)])
def test_intervals_cover_the_truth(noise, repetitions, of_noisiest):
    """The percentile bootstrap covers 50 % with two repetitions, 75 % with three."""
    every, noisiest = coverage(noise, repetitions)
    assert 0.92 <= every <= 0.985 and noisiest >= of_noisiest


def test_two_repetitions_are_far_better_known_together_than_apart():
    logs = run(np.random.default_rng(12), "lognormal", np.full(POINTS, 0.03), 2)
    low, high, _ = of(logs)
    assert np.median(np.log(high / low)) < 0.11  # a point's own t: 0.38


def test_what_the_variances_have_in_common_is_found():
    generator = np.random.default_rng(13)
    true = 4.0 * 6 / generator.chisquare(6, 4000)  # scattered around 4, as by 6 degrees of freedom
    common, weight = prior(true * generator.chisquare(3, 4000) / 3, np.full(4000, 3.0))
    assert common == pytest.approx(4, rel=0.1) and weight == pytest.approx(6, rel=0.2)


def test_equal_variances_are_worth_any_number_of_repetitions():
    variances, freedoms = moderate(np.array([2.0, 2.0, 2.0]), np.array([4.0, 4.0, 4.0]))
    assert np.isinf(freedoms).all() and variances == pytest.approx(variances[0])


def test_two_points_moderate_nothing():
    variances, freedoms = moderate(np.array([1.0, 9.0, np.nan]), np.array([2.0, 2.0, 0.0]))
    assert variances[:2].tolist() == [1, 9] and freedoms[:2].tolist() == [2, 2] and np.isnan(freedoms[2])


def test_points_of_equal_settings_widen_every_interval():
    """30 settings measured as two points each, which differ by 8 % where repetitions differ by 1 %."""
    generator, covered = np.random.default_rng(14), {True: [], False: []}
    groups = np.repeat(np.arange(30), 2)
    for _ in range(TRIALS):
        logs = generator.normal(0, 0.01, (60, 3)) + generator.normal(0, 0.08, 60)[:, None]
        for known in covered:
            low, high, apart = of(logs, groups if known else np.arange(60))
            covered[known].append(((low <= 1) & (1 <= high)).mean())
        assert apart.freedom == 0
    assert np.mean(covered[True]) == pytest.approx(0.95, abs=0.03) and np.mean(covered[False]) < 0.4


def test_what_equal_settings_differ_by_is_beyond_their_repetitions():
    found = between(np.array([0.0, 0.2, 1.0]), np.full(3, 0.005), np.array([0, 0, 1]))
    assert found.freedom == 1 and found.variance == pytest.approx(0.02 - 0.005)
    assert between(np.array([0.0, 0.2]), np.full(2, 0.005), np.array([0, 1])).freedom == 0


def chosen(block: int, repetition: int, rate: float) -> dict:
    row = rows.cell(rows.params("gpu_ring", block=block), repetition)
    row["figures"]["messages_per_second"] = rate
    return row | ({"chosen": {"block": "128"}} if block == 0 else {})


def test_a_setting_that_was_chosen_equals_one_that_was_asked_for(tmp_path):
    some = [
        chosen(block, repetition, rate * (1 + repetition / 1000))
        for block, rate in ((0, 1e6), (128, 1.13e6), (64, 5e5), (256, 6e5))
        for repetition in range(3)
    ]
    results = load([with_rows(tmp_path, *some)])
    found = stats.points(results).set_index("block")
    assert stats.apart(results).freedom == 1
    assert found.loc[0, "messages_per_second_high"] > 1.13e6
    said = stats.apart_said(results)
    assert "differ in the rate by 8.6 % beyond" in said
    alone = load([with_rows(tmp_path / "alone", *some[:3])])
    assert "is not known from these rows" in stats.apart_said(alone)
