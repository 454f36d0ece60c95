"""Properties of the statistics on simulated measurements with known truth: intervals have their nominal coverage, equal
code gets few false verdicts, planted changes are found, and the computed power agrees with the simulated one.

The simulations resemble measured runs: multiplicative noise that differs between points, outliers that only slow down,
and drift within a run."""

import numpy as np
import pytest
import rows

from analysis import power, stats
from analysis.aa import run_noise, upper_bound
from analysis.histogram import Histogram, bucket_bounds, merge
from analysis.interval import between, ends
from analysis.load import load
from analysis.shrinkage import prior, shrink
from analysis.runs import ratios, run_means
from analysis.verdict import FASTER, SAME, SLOWER, UNCLEAR, Ratio, discoveries, from_log, judge, mean_ratio, ratio

THROUGHPUT, P50, P99 = rows.METRICS[:3]
MARGIN = 0.02


def simulated(generator, noise: str, spreads: np.ndarray, repetitions: int) -> np.ndarray:
    """Logarithms of a time, with one row per point."""
    logs = generator.normal(0, 1, (len(spreads), repetitions)) * spreads[:, None]
    if noise == "outliers":
        logs += (generator.random(logs.shape) < 0.05) * generator.uniform(0.1, 0.4, logs.shape)
    if noise == "drift":
        logs += generator.uniform(-0.03, 0.03) * np.linspace(-0.5, 0.5, repetitions)
    return logs


def of_a_sweep(generator, points: int = 90) -> np.ndarray:
    """The noise of the points of a sweep on a GPU: 0.4 to 15 %, typically 3 %."""
    return np.exp(generator.normal(np.log(0.03), 0.9, points))


def share(found, *words: str) -> float:
    return float(np.mean([one.verdict in words for one in found]))


def covering(found, truth: float = 1.0) -> float:
    return float(np.mean([one.low <= truth <= one.high for one in found]))


# --- verdicts on the ratio of two sides


def of(value: float, error: float, freedom: float = 20) -> Ratio:
    return from_log(np.log(value), error**2, freedom, error**2)


@pytest.mark.parametrize(
    "one, of_throughput, of_latency",
    [
        (of(1.20, 0.03), FASTER, SLOWER),
        (of(0.80, 0.03), SLOWER, FASTER),
        (of(1.05, 0.01), FASTER, SLOWER),  # 3 % above the margin, with an error of 1 %
        (of(1.035, 0.01), UNCLEAR, UNCLEAR),  # certainly a change, but perhaps smaller than the margin
        (of(1.01, 0.002), SAME, SAME),  # a real change that is certainly too small
        (of(1.00, 0.007), SAME, SAME),
        (of(1.00, 0.011), UNCLEAR, UNCLEAR),
        (of(1.20, 0.15), UNCLEAR, UNCLEAR),
        (Ratio(1.20, np.nan, np.nan), UNCLEAR, UNCLEAR),
    ],
)
def test_verdict_follows_from_ratio_and_error(one, of_throughput, of_latency):
    found = [judge([one], metric, MARGIN)[0].verdict for metric in (THROUGHPUT, P99)]
    assert found == [of_throughput, of_latency]


def test_many_points_need_stronger_evidence():
    lucky, dull = of(1.1, 0.033), of(1.0, 0.05)
    assert judge([lucky], THROUGHPUT, MARGIN)[0].verdict == FASTER
    assert judge([lucky] + [dull] * 20, THROUGHPUT, MARGIN)[0].verdict == UNCLEAR


def test_mean_of_several_points_is_about_these_points():
    """Points whose ratios differ widely do not widen the interval, and it covers the truth."""
    generator, found = np.random.default_rng(9), []
    truths = np.array([0.5, 1.0, 2.0, 1.5])
    for _ in range(400):
        sides = [np.exp(generator.normal(0, 0.03, (len(truths), 4))) for _ in "ab"]
        found.append(mean_ratio([(one, truth * other) for one, other, truth in zip(*sides, truths)]))
    assert covering(found, float(np.exp(np.log(truths).mean()))) == pytest.approx(0.95, abs=0.025)
    assert np.median([one.high / one.low for one in found]) < 1.06


def test_correction_matches_benjamini_and_hochberg():
    """The example in their paper (1995, section 3.3): four of fifteen are accepted, although nine are below 5 %."""
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1]
    assert discoveries(np.array(p)).tolist() == [True] * 4 + [False] * 11
    assert discoveries(np.array([np.nan, 0.04, np.nan])).tolist() == [False, True, False]
    assert discoveries(np.array([np.nan])).tolist() == [False]


