"""Interleaved A and B: pairs are found, judged, counted, and right as often as they should be."""

import numpy as np
import pytest
import rows

from analysis.__main__ import main
from analysis.ab import Margins, by_start, judge, paired
from analysis.verdict import FASTER, SAME, SLOWER, UNCLEAR

THROUGHPUT, P50, P99, _ = rows.METRICS
MARGINS = Margins(0.02, 0.05)
PAIRS = 20


def side(points: list[dict], factors, pairs: int = PAIRS, seed: int = 0, **changes) -> list[dict]:
    """Rows of one side; `factors` multiply the throughput of each point."""
    generator, some = np.random.default_rng(seed), []
    for pair in range(pairs):
        for number, (point, factor) in enumerate(zip(points, factors)):
            row = rows.cell(point, pair, samples=200)
            row["figures"]["messages_per_second"] = 1e6 * factor * np.exp(generator.normal(0, 0.01))
            some.append(row | {"ab": {"point": number, "pair": pair}})
    return some


@pytest.fixture
def measured(tmp_path):
    """Writes OUT/a and OUT/b; gives OUT."""

    def write(before: list[dict], after: list[dict]) -> str:
        rows.write(tmp_path / "out/a", before)
        rows.write(tmp_path / "out/b", after)
        return str(tmp_path / "out")

    return write


POINTS = [rows.params(window=window) for window in (1, 2, 4, 8)]


def verdicts(generator, points: int, pairs: int, change: float = 1.0, spread: float = 0.035):
    """Pairs whose sides each vary by `spread`; B's first point is changed by the factor."""
    logs = generator.normal(0, spread * np.sqrt(2), (points, pairs))
    logs[0] += np.log(change)
    return judge([paired(one) for one in logs], THROUGHPUT, MARGINS)


def test_equal_code_is_the_same():
    """60 points, 20 pairs that vary by 3.5 % a side."""
    generator = np.random.default_rng(31)
    found = [one for _ in range(20) for one in verdicts(generator, 60, PAIRS)]
    assert np.mean([one.verdict in (FASTER, SLOWER) for one in found]) <= 0.003
    assert np.mean([one.verdict == SAME for one in found]) >= 0.95
    assert np.mean([one.low <= 1 <= one.high for one in found]) == pytest.approx(0.95, abs=0.015)


def test_five_percent_of_one_point_among_many_is_found():
    generator = np.random.default_rng(32)
    found = [verdicts(generator, 60, PAIRS, 0.95)[0].verdict for _ in range(150)]
    assert 0.58 <= np.mean([one == SLOWER for one in found]) <= 0.82
    assert np.mean([one == SAME for one in found]) <= 0.05  # just outside the margin: each test errs in 5 %


def test_a_change_at_the_margin_is_called_the_same_in_five_percent():
    generator = np.random.default_rng(33)
    found = [judge([paired(generator.normal(np.log(1.05), 0.02, 8))], P99, MARGINS)[0] for _ in range(600)]
    only_same = Margins(0.5, 0.05)  # nothing is called changed, so SAME stands alone
    shares = np.mean([judge([one], P50, only_same)[0].verdict == SAME for one in found])
    assert shares == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize("logs, verdict", [
    ([0.2, 0.2, 0.21, 0.2], FASTER),
    ([-0.2, -0.2, -0.21, -0.2], SLOWER),
    ([0.01, -0.01, 0.0, 0.005], SAME),
    ([0.03, 0.031, 0.03, 0.03], FASTER),  # within what counts as the same, and surely changed
    ([0.3, -0.3, 0.1, 0.0], UNCLEAR),
    ([0.2], UNCLEAR),
])  # fmt: skip
def test_each_word(logs, verdict):
    assert judge([paired(np.array(logs))], THROUGHPUT, MARGINS)[0].verdict == verdict


def test_a_tail_is_judged_where_it_could_show_a_change():
    clear, wild = (paired(np.random.default_rng(34).normal(0.5, spread, PAIRS)) for spread in (0.02, 0.5))
    assert [one.verdict for one in judge([clear, wild], P99, MARGINS)] == [SLOWER, UNCLEAR]
    assert [one.verdict for one in judge([clear, wild], P50, MARGINS)] == [SLOWER, SLOWER]


def test_what_a_process_keeps_for_its_life_is_no_difference():
    """Equal code, whose processes differ by 5 % from start to start: pairs of one start count as one."""
    generator = np.random.default_rng(35)

    def found(starts: int, per_start: int) -> list:
        of_start = generator.normal(0, 0.05, (60, starts, 1))
        logs = (of_start + generator.normal(0, 0.02, (60, starts, per_start))).reshape(60, -1)
        number = np.repeat(np.arange(starts), per_start)
        apart = judge([paired(by_start(one, number)) for one in logs], THROUGHPUT, MARGINS)
        alike = judge([paired(one) for one in logs], THROUGHPUT, MARGINS)
        return [np.mean([one.verdict in (FASTER, SLOWER) for one in side]) for side in (apart, alike)]

    apart, alike = np.mean([found(5, 4) for _ in range(10)], axis=0)
    assert apart <= 0.01, "each start counts once"
    assert alike > 0.1, "and it matters"


def test_rows_that_name_no_start_are_pairs_as_they_are():
    logs = np.array([0.1, np.nan, 0.3])
    assert by_start(logs, [-1, -1, -1]) is logs
    assert by_start(logs, [0, 0, 1]).tolist() == [0.1, 0.3]


