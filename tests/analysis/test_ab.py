"""`analysis ab`: the estimates from slices, on simulated comparisons with known truth, and its page and gates."""

import numpy as np
import pandas as pd
import pytest
import rows
from conftest import main

from analysis import power, slices
from analysis.ab import Margins, judge
from analysis.verdict import FASTER, SAME, SLOWER, UNCLEAR, Ratio

pytestmark = pytest.mark.usefixtures("figureless")
THROUGHPUT, P50, P99 = rows.METRICS[:3]
MARGINS = Margins(0.01, 0.05)
STARTS = 16


def share(found, *words: str) -> float:
    return float(np.mean([one.verdict in words for one in found]))


def covering(found, truth: float = 1.0) -> float:
    return float(np.mean([one.low <= truth <= one.high for one in found]))


# --- estimates


def test_block_cancels_linear_drift_and_incomplete_blocks_do_not_count():
    def side(places, change):
        found = [{"start": 0, "block": block, "place": place, "x": np.exp(0.3 * (4 * block + place) + change)}
                 for block in range(5) for place in places]  # fmt: skip
        return pd.DataFrame(found)

    a, b = side((0, 3), 0.0), side((1, 2), 0.2)
    assert slices.by_start(a, b, "x").tolist() == [pytest.approx(0.2)]
    b.loc[0, "x"] = 1e9
    assert slices.by_start(a, b, "x").tolist() == [pytest.approx(0.2)], "one wild block does not matter"
    b.loc[0, "x"] = np.nan
    assert slices.by_start(a, b, "x").tolist() == [pytest.approx(0.2)]
    assert slices.by_start(a, b[b["place"] == 1], "x").empty


def test_interval_matches_published_table_of_the_signed_rank_test():
    """Hollander and Wolfe (Nonparametric Statistical Methods, table A.4): P(W <= 17) is 0.0239 and P(W <= 18) 0.0287 for
    13 values, so the interval has the 18th smallest and largest of the 91 means of pairs."""
    values = np.random.default_rng(3).normal(0, 1, 13)
    sums, one = slices.walsh(values), slices.ratio(values)
    assert len(sums) == 91
    assert (one.low, one.high) == pytest.approx((np.exp(sums[17]), np.exp(sums[-18])))
    assert np.isnan(slices.ratio(values[:5]).low), "five values give no interval of 95 %"


@pytest.mark.parametrize("draw", [
    lambda generator, size: generator.normal(0, 0.06, size),
    lambda generator, size: generator.standard_t(2, size) * 0.03,
    lambda generator, size: generator.choice([-0.06, 0.06], size) + generator.normal(0, 0.01, size),
])  # fmt: skip
@pytest.mark.parametrize("starts", [8, 16, 36])
def test_interval_covers_the_truth_for_any_symmetric_noise(draw, starts):
    generator = np.random.default_rng(4)
    found = [slices.ratio(0.1 + draw(generator, starts)) for _ in range(1000)]
    assert 0.935 <= covering(found, np.exp(0.1)) <= 0.985


def simulated(generator, points: int = 10, change: float = 0.0, changed: int = 1, start: float = 0.045, runs: int = 1):
    """Judged ratios of throughput. Starts of a side differ by `start`, slices by heavy-tailed 8 %, runs by 1 %; the
    first `changed` points of B differ by the factor exp(change)."""
    found = []
    for point in range(points):
        of_runs = []
        for _ in range(runs):
            between = generator.normal(0, 0.01) if runs > 1 else 0.0
            blocks = generator.standard_t(4, (STARTS, 6, 4)) * 0.08
            each = generator.normal(0, start * np.sqrt(2), STARTS)[:, None] + blocks[:, :, ::2].mean(axis=2) - blocks[:, :, 1::2].mean(axis=2)  # fmt: skip
            logs = np.array([slices.middle(one) for one in each]) + between + (change if point < changed else 0.0)
            of_runs.append(slices.ratio(logs))
        found.append(slices.combine(of_runs))
    return judge(found, THROUGHPUT, MARGINS)