def test_values_without_logarithm_are_unclear_and_missing_values_have_no_verdict():
    good, none = np.array([1.0, 1.01]), np.array([np.nan, np.nan])
    pairs = [(good, np.array([1.0, np.inf])), (good, np.array([1.0, 0.0])), (good, none), (none, good)]
    found = [judge([ratio(*pair)], THROUGHPUT, MARGIN)[0].verdict for pair in pairs]
    assert found == [UNCLEAR, UNCLEAR, "", ""]


@pytest.mark.parametrize(
    "repetitions, least", [((2, 2), 0.93), ((3, 3), 0.93), ((5, 5), 0.93), ((3, 10), 0.92), ((2, 10), 0.87)]
)
@pytest.mark.parametrize("spread", [(0.03, 0.03), (0.06, 0.01)])
def test_interval_of_a_ratio_covers_the_truth(repetitions, least, spread):
    generator = np.random.default_rng(7)
    sides = [[np.exp(generator.normal(0, sd, n)) for _ in range(500)] for sd, n in zip(spread, repetitions)]
    assert covering([ratio(before, 1.3 * after) for before, after in zip(*sides)], 1.3) >= least


def test_interval_covers_the_truth_under_run_noise_only_if_given_that_noise():
    generator = np.random.default_rng(8)
    runs = [[np.exp(generator.normal(0, 0.02) + generator.normal(0, 0.005, 4)) for _ in range(2)] for _ in range(300)]
    assert covering([ratio(*pair, 0.02) for pair in runs]) >= 0.93
    assert covering([ratio(*pair) for pair in runs]) < 0.5


def test_interval_is_at_least_as_wide_as_a_bucket():
    """The repetitions of each run are identical, because a bucket is 0.8 % wide."""
    one = ratio(np.full(5, 10_000.0), np.full(5, 10_050.0), P50.resolution)
    assert one.low < 1 < one.high and one.high / one.low > 1.01


def false_share(noise: str, repetitions: int, seed: int, between: float = 0.0, copies: int = 1, **judged) -> float:
    """The share of false verdicts for equal code in ten sweeps. `between`: the noise between runs at each point, which
    repetitions within a run do not reveal; `copies`: how often each repetition is counted."""
    generator, found = np.random.default_rng(seed), []
    for _ in range(10):
        spreads = of_a_sweep(generator)
        sides = [simulated(generator, noise, spreads, repetitions) + generator.normal(0, between, 90)[:, None] for _ in "ab"]
        values = [np.tile(np.exp(side), copies) for side in sides]
        found += judge([ratio(*pair, THROUGHPUT.resolution, **judged) for pair in zip(*values)], THROUGHPUT, MARGIN)
    return share(found, FASTER, SLOWER)


@pytest.mark.parametrize("noise", ["lognormal", "outliers", "drift"])
@pytest.mark.parametrize("repetitions", [3, 5])
def test_equal_code_gets_at_most_two_percent_false_verdicts(noise, repetitions):
    assert false_share(noise, repetitions, seed=2) <= 0.02


def test_simulation_detects_causes_of_false_verdicts():
    assert false_share("lognormal", 5, seed=2, copies=3) > 0.02  # each repetition counts three times
    assert false_share("lognormal", 5, seed=3, between=0.05) > 0.1
    assert false_share("lognormal", 5, seed=3, between=0.05, run_noise=0.05) <= 0.02


@pytest.mark.parametrize("points, slow, spread", [(1, 1, 0.01), (1, 1, 0.015), (4, 1, 0.01), (4, 4, 0.015)])
def test_slowdown_of_five_percent_is_found(points, slow, spread):
    """The first `slow` points are slower; each side has five repetitions."""
    generator, trials = np.random.default_rng(3), []
    slower = np.where(np.arange(points) < slow, np.log(0.95), 0.0)
    for _ in range(40):
        sides = [np.exp(generator.normal(0, spread, (points, 5)) + change[:, None]) for change in (0 * slower, slower)]
        trials.append(judge([ratio(*pair) for pair in zip(*sides)], THROUGHPUT, 0.005))
    for place in range(slow):
        assert share([found[place] for found in trials], SLOWER) >= 0.95


# --- intervals of points


