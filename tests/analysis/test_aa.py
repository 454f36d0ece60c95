"""A/A: false verdicts are counted, bounded, and written into README; and the noise between runs is found."""

import numpy as np
import pytest
import rows

from analysis.__main__ import main
from analysis.aa import run_noise, upper_bound

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


def test_noise_between_runs_is_found():
    throughput = rows.METRICS[0]

    def pairs(between: float) -> list[dict]:
        generator = np.random.default_rng(6)
        return [
            [
                {throughput.column: np.exp(generator.normal(0, between) + generator.normal(0, 0.004, 4))}
                for _ in range(2)
            ]
            for _ in range(200)
        ]

    assert run_noise(pairs(0.0), throughput) <= 0.001
    assert run_noise(pairs(0.03), throughput) == pytest.approx(0.03, rel=0.25)


def test_the_noise_it_tells_makes_compare_honest(tmp_path, capsys):
    generator = np.random.default_rng(9)
    sides = []
    for name in "ab":
        some = run_of(30)
        for window in range(1, 31):
            factor = np.exp(generator.normal(0, 0.05))
            for row in some:
                if row["params"]["window"] == window:
                    row["figures"]["messages_per_second"] *= factor
        sides.append(str(rows.write(tmp_path / name, some)))
    main(["aa", *sides, "--run-noise", "0"])
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("| throughput"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert int(cells[2]) + int(cells[3]) > 5
    main(["aa", *sides, "--run-noise", f"{cells[8].removesuffix(' %')}%:throughput"])
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("| throughput"))
    assert [cell.strip() for cell in line.strip("|").split("|")][2:4] == ["0", "0"]


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