def test_equal_sides_get_few_false_verdicts():
    generator = np.random.default_rng(5)
    found = [one for _ in range(60) for one in simulated(generator)]
    assert share(found, FASTER, SLOWER) <= 0.005 and covering(found) == pytest.approx(0.95, abs=0.025)
    found = [one for _ in range(60) for one in simulated(generator, runs=3)]
    assert share(found, FASTER, SLOWER) <= 0.005 and covering(found) >= 0.93


def test_alike_starts_make_equal_sides_the_same():
    generator = np.random.default_rng(6)
    found = [one for _ in range(30) for one in simulated(generator, start=0.02)]
    assert share(found, SAME) >= 0.9


@pytest.mark.parametrize("change, margin", [(0.05, 0.01), (0.08, 0.05)])
def test_verdict_tests_the_margin(change, margin):
    """A change of exactly the margin is found in 5 % of the cases at most; the stated power is that of larger changes."""
    generator, error = np.random.default_rng(7), 0.016

    def found(true: float) -> float:
        some = [slices.ratio(generator.normal(np.log1p(true), error * np.sqrt(STARTS), STARTS)) for _ in range(1200)]
        return share([judge([one], THROUGHPUT, Margins(margin, 0.2))[0] for one in some], FASTER)

    assert found(margin) <= 0.05
    assert found(change) == pytest.approx(power.found(change, error, STARTS - 1, 1, margin), abs=0.06)


def test_change_at_the_margin_gets_same_in_five_percent_of_cases():
    generator = np.random.default_rng(33)
    only_same = Margins(0.5, 0.05)  # no change reaches this margin, so only SAME and UNCLEAR remain
    found = [judge([slices.ratio(generator.normal(np.log(1.05), 0.02, 8))], P50, only_same)[0] for _ in range(600)]
    assert share(found, SAME) == pytest.approx(0.05, abs=0.02)


def test_few_starts_are_unclear():
    few = slices.ratio(np.array([0.2, 0.2, 0.21]))
    assert judge([few], THROUGHPUT, MARGINS)[0].verdict == UNCLEAR and few.value == pytest.approx(np.exp(0.2), abs=0.01)


def test_tail_is_judged_only_with_enough_power():
    clear, wild = (slices.ratio(np.random.default_rng(34).normal(0.5, spread, 20)) for spread in (0.02, 0.5))
    found = [[one.verdict for one in judge([clear, wild], metric, MARGINS)] for metric in (P99, P50)]
    assert found == [[SLOWER, UNCLEAR], [SLOWER, SLOWER]]


def test_runs_that_differ_widen_the_interval():
    generator = np.random.default_rng(8)
    runs = [slices.ratio(generator.normal(shift, 0.02, STARTS)) for shift in (-0.1, 0.0, 0.1)]
    apart, alike = slices.combine(runs), slices.combine([runs[1]] * 3)
    assert apart.low < 0.85 and apart.high > 1.18
    assert alike.high / alike.low < 1.05 < apart.high / apart.low
    assert slices.combine([runs[0]]) is runs[0]
    assert np.isnan(slices.combine([runs[0], slices.ratio(np.zeros(3))]).low), "one run with an error says nothing about runs"