def interval_of(logs: np.ndarray, groups: np.ndarray | None = None):
    groups = np.arange(len(logs)) if groups is None else groups
    counts = np.full(len(logs), logs.shape[1])
    return ends(np.exp(np.median(logs, 1)), logs.mean(1), logs.var(1, ddof=1), counts, groups, False)


@pytest.mark.parametrize("noise", ["lognormal", "outliers", "drift"])
@pytest.mark.parametrize("repetitions, of_noisiest", [(2, 0.75), (3, 0.84), (5, 0.9)])
def test_interval_of_a_point_covers_the_truth(noise, repetitions, of_noisiest):
    """The test includes the noisiest fifth of the points. The percentile bootstrap covers 50 % with two repetitions."""
    generator, every, noisiest = np.random.default_rng(11), [], []
    for _ in range(25):
        spreads = of_a_sweep(generator)
        low, high, _ = interval_of(simulated(generator, noise, spreads, repetitions))
        hit = (low <= 1) & (1 <= high)
        every.append(hit.mean())
        noisiest.append(hit[np.argsort(spreads)[-18:]].mean())
    assert 0.92 <= np.mean(every) <= 0.985 and np.mean(noisiest) >= of_noisiest


def test_variances_are_moderated_over_points():
    logs = simulated(np.random.default_rng(12), "lognormal", np.full(90, 0.03), 2)
    low, high, _ = interval_of(logs)
    assert np.median(np.log(high / low)) < 0.11  # Student's t for a single point gives 0.38
    generator = np.random.default_rng(13)
    true = 4.0 * 6 / generator.chisquare(6, 4000)  # scattered around 4, with 6 degrees of freedom
    assert prior(true * generator.chisquare(3, 4000) / 3, np.full(4000, 3.0)) == pytest.approx((4, 6), rel=0.2)
    variances, freedoms = shrink(np.array([2.0, 2.0, 2.0]), np.array([4.0, 4.0, 4.0]))
    assert np.isinf(freedoms).all() and variances == pytest.approx(variances[0])
    variances, freedoms = shrink(np.array([1.0, 9.0, np.nan]), np.array([2.0, 2.0, 0.0]))
    assert variances[:2].tolist() == [1, 9] and freedoms[:2].tolist() == [2, 2] and np.isnan(freedoms[2])


def test_points_with_equal_settings_widen_every_interval():
    """30 settings are measured as two points each, which differ by 8 %; repetitions differ by 1 %."""
    generator, covered = np.random.default_rng(14), {True: [], False: []}
    for _ in range(25):
        logs = generator.normal(0, 0.01, (60, 3)) + generator.normal(0, 0.08, 60)[:, None]
        for known in covered:
            low, high, apart = interval_of(logs, np.repeat(np.arange(30), 2) if known else None)
            covered[known].append(((low <= 1) & (1 <= high)).mean())
        assert apart.freedom == 0
    assert np.mean(covered[True]) == pytest.approx(0.95, abs=0.03) and np.mean(covered[False]) < 0.4
    found = between(np.array([0.0, 0.2, 1.0]), np.full(3, 0.005), np.array([0, 0, 1]))
    assert found.freedom == 1 and found.variance == pytest.approx(0.02 - 0.005)
    assert between(np.array([0.0, 0.2]), np.full(2, 0.005), np.array([0, 1])).freedom == 0


def test_chosen_setting_equals_requested_setting(tmp_path):
    some = []
    for block, rate in ((0, 1e6), (128, 1.13e6), (64, 5e5), (256, 6e5)):
        point = rows.params("gpu_ring", block=block or 1)
        for repetition in range(3):
            row = rows.cell(point | {"block": block or 1}, repetition, rate * (1 + repetition / 1000))
            some.append(row | ({"chosen": {"block": "128"}} if block == 0 else {}))
    results = load([rows.write(tmp_path / "some", some)])
    found = stats.points(results).set_index("block")
    assert stats.apart(results).freedom == 1 and found.loc[1, "messages_per_second_high"] > 1.13e6
    assert "have a standard deviation of 8.6 % beyond" in stats.separate_points_sentence(results)
    assert "These rows do not show how much" in stats.separate_points_sentence(load([rows.write(tmp_path / "alone", some[:3])]))


# --- several runs for each side