def test_a_common_drift_cancels(measured, capsys, undrawn):
    """Both sides of a pair are three times as fast or slow as those of another."""
    drift = np.repeat(np.exp(np.random.default_rng(35).normal(0, 1, PAIRS)), len(POINTS))
    sides = [side(POINTS, (1, 1, 1, factor), seed=place) for place, factor in enumerate((1, 0.8))]
    for some in sides:
        for row, factor in zip(some, drift):
            row["figures"]["messages_per_second"] *= factor
    assert main(["ab", measured(*sides)]) == 0
    text = capsys.readouterr().out
    assert "throughput: 0 FASTER, 1 SLOWER, 3 SAME, 0 UNCLEAR." in text and "80 pairs, all ok on both sides" in text


def test_it_writes_its_page_and_its_plot(measured, tmp_path):
    out = measured(side(POINTS, [1] * 4), side(POINTS, [1] * 4, seed=1))
    assert main(["ab", out]) == 0 and (tmp_path / "out/ab.md").is_file() and (tmp_path / "out/ab.png").is_file()
    assert "](ab.png)" in (tmp_path / "out/ab.md").read_text()
    assert main(["ab", out, "--out", str(tmp_path / "elsewhere")]) == 0 and (tmp_path / "elsewhere/ab.md").is_file()


def test_pairs_that_lack_a_side_are_counted_and_not_used(measured, capsys, undrawn):
    before, after = side(POINTS, [1] * 4), side(POINTS, [1] * 4, seed=1)
    failed = rows.spoilt(after[0], "error", "it broke", "failed")
    disturbed = rows.spoilt(after[1], "disturbed", "others ran") | {"id": "0" * 16}
    main(
        ["ab", measured(before, [disturbed, failed, *after[1:-1]])]
    )  # the disturbed one was measured again; the last is gone
    text = capsys.readouterr().out
    assert "4 points, 80 pairs: 2 of them are missing or not ok on some side, and are not used." in text
    assert text.count("| 19 of 20 |") == 2 and text.count("| 20 |") == 2


def test_a_point_without_any_pair_is_named_with_its_fate(measured, capsys, undrawn):
    before, after = side(POINTS[:2], [1, 1]), side(POINTS[:2], [1, 1], seed=1)
    after = [rows.spoilt(row, "error", "it broke", "failed") if row["ab"]["point"] == 1 else row for row in after]
    out = measured(before, after)
    assert main(["ab", out]) == 0 and main(["ab", out, "--fail-on", "unclear"]) == 1
    said = capsys.readouterr()
    assert "window 2 | A | failed: it broke |" in said.out
    assert "window 2: ok in A only; in B failed: it broke" in said.err


def test_two_settings_of_one_executable(measured, capsys, undrawn):
    def points(batch: int) -> list[dict]:
        return [rows.params(batch=batch, window=window) for window in (16, 64)]

    main(["ab", measured(side(points(1), [1, 1]), side(points(8), [1.3, 1.0], seed=1))])
    text = capsys.readouterr().out
    assert "By design A and B differ in batch (A: 1; B: 8)." in text
    assert "throughput: 1 FASTER, 0 SLOWER, 1 SAME" in text
    assert "| host_polled + pinned | echo | window 16 | 20 |" in text


def test_two_queues_are_paired_too(measured, capsys, undrawn):
    main(["ab", measured(side([rows.params("gpu_ring")], [1.5]), side([rows.params("host_polled")], [1], seed=1))])
    text = capsys.readouterr().out
    assert "| gpu_ring / host_polled + pinned |" in text and "queue (A: gpu_ring; B: host_polled)" in text


def test_gates(measured, capsys, undrawn):
    out = measured(side(POINTS, [1] * 4), side(POINTS, (1, 0.8, 1, 1), seed=1))
    assert main(["ab", out, "--fail-on", "slower:10%:throughput"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("host_polled + pinned, echo, window 2: throughput SLOWER, 2")
    assert main(["ab", out, "--fail-on", "slower:30%:throughput"]) == 0
    capsys.readouterr()
    assert main(["ab", out, "--fail-on", "slower:0.5%:throughput"]) == 2
    assert " pairs" in capsys.readouterr().err


@pytest.mark.parametrize("change, said", [
    (lambda row: row.pop("ab"), "belong to no pair"),
    (lambda row: row.update(status="failed", reason="it broke", cause="error"), "no pair that is ok"),
])  # fmt: skip
def test_what_is_no_result_of_ab_is_refused(measured, capsys, change, said):
    some = side(POINTS[:1], [1], pairs=2)
    for row in some:
        change(row)
    assert main(["ab", measured(some, some)]) == 2 and said in capsys.readouterr().err


def test_a_missing_side_is_refused(tmp_path, capsys):
    rows.write(tmp_path / "a", side(POINTS[:1], [1]))
    assert main(["ab", str(tmp_path)]) == 2 and "no such directory" in capsys.readouterr().err


def test_rows_of_ab_are_valid(schema):
    row = side(POINTS[:1], [1], pairs=1)[0]
    schema.validate(row)
    for wrong in ({"point": 1}, {"point": 1, "pair": -1}, {"point": 1, "pair": 2, "more": 3}):
        assert not schema.is_valid(row | {"ab": wrong})