@pytest.mark.parametrize("between", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("runs", [2, 3, 6])
def test_combined_interval_covers_the_truth(between, runs):
    """`between`: the standard deviation between runs, in units of a run's own error of 0.5 %."""
    generator, found = np.random.default_rng(9), []
    for _ in range(400):
        shifts = generator.normal(0, 0.005 * between, runs)
        found.append(slices.combine([slices.ratio(generator.normal(shift, 0.02, STARTS)) for shift in shifts]))
    assert covering(found) >= 0.93


# --- the page


POINTS = [rows.params(window=window) for window in (1, 2, 4, 8)]


def side(points: list[dict], factors, places=(0, 3), starts: int = STARTS, seed: int = 0) -> list[dict]:
    """Rows of one side, with three blocks per visit; `factors` multiply the throughput of the points."""
    generator = np.random.default_rng(seed)

    def visit(number: int, start: int, factor: float) -> dict:
        rate = 1e6 * factor * np.exp(generator.normal(0, 0.01))
        figures = [{"messages_per_second": rate, "latency_ns.p50": 1e4, "latency_ns.p99": 2e4} for _ in range(6)]
        where = [{"block": block, "place": place} for block in range(3) for place in places]
        return {"point": number, "start": start, "slices": [one | {"figures": those} for one, those in zip(where, figures)]}

    return [
        rows.cell(point, start, samples=20, ab=visit(number, start, factor))
        for start in range(starts)
        for number, (point, factor) in enumerate(zip(points, factors))
    ]


def sides(factors=(1, 1, 1, 0.8), points=(POINTS, POINTS), seed: int = 0) -> tuple[list[dict], list[dict]]:
    return side(points[0], [1] * len(points[0]), seed=seed), side(points[1], factors, (1, 2), seed=seed + 1)


@pytest.fixture
def ab(folder, tmp_path, capsys):
    """A function that writes OUT/a and OUT/b, judges them and returns the exit code, stdout and stderr."""

    def run(before: list[dict], after: list[dict], *options: str) -> tuple[int, str, str]:
        folder(before, name="out/a"), folder(after, name="out/b")
        code = main(["ab", str(tmp_path / "out"), *options])
        return code, *capsys.readouterr()

    return run


def test_drift_of_both_sides_cancels_and_the_page_is_written(ab, tmp_path):
    """Starts differ by a factor of up to three, but both sides alike."""
    drift = np.repeat(np.exp(np.random.default_rng(35).normal(0, 1, STARTS)), len(POINTS))
    both = sides()
    for some in both:
        for row, factor in zip(some, drift):
            for one in row["ab"]["slices"]:
                one["figures"]["messages_per_second"] *= factor
    _, text, _ = ab(*both, "--out", str(tmp_path / "elsewhere"))
    assert "throughput: 0 FASTER, 1 SLOWER, 3 SAME, 0 UNCLEAR." in text and "p50: 0 FASTER, 0 SLOWER, 4 SAME" in text
    assert "4 points, 16 starts of both sides, 768 slices." in text and "| 16 × 12 |" in text
    assert "](compare.png)" not in text and (tmp_path / "elsewhere/ab.md").read_text().strip() in text


def test_ratio_of_a_variant_is_that_of_its_points(ab):
    _, text, _ = ab(*sides(factors=(0.8, 0.8, 1.25, 1.25)))
    line = next(line for line in text.splitlines() if line.startswith("| host_polled + pinned | 4 |"))
    low, high = map(float, line.split("[")[1].split("]")[0].split(", "))
    assert low <= 1 <= high and high - low < 0.02, "the points are fixed, so only the starts' noise counts"


def test_several_runs_are_combined(folder, tmp_path, capsys):
    names = []
    for run in range(3):
        before, after = sides(seed=2 * run)
        folder(before, name=f"{run}/a"), folder(after, name=f"{run}/b")
        names.append(str(tmp_path / str(run)))
    assert main(["ab", *names]) == 0
    text = capsys.readouterr().out
    assert "throughput: 0 FASTER, 1 SLOWER, 3 SAME" in text and "48 starts of both sides, 2304 slices" in text
    assert "Each of the 3 runs has its own ratio" in text and (tmp_path / "0/ab.md").is_file()


def test_point_that_the_first_run_lacks_is_judged_from_the_others(folder, tmp_path, capsys):
    names = []
    for run, count in enumerate((3, 4, 4, 4)):
        for name, some in zip("ab", sides(seed=2 * run)):
            folder([row for row in some if row["ab"]["point"] < count], name=f"{run}/{name}")
        names.append(str(tmp_path / str(run)))
    assert main(["ab", *names]) == 0
    text = capsys.readouterr().out
    assert "throughput: 0 FASTER, 1 SLOWER, 3 SAME" in text and "4 points, 48 to 64 starts of both sides" in text


def test_slices_that_failed_are_not_used(ab):
    before, after = sides()
    for row in before[:2]:
        row["ab"]["slices"][0] = {"block": 0, "place": 0, "status": "invalid", "cause": "no_results", "reason": "none"}
    _, text, _ = ab(before, after)
    assert "throughput: 0 FASTER, 1 SLOWER, 3 SAME" in text


@pytest.mark.parametrize("spoil", ["starts", "slices"])
def test_side_that_loses_slices_or_starts_has_no_verdict(ab, spoil):
    before, after = sides()
    for row in after:
        if row["ab"]["point"] == 3 and spoil == "slices":
            row["ab"]["slices"][0] = {"block": 0, "place": 1, "status": "unsustainable", "cause": "backlog", "reason": "slow"}
    if spoil == "starts":
        after = [rows.spoilt(row, "error", "it broke", "failed") if row["ab"]["point"] == 3 and row["ab"]["start"] % 2
                 else row for row in after]  # fmt: skip
    code, text, error = ab(before, after, "--fail-on", "unclear")
    lost = "50 %" if spoil == "starts" else "17 %"
    assert f"window 8: 0 % of A's slices or starts and {lost} of B's have no figure and are not used." in text
    assert code == 1 and "throughput: 0 FASTER, 0 SLOWER, 3 SAME, 1 UNCLEAR" in text and "window 8" in error


def test_point_without_a_ratio_is_listed_with_its_reason(ab):
    before, after = sides()
    after = [rows.spoilt(row, "error", "it broke", "failed") if row["ab"]["point"] == 1 else row for row in after]
    code, text, error = ab(before, after, "--fail-on", "unclear")
    assert code == 1 and "window 2 | A | failed: it broke |" in text and "1 further points have no ratio." in text
    assert "window 2: ok in A only; in B failed: it broke" in error


def test_sides_can_differ_in_a_setting_or_in_the_queue(ab):
    both = [[rows.params(batch=batch, window=window) for window in (16, 64)] for batch in (1, 8)]
    _, text, _ = ab(*sides((1.3, 1.0), both))
    assert "By design, A and B differ in batch (A: 1; B: 8)." in text
    assert "throughput: 1 FASTER, 0 SLOWER, 1 SAME" in text and "| host_polled + pinned | echo | window 16 | 16 × 12 |" in text
    _, text, _ = ab(*sides([1], ([rows.params("gpu_ring")], [rows.params("host_polled")])))
    assert "| gpu_ring / host_polled + pinned |" in text and "queue (A: gpu_ring; B: host_polled)" in text


@pytest.mark.parametrize("gate, code, expected", [
    ("slower:10%:throughput", 1, "host_polled + pinned, echo, window 8: throughput SLOWER, 2"),
    ("slower:30%:throughput", 0, ""), ("slower:1.1%:throughput", 2, " starts of both sides"),
])  # fmt: skip
def test_gate_applies_to_slices(ab, gate, code, expected):
    found, _, error = ab(*sides(), "--fail-on", gate)
    assert found == code and error.count("\n") == bool(expected) and expected in error


def test_ab_rejects_rows_of_other_commands(ab, tmp_path, capsys):
    some = side(POINTS[:1], [1], starts=2)
    code, _, error = ab(*[[rows.spoilt(row, "error", "it broke", "failed") for row in some]] * 2)
    assert code == 2 and "no point that is ok on both sides" in error
    code, _, error = ab(*[[{key: value for key, value in row.items() if key != "ab"} for row in some]] * 2)
    assert code == 2 and "have no slices" in error
    assert main(["ab", str(tmp_path)]) == 2 and "no such directory" in capsys.readouterr().err


# --- trials with known truth


def test_trials_count_false_verdicts_of_equal_sides_and_found_doses(folder, tmp_path, capsys):
    names = []
    for run in range(3):
        before, after = sides(factors=[0.95 if run == 2 else 1.0] * 4, seed=10 * run)
        folder(before, name=f"{run}/a"), folder(after, name=f"{run}/b")
        names.append(str(tmp_path / str(run)))
    assert main(["trials", *names[:2]]) == 0
    text = capsys.readouterr().out
    assert "2 runs with 16 starts of both sides. The sides are equal." in text
    assert "throughput: of 8 verdicts 0 are FASTER or SLOWER, and false (0 %; at most 31 % with 95 % confidence)" in text
    assert "p50: of 8 verdicts" in text and "8 are SAME (100 %)" in text
    assert main(["trials", names[2], "--dose", "5%"]) == 0
    text = capsys.readouterr().out
    (line,) = [line for line in text.splitlines() if line.startswith("| throughput | host_polled + pinned |")]
    assert line.strip("| ").split(" | ")[2:7] == ["4", "0", "4", "0", "0"]
    assert "100 % (40 % to 100 %) | 100 % |" in line, "found, and the power that was stated for it"
    assert "throughput: of 4 verdicts 4 say SLOWER, 0 SAME, 0 UNCLEAR, and 0 are false." in text
    assert main(["trials", names[0], "--dose", "none"]) == 2 and "'none' is not a percentage" in capsys.readouterr().err


def test_trials_of_equal_sides_need_equal_sides(folder, tmp_path, capsys):
    before, after = sides(factors=[1.0] * 4)
    after = [row | {"params": row["params"] | {"window": 2 * row["params"]["window"]}} for row in after]
    folder(before, name="run/a"), folder(after, name="run/b")
    run = str(tmp_path / "run")
    for options in ([], ["--spreads", str(tmp_path / "spreads.inc")]):
        assert main(["trials", run, *options]) == 2
        assert "has sides that differ in window; allowed: equal sides, or --dose" in capsys.readouterr().err
    assert main(["trials", run, "--dose", "5%"]) == 0


def test_trials_by_point_have_a_line_for_each(folder, tmp_path, capsys):
    before, after = sides(factors=[1.0] * 4)
    folder(before, name="run/a"), folder(after, name="run/b")
    assert main(["trials", str(tmp_path / "run"), "--by-point"]) == 0
    lines = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| throughput")]
    assert len(lines) == 4 and len({tuple(line[1:3]) for line in lines}) == 4 and {line[3] for line in lines} == {"1"}


def test_trials_of_one_point_each_are_named_by_what_differs_between_them(folder, tmp_path, capsys):
    for run, points in enumerate(([POINTS[0]], [POINTS[3]])):
        before, after = sides(factors=[1.0], points=(points, points))
        folder(before, name=f"{run}/a"), folder(after, name=f"{run}/b")
    assert main(["trials", str(tmp_path / "0"), str(tmp_path / "1"), "--by-point"]) == 0
    lines = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| throughput")]
    assert len(lines) == 2 and all(line[2] and "nan" not in line[2] for line in lines), lines


def test_spreads_of_trials_are_written_as_code_and_checked(folder, tmp_path, capsys):
    before, after = sides(factors=[1.0] * 4)
    folder(before, name="run/a"), folder(after, name="run/b")
    run, file = str(tmp_path / "run"), tmp_path / "spreads.inc"
    assert main(["trials", run, "--spreads", str(file)]) == 0
    lines = [line.split('"') for line in file.read_text().splitlines() if line.startswith("    {")]
    assert {line[3] for line in lines} == {"messages_per_second", "latency_ns.p50"}
    assert all(line[1] == "feeding" and 0 < float(line[6].strip(", },")) < 1 for line in lines)
    assert "16 starts in 1 run on" in file.read_text()
    assert main(["trials", run, "--spreads", str(file), "--check"]) == 0
    for command in (["ab"], ["trials"], ["trials", "--spreads", str(tmp_path / "twice")]):
        assert main([command[0], run, run, *command[1:]]) == 2 and "is given twice" in capsys.readouterr().err
    assert main(["trials", run, "--spreads", str(file), "--dose", "5%"]) == 2
    assert "--dose '5%': does not apply to --spreads" in capsys.readouterr().err
    file.write_text(file.read_text().replace("16 starts", "17 starts"))
    assert main(["trials", run, "--spreads", str(file), "--check"]) == 1
    assert "does not match the rows" in capsys.readouterr().err


def test_share_found_counts_that_all_points_change():
    known = [power.STARTS.error(0.06**2, 16)] * 10
    ratios = [Ratio(1.0, 0.9, 1.1, error=error, freedom=freedom) for error, freedom in known]
    alone = power.of(ratios, 0.05, 0.01)[0]
    together = power.share_found(ratios, 0.05, 0.01)
    assert alone < together < power.found(0.05, *known[0], 1, 0.01)
    generator, shares = np.random.default_rng(1), []
    for _ in range(400):
        values = generator.normal(np.log(1.05), 0.06, (10, 16))
        judged = [
            Ratio(float(np.exp(one.mean())), 0.0, 0.0, error=float(one.std(ddof=1) / 4), freedom=15.0) for one in values
        ]
        shares.append(share(judge(judged, THROUGHPUT, MARGINS), FASTER))
    assert abs(np.mean(shares) - together) < 0.05