def trial(generator, runs: tuple[int, int], shared: float = 0.0, slower: float = 0.0):
    """Runs differ by about 3 % at each point, and by `shared` at all points together. B's first point is slower."""
    spreads = np.exp(generator.normal(np.log(0.03), 0.7, 60))
    sides = [
        generator.normal(0, shared, count)[None, :] + generator.normal(0, 1, (60, count)) * spreads[:, None]
        for count in runs
    ]
    sides[1][0] -= slower
    return judge(ratios(*sides, 0.0), THROUGHPUT, MARGIN)


@pytest.mark.parametrize("runs", [(2, 2), (5, 5), (1, 3)])
@pytest.mark.parametrize("shared", [0.0, 0.02])
def test_runs_of_the_same_code_get_at_most_two_percent_false_verdicts(runs, shared):
    generator = np.random.default_rng(21)
    found = [one for _ in range(40) for one in trial(generator, runs, shared)]
    assert share(found, FASTER, SLOWER) <= 0.02 and covering(found) == pytest.approx(0.95, abs=0.025)


def test_change_between_several_runs_is_found():
    generator = np.random.default_rng(22)
    assert share([trial(generator, (5, 5), slower=np.log(1.3))[0] for _ in range(40)], SLOWER) >= 0.8


def test_run_counts_once_regardless_of_its_repetitions():
    values, runs = np.array([1.0, 1.0, 4.0]), np.array(["x", "x", "y"])
    found = run_means(values, runs, ["x", "y", "z"])
    assert found[:2].tolist() == [0.0, np.log(4.0)] and np.isnan(found[2])
    assert np.isnan(run_means(np.array([np.inf]), runs[:1], ["x"])[0])


def test_interval_of_runs_is_students_t_for_one_point_and_nan_for_one_run_per_side():
    (one,) = ratios(np.log([[1.0, 1.1, 1.2]]), np.log([[2.0, 2.2, 2.4]]), 0.0)
    error = np.sqrt(2 * np.log([1.0, 1.1, 1.2]).var(ddof=1) / 3)
    assert (one.value, one.high) == pytest.approx((2, 2 * np.exp(2.776445 * error)), rel=1e-6)
    a, b = np.array([[0.0, np.nan], [0.0, 0.1], [0, 0.1]]), np.array([[0.1, np.nan], [0, 0.1], [0, 0.2]])
    alone, *rest = ratios(a, b, 0.0)
    assert alone.value == pytest.approx(np.exp(0.1)) and np.isnan(alone.low) and all(one.low < one.high for one in rest)


# --- noise between runs of the same code


def pairs_of_runs(seed: int, between: float) -> list:
    """Pairs of runs of the same code; the runs differ by `between` at each point and repetitions differ by 0.4 %."""
    generator = np.random.default_rng(seed)
    values = generator.normal(0, between, (200, 2, 1)) + generator.normal(0, 0.004, (200, 2, 4))
    return [[{THROUGHPUT.column: np.exp(one)} for one in pair] for pair in values]


@pytest.mark.parametrize("between", [0.01, 0.03, 0.08])
def test_noise_between_runs_is_estimated(between):
    assert run_noise(pairs_of_runs(6, between), THROUGHPUT) == pytest.approx(between, rel=0.25)
    assert run_noise(pairs_of_runs(6, 0.0), THROUGHPUT) <= 0.001


@pytest.mark.parametrize("between", [0.01, 0.05])
def test_noise_from_some_runs_prevents_false_verdicts_on_other_runs(between):
    measured = run_noise(pairs_of_runs(61, between), THROUGHPUT)
    values = [[one[THROUGHPUT.column] for one in pair] for pair in pairs_of_runs(62, between)]
    assert covering([ratio(*pair, measured) for pair in values]) >= 0.92
    false = [share(judge([ratio(*pair, 0.0, noise) for pair in values], THROUGHPUT, 0.0), FASTER, SLOWER)
             for noise in (measured, 0.0)]  # fmt: skip
    assert false[0] <= 0.02 and false[1] > 0.05


def test_upper_bound_matches_clopper_and_pearson():
    assert upper_bound(0, 100) == pytest.approx(1 - 0.05 ** (1 / 100))  # for 0 of n: 1 minus the n-th root of 5 %
    assert upper_bound(2, 20) == pytest.approx(0.2826, abs=1e-4) and upper_bound(20, 20) == 1


# --- power


