"""Several runs a side: the run is what varies, its variance comes from all points, and verdicts stay right."""

import numpy as np
import pytest
import rows

from analysis.__main__ import main
from analysis.runs import ratios, run_means
from analysis.verdict import FASTER, SLOWER, judge

pytestmark = pytest.mark.usefixtures("undrawn")

THROUGHPUT = rows.METRICS[0]
POINTS, TRIALS = 60, 40


def trial(generator, runs: tuple[int, int], shared: float, slower: float = 1.0):
    """Two sides whose runs differ: at each point by 3 % or so, and all points together by `shared`. B's first point is
    slower by the factor."""
    spreads = np.exp(generator.normal(np.log(0.03), 0.7, POINTS))
    sides = [
        generator.normal(0, shared, count)[None, :] + generator.normal(0, 1, (POINTS, count)) * spreads[:, None]
        for count in runs
    ]
    sides[1][0] += np.log(slower)
    return judge(ratios(*sides, 0.0), THROUGHPUT, 0.02)


@pytest.mark.parametrize("runs", [(2, 2), (3, 3), (5, 5), (1, 3)])
@pytest.mark.parametrize("shared", [0.0, 0.02])
def test_runs_of_one_code_get_at_most_two_percent_false_verdicts(runs, shared):
    generator = np.random.default_rng(21)
    found = [one for _ in range(TRIALS) for one in trial(generator, runs, shared)]
    assert np.mean([one.verdict in (FASTER, SLOWER) for one in found]) <= 0.02
    assert np.mean([one.low <= 1 <= one.high for one in found]) == pytest.approx(0.95, abs=0.025)


def test_a_change_is_found_among_many_points():
    generator = np.random.default_rng(22)
    found = [trial(generator, (5, 5), 0.0, slower=1 / 1.3)[0].verdict for _ in range(TRIALS)]
    assert found.count(SLOWER) >= 0.8 * TRIALS


def test_repetitions_within_a_run_count_once():
    """Ten times as many repetitions of the same runs know nothing more of what runs differ by."""
    values, runs = np.array([1.0, 1.0, 4.0]), np.array(["x", "x", "y"])
    assert run_means(values, runs, ["x", "y", "z"]).tolist()[:2] == [0.0, np.log(4.0)]
    assert np.isnan(run_means(values, runs, ["z"])[0]) and np.isnan(run_means(np.array([np.inf]), runs[:1], ["x"])[0])


def test_one_point_alone_has_students_t():
    (one,) = ratios(np.log([[1.0, 1.1, 1.2]]), np.log([[2.0, 2.2, 2.4]]), 0.0)
    error = np.sqrt(2 * np.log([1.0, 1.1, 1.2]).var(ddof=1) / 3)
    assert one.value == pytest.approx(2) and one.high == pytest.approx(2 * np.exp(2.776445 * error), rel=1e-6)


def test_a_point_of_a_single_run_a_side_has_no_interval():
    alone, *rest = ratios(
        np.array([[0.0, np.nan], [0.0, 0.1], [0, 0.1]]), np.array([[0.1, np.nan], [0, 0.1], [0, 0.2]]), 0.0
    )
    assert alone.value == pytest.approx(np.exp(0.1)) and np.isnan(alone.low) and all(one.low < one.high for one in rest)


@pytest.fixture
def six(tmp_path) -> list[str]:
    """Three runs of each side. A whole run differs by 4 % at each point, a repetition by 0.1 %."""
    generator, named = np.random.default_rng(23), []
    for name in ("a1", "a2", "a3", "b1", "b2", "b3"):
        some = []
        for window in (1, 2, 4, 8):
            factor = np.exp(generator.normal(0, 0.04)) * (0.5 if name[0] == "b" and window == 8 else 1)
            for repetition in range(3):
                row = rows.cell(rows.params(window=window), repetition)
                row["figures"]["messages_per_second"] = 1e6 * factor * (1 + 0.001 * repetition)
                some.append(row)
        named.append(str(rows.write(tmp_path / name, some)))
    return named


def test_compare_of_several_runs(six, tmp_path, capsys):
    assert main(["compare", *six[:3], "--with", *six[3:], "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "throughput: 0 FASTER, 1 SLOWER, " in text and "Kalibera and Jones" in text
    assert "| point | runs |" in text and "| 3 / 3 |" in text and "One run a side" not in text
    # Two single runs: the repetitions alone would call each point changed, so a noise is assumed, and said.
    main(["compare", six[0], six[3], "--out", str(tmp_path / "one")])
    alone = capsys.readouterr().out
    assert "One run a side cannot tell" in alone and "taken to be 5 %" in alone


@pytest.mark.parametrize(
    "words, said",
    [
        (["{0}"], ["does not say which runs are A", "--with B1 B2 B3"]),
        (["{0}", "{1}", "{2}"], ["does not say which runs are A"]),
        (["{0}", "{1}", "--with", "{1}"], ["--with", "is named twice"]),
        (["{0}", "{0}", "--with", "{1}"], ["is named twice"]),
        (["{0}", "{1}", "--with", "{2}", "--run-noise", "2%"], ["--run-noise '2%'", "several runs a side measure it"]),
    ],
)
def test_nonsense_is_refused(six, capsys, words, said):
    assert main(["compare", *(word.format(*six) for word in words)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and all(part in error for part in said), error
