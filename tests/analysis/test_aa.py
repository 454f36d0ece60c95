"""A/A: false verdicts are counted, bounded, and written into README; and the noise between runs is found."""

import numpy as np
import pytest
import rows

from analysis.__main__ import main
from analysis.aa import run_noise, upper_bound
from analysis.verdict import FASTER, SLOWER, judge, ratio

TEXT = "# Feedrate\n\n<!-- aa:begin -->\nold\n<!-- aa:end -->\n\nThe rest.\n"


def run_of(points: int, factor: float = 1.0, wrong: int = 0, repetitions: int = 4, **where) -> list[dict]:
    """A run whose first `wrong` points are faster by a third: a false verdict, where the code is the same."""
    some = [
        rows.cell(rows.params(window=place + 1), repetition, where=rows.environment(**where), samples=200)
        for place in range(points)
        for repetition in range(repetitions)
    ]
    for row in some:
        row["figures"]["messages_per_second"] *= 4 / 3 if row["params"]["window"] <= wrong else factor
    return some


@pytest.fixture
def runs(tmp_path):
    return [str(rows.write(tmp_path / "a", run_of(20))), str(rows.write(tmp_path / "b", run_of(20, wrong=2)))]


def test_table_counts_false_verdicts(runs, capsys):
    assert main(["aa", *runs]) == 0
    text = capsys.readouterr().out
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    assert lines[0] == ["metric", "points", "FASTER", "SLOWER", "SAME", "UNCLEAR", "false", "at most", "run noise"]
    by_name = {line[0]: line[1:] for line in lines[2:]}
    assert by_name["throughput"][:3] == ["20", "2", "0"] and by_name["throughput"][5:7] == ["10 %", "28 %"]
    assert by_name["p50"][:3] == ["20", "0", "0"] and by_name["p50"][5] == "0 %"
    assert by_name["all"][:3] == ["60", "2", "0"] and by_name["all"][5] == "3.3 %"
    assert "20 points, 4 repetitions a side" in text and "same revision" not in text


def test_upper_bound_is_clopper_and_pearsons():
    assert upper_bound(0, 100) == pytest.approx(1 - 0.05 ** (1 / 100))  # none of n: the n-th root of 5 %
    assert upper_bound(2, 20) == pytest.approx(0.2826, abs=1e-4)
    assert upper_bound(20, 20) == 1


THROUGHPUT = rows.METRICS[0]


def pairs_of_runs(generator, between: float, points: int = 300) -> list:
    """Two runs of one code, whose points differ by `between` and whose repetitions by 0.4 %."""
    return [
        [{THROUGHPUT.column: np.exp(generator.normal(0, between) + generator.normal(0, 0.004, 4))} for _ in range(2)]
        for _ in range(points)
    ]


@pytest.mark.parametrize("between", [0.01, 0.03, 0.08])
def test_noise_between_runs_is_found(between):
    assert run_noise(pairs_of_runs(np.random.default_rng(6), between), THROUGHPUT) == pytest.approx(between, rel=0.25)


def test_without_noise_between_runs_none_is_found():
    assert run_noise(pairs_of_runs(np.random.default_rng(6), 0.0), THROUGHPUT) <= 0.001


@pytest.mark.parametrize("between", [0.01, 0.05])
def test_the_noise_it_tells_makes_other_runs_comparisons_honest(between):
    """Told by some runs, tried on others of the same code, which it has not seen."""
    told = run_noise(pairs_of_runs(np.random.default_rng(61), between), THROUGHPUT)
    unseen = pairs_of_runs(np.random.default_rng(62), between)
    values = [[one[THROUGHPUT.column] for one in pair] for pair in unseen]

    def false(noise: float) -> float:
        judged = judge([ratio(*pair, 0.0, noise) for pair in values], THROUGHPUT, 0.02)
        return float(np.mean([one.verdict in (FASTER, SLOWER) for one in judged]))

    covering = np.mean([one.low <= 1 <= one.high for one in (ratio(*pair, told) for pair in values)])
    assert covering == pytest.approx(0.95, abs=0.035)
    assert false(told) <= 0.02 and false(0.0) > 0.05


def test_the_noise_goes_into_the_table_and_into_compare(tmp_path, capsys):
    generator = np.random.default_rng(9)
    sides = []
    for name in ("a", "b", "other"):
        some = run_of(30)
        for window in range(1, 31):
            factor = np.exp(generator.normal(0, 0.05))
            for row in some:
                if row["params"]["window"] == window:
                    row["figures"]["messages_per_second"] *= factor
        sides.append(str(rows.write(tmp_path / name, some)))

    def throughput(*arguments: str) -> list[str]:
        main(["aa", *arguments])
        line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("| throughput"))
        return [cell.strip() for cell in line.strip("|").split("|")]

    told = throughput(*sides[:2], "--run-noise", "0")
    assert int(told[2]) + int(told[3]) > 5
    noise = f"{told[8].removesuffix(' %')}%:throughput"
    unseen = throughput(sides[0], sides[2], "--run-noise", "0")
    assert int(unseen[2]) + int(unseen[3]) > 5
    assert throughput(sides[0], sides[2], "--run-noise", noise)[2:4] == ["0", "0"]


def test_other_revisions_are_warned_of(tmp_path, capsys):
    a = rows.write(tmp_path / "a", run_of(3))
    b = rows.write(tmp_path / "b", run_of(3, revision="fffffff"))
    assert main(["aa", str(a), str(b)]) == 0
    said = capsys.readouterr()
    assert "do not tell the same revision (0123abc; fffffff)" in said.err and "0123abc; fffffff" in said.out


def test_readme_block_is_written_and_checked(runs, tmp_path, capsys):
    readme = tmp_path / "README.md"
    readme.write_text(TEXT)
    arguments = ["aa", *runs, "--readme", str(readme)]
    assert main([*arguments, "--check"]) == 1 and readme.read_text() == TEXT
    assert "the block 'aa'" in capsys.readouterr().err
    assert main(arguments) == 0
    text = readme.read_text()
    assert text.startswith("# Feedrate\n\n<!-- aa:begin -->\n") and text.endswith("<!-- aa:end -->\n\nThe rest.\n")
    assert "old" not in text and "| throughput | 20 | 2 | 0 |" in text
    assert main([*arguments, "--check"]) == 0
    assert main([*arguments, "--margin", "50%", "--check"]) == 1


def test_bad_input(runs, tmp_path, capsys):
    (tmp_path / "bare.md").write_text("no markers")
    for options, said in (
        (["--readme", str(tmp_path / "bare.md")], ["--readme", "bare.md", "lacks the markers", "<!-- aa:begin -->"]),
        (["--readme", "missing.md"], ["--readme", "missing.md", "no such file"]),
        (["--check"], ["--check", "--readme README.md"]),
        (["--margin", "two"], ["--margin", "'two' is no percentage"]),
    ):
        assert main(["aa", *runs, *options]) == 2
        error = capsys.readouterr().err
        assert all(part in error for part in said), error
    assert (tmp_path / "bare.md").read_text() == "no markers"