def share_found(size: float, draw, judged, points: int = 30) -> float:
    """How often the first of many points, the only one that is slower by `size`, gets the verdict SLOWER."""
    generator, hits = np.random.default_rng(41), []
    for _ in range(150):
        some = [draw(generator, -np.log1p(size) if place == 0 else 0.0) for place in range(points)]
        hits.append(judged(some)[0].verdict == SLOWER)
    return float(np.mean(hits))


@pytest.mark.parametrize("margin", [0.0, MARGIN])
def test_power_of_repetitions_matches_simulated_ones(margin):
    def draw(generator, change):
        return ratio(np.exp(generator.normal(0, 0.03, 8)), np.exp(generator.normal(change, 0.03, 8)))

    size = power.change(*power.repetitions(0.0).error(2 * 0.03**2, 8), 30, margin)
    assert share_found(size, draw, lambda some: judge(some, THROUGHPUT, margin)) == pytest.approx(0.8, abs=0.08)


def test_power_grows_with_starts_and_shrinks_with_points():
    changes = [power.change(*power.STARTS.error(0.005, count), 50) for count in (3, 5, 10, 20, 30)]
    assert changes == sorted(changes, reverse=True)
    assert power.found(0.05, 0.01, 19, 1) > power.found(0.05, 0.01, 19, 100) and power.found(0.05, np.nan, 19, 1) == 0
    assert power.found(0.05, 0.01, 19, 1) > power.found(0.05, 0.01, 19, 1, 0.02) > power.found(0.03, 0.01, 19, 1, 0.02)
    assert power.change(1e-12, np.inf, 9) == power.FINEST and power.change(5.0, 2, 9) == np.inf
    count = power.STARTS.needed([0.005], 0.05, 20)
    found = [power.found(0.05, *power.STARTS.error(0.005, number), 20) for number in (count - 1, count)]
    assert found[0] < 0.8 <= found[1]
    assert power.repetitions(0.05).needed([0.0001], 0.05, 20) is None  # run noise remains


# --- histograms


def histogram_of(samples, **options) -> Histogram:
    return Histogram.from_row(rows.histogram(np.asarray(samples, dtype=np.int64), **options))


@pytest.mark.parametrize(
    "draw",
    [
        lambda generator: generator.lognormal(9, 1.2, 50_000),
        lambda generator: generator.exponential(2e6, 50_000),
        lambda generator: generator.integers(0, 300, 50_000),
        lambda generator: generator.uniform(1e3, 1e10, 50_000),
    ],
    ids=["lognormal", "exponential", "below the first doubling", "up to ten seconds"],
)
def test_histogram_percentiles_are_within_one_percent_of_numpy(draw):
    samples = draw(np.random.default_rng(1)).astype(np.int64)
    histogram = histogram_of(samples)
    for percent in (50, 90, 99, 99.9, 100):
        exact = np.percentile(samples, percent, method="inverted_cdf")
        assert histogram.percentile(percent) == pytest.approx(exact, rel=0.01, abs=0.5)


def test_bucket_contains_its_value_and_has_documented_index():
    values = np.array([0, 255, 256, 257, 258, 511, 512, 515, 1023, 1024])
    assert rows.bucket_index(values, 8).tolist() == [0, 255, 256, 256, 257, 383, 384, 384, 511, 512]
    values = np.array([value for power in range(1, 45) for value in ((1 << power) - 1, 1 << power, (1 << power) + 1)])
    low, width = bucket_bounds(rows.bucket_index(values, 8), 8)
    assert np.all((low <= values) & (values < low + width)) and np.all(width <= np.maximum(values / 128, 1))


def test_merged_histogram_equals_histogram_of_all_samples():
    parts = [np.random.default_rng(seed).lognormal(10, 1, 5000).astype(np.int64) for seed in range(3)]
    merged, whole = merge(map(histogram_of, parts)), histogram_of(np.concatenate(parts))
    assert (merged.index.tolist(), merged.counts.tolist()) == (whole.index.tolist(), whole.counts.tolist())
    with pytest.raises(ValueError, match="different layouts"):
        merge([histogram_of([1, 2]), histogram_of([1, 2], bits=7)])


def test_overflow_is_counted_but_not_clamped():
    histogram = histogram_of([100] * 90 + [10_000] * 10, largest=1000)
    assert (histogram.total, histogram.percentile(90), histogram.percentile(91)) == (100, 100, float("inf"))
    x, y = histogram_of(np.arange(1, 1001)).curve()
    assert x[-1] == 1000 and np.all(np.diff(x) >= 0) and np.all(np.diff(y) > 0)
