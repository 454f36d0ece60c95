"""compare's exit code: what --fail-on stops, what it names, and what it does not understand."""

import re

import numpy as np
import pytest
import rows

from analysis.__main__ import main

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def runs(tmp_path):
    """A and B: host_polled at window 1 is 8 % slower in throughput and 20 % in p99, at window 64 as it was; redis_list
    has a single repetition; gpu_ring is ok in A and fails in B."""
    slow, same, alone, gone = (
        rows.params(window=1),
        rows.params(window=64),
        rows.params("redis_list"),
        rows.params("gpu_ring"),
    )
    before = [rows.cell(point, repetition) for repetition in range(8) for point in (slow, same)]
    after = [rows.cell(point, repetition) for repetition in range(8) for point in (slow, same)]
    for row in after:
        if row["params"] == slow:
            row["figures"]["messages_per_second"] *= 0.92
            row["figures"]["latency_ns"]["p99"] *= 1.2
    before += [rows.cell(alone), rows.cell(gone)]
    after += [rows.cell(alone), rows.not_ok(gone, "failed", "the ring hung")]
    return [str(rows.write(tmp_path / "a", before)), str(rows.write(tmp_path / "b", after))]


@pytest.fixture
def stopped(runs, capsys):
    """Runs compare with some gates; gives its exit code and the lines on stderr."""

    def run(*gates: str) -> tuple[int, list[str]]:
        code = main(["compare", *runs, "--run-noise", "0", *(word for gate in gates for word in ("--fail-on", gate))])
        return code, capsys.readouterr().err.splitlines()

    return run


def test_without_a_gate_a_comparison_succeeds(stopped):
    assert stopped() == (0, [])


def test_slower_names_the_point_and_each_metric(stopped):
    code, lines = stopped("slower:5%")
    assert code == 1 and len(lines) == 2
    assert all(line.startswith("host_polled + pinned, echo, window 1: ") for line in lines)
    assert "throughput SLOWER, 8 % worse, B / A 0.92" in lines[0] and "p99 SLOWER, 20 % worse" in lines[1]


@pytest.mark.parametrize(
    "gates, code, lines",
    [
        (["slower:10%"], 1, 1),  # only p99 is that much worse
        (["slower:8%"], 1, 2),  # the percentage itself counts
        (["slower:8.1"], 1, 1),
        (["slower:25%"], 0, 0),
        (["slower:150%"], 0, 0),  # a latency can be
        (["slower:5%:throughput"], 1, 1),
        (["slower:10%:throughput"], 0, 0),
        (["slower:5%:p50"], 0, 0),
        (["slower:10%:throughput", "slower:10%:p99"], 1, 1),
        (["slower:5%:service_p99"], 0, 0),  # no row has it
    ],
)
def test_percentage_and_metric(stopped, gates, code, lines):
    assert (stopped(*gates)[0], len(stopped(*gates)[1])) == (code, lines)


def test_unclear_names_what_cannot_be_judged_and_what_is_gone(stopped):
    code, lines = stopped("unclear:p99")
    assert code == 1
    assert any(line.startswith("redis_list + pinned, echo") and "p99 UNCLEAR" in line for line in lines)
    assert any(line.startswith("gpu_ring, echo") and "in B failed: the ring hung" in line for line in lines)
    assert not any("SLOWER" in line or "throughput" in line for line in lines)


def test_a_point_that_is_new_in_b_stops_nothing(tmp_path, capsys):
    common = [rows.cell(rows.params(), repetition) for repetition in range(8)]
    a, b = rows.write(tmp_path / "a", common), rows.write(tmp_path / "b", [*common, rows.cell(rows.params(window=2))])
    assert main(["compare", str(a), str(b), "--run-noise", "0", "--fail-on", "unclear:throughput"]) == 0
    assert main(["compare", str(b), str(a), "--run-noise", "0", "--fail-on", "unclear:throughput"]) == 1


def test_a_gate_that_cannot_see_is_refused(runs, capsys):
    """Two runs that are taken to differ by 5 % cannot show 5 %, and no number of repetitions changes that."""
    assert main(["compare", *runs, "--fail-on", "slower:5%"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: --fail-on 'slower:5%': a change of 5 % in throughput would be found in")
    assert "no number of repetitions is enough" in error and "runs a side" in error and " pairs" in error
    assert main(["compare", *runs, "--fail-on", "slower:60%"]) == 0


def test_a_gate_is_refused_by_the_spread_of_the_rows_themselves(tmp_path, capsys):
    generator = np.random.default_rng(8)
    sides = []
    for name in "ab":
        some = [rows.cell(rows.params(window=window), repetition) for window in (1, 2, 4) for repetition in range(5)]
        for row in some:
            row["figures"]["messages_per_second"] *= np.exp(generator.normal(0, 0.2))
        sides.append(str(rows.write(tmp_path / name, some)))
    assert main(["compare", *sides, "--run-noise", "0", "--fail-on", "slower:5%:throughput"]) == 2
    (count,) = re.findall(r"(\d+) repetitions", capsys.readouterr().err)
    assert 150 < int(count) < 700  # 2 (0.2 / 0.05)^2 (z of 5 % / 3 + z of 80 %)^2 = 335
    assert main(["compare", *sides, "--run-noise", "0", "--fail-on", "slower:5%:p50"]) == 0


@pytest.mark.parametrize(
    "options, said",
    [
        (["--fail-on", "faster:5%"], ["--fail-on 'faster:5%'", "slower:PERCENT[:METRIC], unclear[:METRIC]"]),
        (["--fail-on", "slower"], ["--fail-on 'slower'", "slower:PERCENT"]),
        (["--fail-on", "slower:"], ["--fail-on 'slower:'", "'' is no percentage"]),
        (["--fail-on", "slower:five"], ["'five' is no percentage", "2.5%"]),
        (["--fail-on", "slower:-5%"], ["'-5%' is no percentage"]),
        (["--fail-on", "slower:nan"], ["'nan' is no percentage"]),
        (["--fail-on", "slower:5%:p98"], ["no such metric 'p98'", "throughput, p50, p99, service_p99"]),
        (["--fail-on", "slower:5%:p99:p50"], ["not understood"]),
        (["--fail-on", "unclear:5%"], ["no such metric '5%'"]),
        (["--margin", "0%"], ["--margin '0%'", "more than 0 %"]),
        (["--margin", "100"], ["--margin '100'", "less than 100 %"]),
        (["--run-noise", "x"], ["--run-noise 'x'", "no percentage"]),
        (["--run-noise", "2%:latency"], ["--run-noise '2%:latency'", "no such metric 'latency'"]),
        (["--run-noise", "2%:p99:p50"], ["--run-noise", "PERCENT[:METRIC]"]),
    ],
)
def test_bad_options(runs, capsys, options, said):
    assert main(["compare", *runs, *options]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and all(part in error for part in said), error
