"""Comparisons on the command line: `compare`, `aa` and `power`, their gates, and invalid input."""

import re

import numpy as np
import other_rows
import pytest
import rows
from conftest import REFERENCE, lines, main

from analysis.compare import match

pytestmark = pytest.mark.usefixtures("figureless")


def planted(throughput: float, latency: float, repetitions: int = 5) -> tuple[list[dict], list[dict]]:
    """Two runs of the same four points; in the second, every rate and latency is multiplied by a factor."""
    some = [rows.params(queue, window=window) for queue in ("host_polled", "redis_list") for window in (1, 64)]
    before, after = ([rows.cell(point, n) for point in some for n in range(repetitions)] for _ in "ab")
    for row in after:
        row["figures"]["messages_per_second"] *= throughput
        for name in ("p50", "p99"):
            row["figures"]["latency_ns"][name] *= latency
    return before, after


@pytest.fixture
def compare(folder, capsys):
    """A function that compares rows of A with rows of B and returns the exit code, stdout and stderr."""

    def run(before, after, *options: str) -> tuple[int, str, str]:
        a, b = folder(before, name="a"), folder(after, name="b")
        code = main(["compare", str(a), str(b), *options])
        return code, *capsys.readouterr()

    return run


def test_match_finds_planted_factors(read):
    before, after = planted(1.25, 0.8)
    matched, lonely = match(read(before, name="a"), read(after, name="b"))
    assert len(matched) == 4 and lonely.empty
    for metric, factor in (("messages_per_second", 1.25), ("p50", 0.8), ("p99", 0.8)):
        for ratio in matched[metric]:
            assert ratio.value == pytest.approx(factor) and ratio.low <= factor <= ratio.high


ZERO = ("--run-noise", "0")


@pytest.mark.parametrize("factors, options, expected", [
    ((1.25, 0.8), (), ["throughput: 4 FASTER, 0 SLOWER, 0 SAME, 0 UNCLEAR.", "p50: 4 FASTER, 0 SLOWER",
                       "| host_polled + pinned | 2 | 1.25 [1.24, 1.26] | 0.800"]),
    ((1, 1), ZERO, ["throughput: 0 FASTER, 0 SLOWER, ", "Nothing: both sides ran in the same environment.",
                    "Every point is ok on both sides.", "| p50 | p99 |\n"]),
    ((0.96, 1), ZERO, ["throughput: 0 FASTER, 4 SLOWER, 0 SAME"]),
    ((0.96, 1), (*ZERO, "--margin", "10%"), ["throughput: 0 FASTER, 0 SLOWER, 4 SAME"]),
    ((0.9, 1.1), (*ZERO, "--run-noise", "20%:p99"), ["throughput: 0 FASTER, 4 SLOWER", "p50: 0 FASTER, 4 SLOWER",
                                                      "p99: 0 FASTER, 0 SLOWER, 0 SAME, 4 UNCLEAR.", "to be 20 % p99."]),
    ((0.9, 1), (), ["throughput: 0 FASTER, 0 SLOWER, 0 SAME, 4 UNCLEAR."]),
    ((0.75, 1), (), ["throughput: 0 FASTER, 4 SLOWER", "assumed to be 5 %."]),
])  # fmt: skip
def test_verdicts_match_planted_factors(compare, tmp_path, factors, options, expected):
    code, text, _ = compare(*planted(*factors), *options)
    assert code == 0 and all(part in text for part in expected), text
    assert (tmp_path / "b/compare.md").read_text().strip() in text


def test_single_repetition_has_no_interval_and_is_unclear(compare):
    _, text, _ = compare(*planted(2, 1, repetitions=1))
    assert "throughput: 0 FASTER, 0 SLOWER, 0 SAME, 4 UNCLEAR." in text
    assert "4 have only one repetition" in text and "2.00 UNCLEAR" in text


def test_compare_names_unmatched_points_and_environment_differences(compare):
    common, gone = rows.cell(rows.params()), rows.params(rate=1e6, arrivals="poisson")
    before = [common, rows.cell(rows.params("gpu_ring")), rows.cell(rows.params(window=2)), rows.cell(gone)]
    after = [common, rows.not_ok(rows.params("gpu_ring"), "skipped", "no GPU here"),
             rows.not_ok(gone, "unsustainable", "the backlog grew", sent=1)]  # fmt: skip
    other = rows.environment(driver_version="590.1", revision="fffffff")
    _, text, _ = compare(before, [rows.rerun(row, where=other) for row in after])
    for expected in (
        "1 points match", "3 are ok on one side only", "| A | gpu_ring | 1 | skipped: no GPU here |",
        "| A | host_polled + pinned | 1 | not run |", "| A | host_polled + pinned | 1 | unsustainable: the backlog grew |",
        "| driver_version | 580.159.04 | 590.1 |", "| revision | 0123abc | fffffff |",
    ):  # fmt: skip
        assert expected in text
    assert "| host |" not in text


