"""What a comparison can find: the calculation agrees with simulated comparisons, and the table with its rows."""

import numpy as np
import pytest
import rows

from analysis import power
from analysis.__main__ import main
from analysis.ab import Margins, judge, paired
from analysis.calibration import between, within
from analysis.load import load_all
from analysis.verdict import SLOWER, ratio
from analysis.verdict import judge as judge_runs

THROUGHPUT = rows.METRICS[0]
POINTS, TRIALS = 30, 250


def share_found(size: float, draw, judged) -> float:
    """How often the first of many points, which alone is slower by the size, is called so."""
    generator = np.random.default_rng(41)
    hits = [
        judged([draw(generator, -np.log1p(size) if place == 0 else 0.0) for place in range(POINTS)])
        for _ in range(TRIALS)
    ]
    return float(np.mean(hits))


@pytest.mark.parametrize("pairs", [5, 20])
def test_what_pairs_find_is_what_is_told(pairs):
    spread = 0.05

    def draw(generator, change):
        return paired(generator.normal(change, spread * np.sqrt(2), pairs))

    size = power.change(*power.PAIRS.error(2 * spread**2, pairs), POINTS)
    told = share_found(size, draw, lambda some: judge(some, THROUGHPUT, Margins(0.02, 0.05))[0].verdict == SLOWER)
    assert told == pytest.approx(0.8, abs=0.06)


def test_what_repetitions_find_is_what_is_told():
    """Runs that differ by 3 %, which compare takes them to, and repetitions that vary by 5 %."""
    spread, noise, count = 0.05, 0.03, 10

    def draw(generator, change):
        a, b = (generator.normal(middle + generator.normal(0, noise), spread, count) for middle in (0.0, change))
        return ratio(np.exp(a), np.exp(b), 0.0, noise)

    size = power.change(*power.repetitions(noise).error(2 * spread**2, count), POINTS)
    told = share_found(size, draw, lambda some: judge_runs(some, THROUGHPUT, 0.02)[0].verdict == SLOWER)
    assert told == pytest.approx(0.8, abs=0.07)


def test_more_pairs_find_less():
    changes = [power.change(*power.PAIRS.error(0.005, count), 50) for count in (3, 5, 10, 20, 30)]
    assert changes == sorted(changes, reverse=True)
    assert power.found(0.05, 0.01, 19, 1) > power.found(0.05, 0.01, 19, 100)
    assert power.found(0.05, np.nan, 19, 1) == 0
    assert power.change(1e-12, np.inf, 9) == power.FINEST and power.change(5.0, 2, 9) == np.inf


def test_the_number_that_is_needed_is_the_least_that_does():
    count = power.PAIRS.needed([0.005], 0.05, 20)
    assert power.found(0.05, *power.PAIRS.error(0.005, count), 20) >= 0.8
    assert power.found(0.05, *power.PAIRS.error(0.005, count - 1), 20) < 0.8
    assert power.repetitions(0.05).needed([0.0001], 0.05, 20) is None  # the noise between runs stays


def written(tmp_path, runs=("a", "b"), repetitions=6, noise=0.04, apart=0.0, **where) -> list[str]:
    generator, named = np.random.default_rng(42), []
    for name in runs:
        some = []
        for window in range(1, 41):
            middle = generator.normal(0, apart)
            for repetition in range(repetitions):
                row = rows.cell(rows.params(window=window), repetition, samples=100, where=rows.environment(**where))
                row["figures"]["messages_per_second"] = 1e6 * np.exp(middle + generator.normal(0, noise))
                some.append(row)
        named.append(str(rows.write(tmp_path / name, some)))
    return named


def test_spreads_are_those_of_the_rows(tmp_path):
    several = [load_all([name])["feeding"] for name in written(tmp_path, apart=0.1)]
    assert np.sqrt(np.median(within(several, THROUGHPUT)[0])) == pytest.approx(0.04, rel=0.15)
    whole = np.hypot(0.1, 0.04 / np.sqrt(6))  # a run's mean has its repetitions' noise, too
    assert np.sqrt(np.median(between(several, THROUGHPUT)[0])) == pytest.approx(whole, rel=0.25)


def test_runs_of_two_revisions_do_not_tell_what_runs_differ_by(tmp_path):
    a = written(tmp_path, ("a",))
    b = written(tmp_path, ("b",), revision="fffffff")
    assert len(between([load_all([name])["feeding"] for name in (*a, *b)], THROUGHPUT)[0]) == 0


def test_the_table_goes_into_its_block(tmp_path, capsys):
    runs, readme = written(tmp_path), tmp_path / "README.md"
    readme.write_text("one\n<!-- power:begin -->\nold\n<!-- power:end -->\ntwo\n")
    assert main(["power", *runs, "--readme", str(readme), "--check"]) == 1 and "'power'" in capsys.readouterr().err
    assert main(["power", *runs, "--readme", str(readme)]) == 0
    assert main(["power", *runs, "--readme", str(readme), "--check"]) == 0
    text = readme.read_text()
    spread = float(text.partition("| throughput | pairs (`feedrate ab`) | ")[2].partition(" %")[0])
    assert spread == pytest.approx(4, abs=0.4) and "| throughput | runs a side |" in text and "\nold\n" not in text
    assert "one point among 40 " in text


def test_bad_input(tmp_path, capsys):
    alone = written(tmp_path, ("a",), repetitions=1)
    assert main(["power", *alone]) == 2 and "no point with two repetitions" in capsys.readouterr().err
    assert main(["power", *alone, "--check"]) == 2 and "--check" in capsys.readouterr().err