def test_rows_without_an_axis_match_rows_with_its_default(read):
    defaults = {"arrivals": "closed", "rate": 0, "burst_us": 0, "pause_us": 0, "trace_file": "none"}
    defaults |= {"payload_mix": "none", "priority_mix": "none"}
    new = [rows.cell(rows.params(**defaults)), rows.cell(rows.params(**defaults | {"arrivals": "poisson", "rate": 1000}))]
    matched, lonely = match(read(rows.cell(rows.params()), name="a"), read(new, name="b"))
    assert list(matched["arrivals"]) == ["closed"] and list(lonely["arrivals"]) == ["poisson"]


# --- gates


@pytest.fixture(scope="module")
def slower(tmp_path_factory) -> list[str]:
    """A and B. In B, host_polled at window 1 has 8 % lower throughput and 20 % higher p99, and is equal at window 64;
    redis_list has a single repetition; gpu_ring is ok in A and fails in B; one point exists only in B."""
    place, sides = tmp_path_factory.mktemp("gates"), []
    for name in "ab":
        some = [rows.cell(rows.params(window=window), n, samples=2000) for n in range(8) for window in (1, 64)]
        for row in some:
            if name == "b" and row["params"]["window"] == 1:
                row["figures"]["messages_per_second"] *= 0.92
                row["figures"]["latency_ns"]["p99"] *= 1.2
        gone = rows.params("gpu_ring")
        some.append(rows.cell(gone) if name == "a" else rows.not_ok(gone, "failed", "it hung"))
        some.append(rows.cell(rows.params("redis_list")))
        sides.append(str(rows.write(place / name, some + [rows.cell(rows.params(window=2))] * (name == "b"))))
    return sides


@pytest.mark.parametrize("gates, expected", [
    ([], []),
    (["slower:5%"], ["throughput SLOWER, 8 % worse, B / A 0.92", "p99 SLOWER, 20 % worse"]),
    (["slower:10%"], ["p99 SLOWER"]),
    (["slower:8%"], ["throughput SLOWER", "p99 SLOWER"]),  # a change equal to the percentage fails
    (["slower:8.1"], ["p99 SLOWER"]),
    (["slower:25%"], []),
    (["slower:150%"], []),  # valid, because a latency can be that much worse
    (["slower:5%:throughput"], ["throughput SLOWER"]),
    (["slower:10%:throughput"], []),
    (["slower:5%:p50"], []),
    (["slower:10%:throughput", "slower:10%:p99"], ["p99 SLOWER"]),
    (["slower:5%:service_p99"], []),  # no row has this metric
])  # fmt: skip
def test_gate_fails_points_that_are_slower_by_its_percentage(slower, capsys, gates, expected):
    code = main(["compare", *slower, *ZERO, *(word for gate in gates for word in ("--fail-on", gate))])
    stopped = capsys.readouterr().err.splitlines()
    assert code == bool(expected) and len(stopped) == len(expected)
    assert all(line.startswith("host_polled + pinned, echo, window 1: ") for line in stopped)
    assert all(part in line for part, line in zip(expected, stopped))


def test_unclear_gate_fails_unclear_points_and_points_lost_in_b(slower, capsys):
    assert main(["compare", *slower, *ZERO, "--fail-on", "unclear:p99"]) == 1
    stopped = capsys.readouterr().err.splitlines()
    assert any(line.startswith("redis_list + pinned, echo") and "p99 UNCLEAR" in line for line in stopped)
    assert any(line.startswith("gpu_ring, echo") and "in B failed: it hung" in line for line in stopped)
    assert not any("SLOWER" in line or "throughput" in line or "window 2:" in line for line in stopped)


def test_gate_without_power_is_rejected(slower, compare, capsys):
    """With an assumed noise of 5 % between runs, no number of repetitions can show a change of 5 %."""
    assert main(["compare", *slower, "--fail-on", "slower:5%"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: --fail-on 'slower:5%': a change of 5 % in throughput would be found in only")
    assert "no number of repetitions is enough" in error and "runs per side" in error
    assert main(["compare", *slower, "--fail-on", "slower:60%"]) == 0
    generator = np.random.default_rng(8)
    sides = [[rows.cell(rows.params(window=window), n) for window in (1, 2, 4) for n in range(5)] for _ in "ab"]
    for row in sum(sides, []):
        row["figures"]["messages_per_second"] *= np.exp(generator.normal(0, 0.2))
    capsys.readouterr()
    code, _, error = compare(*sides, *ZERO, "--fail-on", "slower:5%:throughput")
    (count,) = re.findall(r"(\d+) repetitions", error)
    assert code == 2 and 450 < int(count) < 1900  # 2 (0.2 / (0.049 - 0.020))^2 (z of 5 % / 3 + z of 80 %)^2 = 992
    assert compare(*sides, *ZERO, "--fail-on", "slower:5%:p50")[0] == 0


@pytest.mark.parametrize("option, value, expected", [
    ("--fail-on", "faster:5%", "slower:PERCENT[:METRIC], unclear[:METRIC]"),
    ("--fail-on", "slower", "slower:PERCENT"),
    ("--fail-on", "slower:", "'' is not a percentage"),
    ("--fail-on", "slower:five", "2.5%"),
    ("--fail-on", "slower:-5%", "'-5%' is not a percentage"),
    ("--fail-on", "slower:nan", "'nan' is not a percentage"),
    ("--fail-on", "slower:5%:p98", "unknown metric 'p98'; allowed: throughput, p50, p99, service_p99"),
    ("--fail-on", "slower:5%:p99:p50", "invalid value"),
    ("--fail-on", "unclear:5%", "unknown metric '5%'"),
    ("--margin", "0%", "more than 0 %"),
    ("--margin", "100", "less than 100 %"),
    ("--run-noise", "x", "not a percentage"),
    ("--run-noise", "2%:latency", "unknown metric 'latency'"),
    ("--run-noise", "2%:p99:p50", "PERCENT[:METRIC]"),
])  # fmt: skip
def test_message_names_option_value_and_allowed_values(slower, capsys, option, value, expected):
    assert main(["compare", *slower, option, value]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {option} '{value}'") and expected in error and "allowed: " in error


# --- several runs for each side


@pytest.fixture(scope="module")
def six(tmp_path_factory) -> list[str]:
    """Three runs per side. Runs differ by 4 % at each point, repetitions by 0.1 %."""
    generator, place = np.random.default_rng(23), tmp_path_factory.mktemp("six")
    for name in ("a1", "a2", "a3", "b1", "b2", "b3"):
        some = []
        for window in (1, 2, 4, 8):
            rate = 1e6 * np.exp(generator.normal(0, 0.04)) * (0.5 if name[0] == "b" and window == 8 else 1)
            some += [rows.cell(rows.params(window=window), n, rate * (1 + 0.001 * n)) for n in range(3)]
        rows.write(place / name, some)
    return sorted(map(str, place.iterdir()))


def test_runs_with_few_repetitions_are_pointed_out(folder, tmp_path, capsys):
    names = [str(folder([rows.cell(rows.params(), n) for n in range(2 if name == "b2" else 3)], name=name))
             for name in ("a1", "a2", "b1", "b2")]  # fmt: skip
    assert main(["compare", *names[:2], "--with", *names[2:], "--out", str(tmp_path / "out")]) == 0
    assert "1 have fewer than 3 repetitions in some run" in capsys.readouterr().out


def test_noise_is_measured_if_there_are_several_runs(six, tmp_path, capsys):
    assert main(["compare", *six[:3], "--with", *six[3:], "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "throughput: 0 FASTER, 1 SLOWER, " in text and "Kalibera and Jones" in text
    assert "| point | runs |" in text and "| 3 / 3 |" in text and "One run per side" not in text
    assert "fewer than 3 repetitions" not in text
    main(["compare", six[0], six[3], "--out", str(tmp_path / "one")])
    alone = capsys.readouterr().out
    assert "One run per side cannot separate" in alone and "assumed to be 5 %" in alone


@pytest.mark.parametrize("words, expected", [
    (["{0}"], ["unclear which runs are A", "--with B1 B2 B3"]),
    (["{0}", "{1}", "{2}"], ["unclear which runs are A"]),
    (["{0}", "{1}", "--with", "{1}"], ["--with", "named more than once"]),
    (["{0}", "{0}", "--with", "{1}"], ["named more than once"]),
    (["{0}", "{1}", "--with", "{2}", "--run-noise", "2%"], ["--run-noise '2%'", "run noise is measured"]),
])  # fmt: skip
def test_ambiguous_sides_are_rejected(six, capsys, words, expected):
    assert main(["compare", *(word.format(*six) for word in words)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and all(part in error for part in expected), error


# --- experiments without a section, and unknown figures


def test_experiment_without_section_is_compared_by_its_catalogue(compare):
    code, text, _ = compare(other_rows.launches(), other_rows.launches(speed=1.4), *ZERO)
    assert code == 0 and "7 points match" in text and "| form | point | repetitions | throughput | p50 | p99 |" in text
    assert all(f"{metric}: 7 FASTER, 0 SLOWER" in text for metric in ("throughput", "p50", "p99"))


@pytest.mark.parametrize("gate, code", [
    ("slower:5%", 1), ("slower:5%:p99", 1), ("slower:50%", 0), ("slower:5%:kernels_per_second", 1),
    ("slower:5%:round_trip_ns.p50", 1), ("unclear:throughput", 0), ("slower:5%:service_p99", 2),
])  # fmt: skip
def test_gate_accepts_both_names_of_a_metric(compare, gate, code):
    found, _, error = compare(other_rows.launches(), other_rows.launches(speed=0.7), *ZERO, "--fail-on", gate)
    assert found == code
    assert ("plain, threads 1, kernels 1: " in error or "graph, " in error) == (code == 1)
    assert ("unknown metric 'service_p99'; allowed: throughput, p50, p99" in error) == (code == 2)


def test_new_figure_is_judged_by_its_direction(folder, capsys):
    catalogue = other_rows.with_figure({"name": "occupancy", "unit": "", "better": "lower"})
    sides = [folder(other_rows.launches(occupancy=share), name=str(share), catalogue=catalogue) for share in (0.4, 0.5)]
    assert main(["compare", *map(str, sides), *ZERO, "--fail-on", "slower:5%:occupancy"]) == 1
    printed = capsys.readouterr()
    assert "occupancy: 0 FASTER, 7 SLOWER" in printed.out and "occupancy SLOWER, 25 % worse" in printed.err


def test_experiments_of_one_folder_are_compared_separately(compare, folder, capsys):
    cells = [rows.cell(rows.params(), n) for n in range(5)]
    before, after = ([*other_rows.launches(speed=speed), *cells] for speed in (1.0, 0.7))
    code, text, error = compare(before, after, *ZERO, "--fail-on", "slower:5%:throughput")
    assert code == 1 and "7 points match" in text and "1 points match" in text
    assert error.count("\n") == 7 and all(line.startswith("launch: ") for line in error.splitlines())
    assert "Only A has rows of feeding." in compare(before, other_rows.launches())[1]
    code, _, error = compare(other_rows.launches(), cells)
    assert code == 2 and "no experiment in common with A, only rows of feeding; allowed: rows of launch" in error


def test_efficiency_that_may_be_zero_is_not_compared(tmp_path, capsys):
    """A ratio of two shares that may be 0 is meaningless."""
    overlap = f"{REFERENCE}/h200/overlap"
    assert main(["compare", overlap, overlap, "--out", str(tmp_path)]) == 0
    text = (tmp_path / "compare.md").read_text()
    assert "speedup" in text and "efficiency" not in text


# --- aa and power


def run_of(points: int, wrong: int = 0, repetitions: int = 4, **where) -> list[dict]:
    """A run whose first `wrong` points are faster by a third, which gives false verdicts for the same code."""
    some = [rows.cell(rows.params(window=place + 1), n, where=rows.environment(**where)) for place in range(points)
            for n in range(repetitions)]  # fmt: skip
    for row in some:
        row["figures"]["messages_per_second"] *= 4 / 3 if row["params"]["window"] <= wrong else 1
    return some


def test_aa_counts_false_verdicts_and_warns_of_different_revisions(folder, capsys):
    sides = [str(folder(run_of(20), name="a")), str(folder(run_of(20, wrong=2, revision="fffffff"), name="b"))]
    assert main(["aa", *sides]) == 0
    text, error = capsys.readouterr()
    head, _, *found = lines(text, "|")
    assert head == ["metric", "points", "FASTER", "SLOWER", "SAME", "UNCLEAR", "false", "at most", "run noise"]
    by_name = {line[0]: line[1:] for line in found}
    assert by_name["throughput"][:3] == ["20", "2", "0"] and by_name["throughput"][5:7] == ["10 %", "28 %"]
    assert by_name["p50"][:3] == ["20", "0", "0"] and by_name["p50"][5] == "0 %"
    assert by_name["all"][:3] == ["60", "2", "0"] and by_name["all"][5] == "3.3 %"
    assert "20 points and 4 repetitions per side" in text
    assert "record different revisions (0123abc; fffffff)" in error and "0123abc; fffffff" in text
    assert main(["aa", *sides, "--margin", "two"]) == 2 and "'two' is not a percentage" in capsys.readouterr().err
