"""Comparison: planted factors come out, what has no partner is named, and so is what differs."""

import pytest
import rows

from analysis.__main__ import main
from analysis.compare import match
from analysis.load import load


def two_runs(tmp_path, first, second):
    return rows.write(tmp_path / "a", first), rows.write(tmp_path / "b", second)


def planted(throughput: float, latency: float, repetitions: int = 5) -> tuple[list[dict], list[dict]]:
    """Two runs of the same points; in the second every rate and latency is multiplied."""
    some = [rows.params(queue, window=window) for queue in ("host_polled", "redis_list") for window in (1, 64)]
    before, after = ([rows.cell(point, r) for point in some for r in range(repetitions)] for _ in range(2))
    for row in after:
        row["figures"]["messages_per_second"] *= throughput
        for name in ("p50", "p99"):
            row["figures"]["latency_ns"][name] *= latency
    return before, after


def test_planted_factors_are_found(tmp_path):
    a, b = (load([run]) for run in two_runs(tmp_path, *planted(1.25, 0.8)))
    matched, lonely = match(a, b)
    assert len(matched) == 4 and lonely.empty
    for metric, factor in (("messages_per_second", 1.25), ("p50", 0.8), ("p99", 0.8)):
        for ratio in matched[metric]:
            assert ratio.value == pytest.approx(factor)
            assert ratio.low <= factor <= ratio.high


def test_writes_its_table_and_plot(tmp_path, capsys):
    a, b = two_runs(tmp_path, *planted(1.25, 0.8))
    assert main(["compare", str(a), str(b)]) == 0
    text = (b / "compare.md").read_text()
    assert "throughput: 4 FASTER, 0 SLOWER, 0 SAME, 0 UNCLEAR." in text and "p50: 4 FASTER, 0 SLOWER" in text
    assert "| host_polled + pinned | 2 | 1.25 [1.25, 1.25] | 0.800" in text
    assert (b / "compare.png").stat().st_size > 10_000
    assert text.strip() in capsys.readouterr().out


def test_the_same_run_is_the_same(tmp_path, undrawn):
    before, _ = planted(1, 1)
    a, b = two_runs(tmp_path, before, before)
    assert main(["compare", str(a), str(b), "--run-noise", "0", "--out", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out/compare.md").read_text()
    assert all(f"{metric}: 0 FASTER, 0 SLOWER, " in text for metric in ("throughput", "p50", "p99"))
    assert "p99: 0 FASTER, 0 SLOWER, 1 SAME, 3 UNCLEAR." in text  # some are too noisy to be called the same
    assert "Nothing: both ran in the same environment." in text and "Every point is in both." in text


def test_points_without_a_partner_are_named_with_their_fate(tmp_path, undrawn):
    common = rows.cell(rows.params())
    skipped = rows.not_ok(rows.params("gpu_ring"), "skipped", "no GPU here")
    a, b = two_runs(
        tmp_path, [common, rows.cell(rows.params("gpu_ring")), rows.cell(rows.params(window=2))], [common, skipped]
    )
    main(["compare", str(a), str(b)])
    text = (b / "compare.md").read_text()
    assert "1 points matched" in text and "2 in one side only" in text
    assert "| A | gpu_ring | 1 | skipped: no GPU here |" in text
    assert "| A | host_polled + pinned | 1 | not run |" in text


def test_environments_differences_are_listed(tmp_path, undrawn):
    before = rows.cell(rows.params())
    after = rows.cell(rows.params(), where=rows.environment(driver_version="590.1", revision="fffffff"))
    a, b = two_runs(tmp_path, [before], [after])
    main(["compare", str(a), str(b)])
    text = (b / "compare.md").read_text()
    assert "| driver_version | 580.159.04 | 590.1 |" in text and "| revision | 0123abc | fffffff |" in text
    assert "| host |" not in text


def test_one_repetition_has_no_interval_and_is_unclear(tmp_path, undrawn):
    a, b = two_runs(tmp_path, *planted(2, 1, repetitions=1))
    main(["compare", str(a), str(b)])
    text = (b / "compare.md").read_text()
    assert "throughput: 0 FASTER, 0 SLOWER, 0 SAME, 4 UNCLEAR." in text and "4 with a single repetition" in text
    assert "2.00 UNCLEAR" in text


def test_an_open_loads_service_time_is_compared_apart(tmp_path, undrawn):
    before, after = planted(1, 1)
    for factor, some in ((1.0, before), (1.5, after)):
        for row in some:
            if row["params"]["queue"] == "host_polled":
                response = row["figures"]["latency_ns"]
                row["figures"]["service_ns"] = response | {"p99": factor * response["p99"]}
    a, b = two_runs(tmp_path, before, after)
    main(["compare", str(a), str(b), "--run-noise", "0"])
    text = (b / "compare.md").read_text()
    assert "| p99 | service p99 |" in text
    assert "service p99: 0 FASTER, 2 SLOWER, 0 SAME, 0 UNCLEAR." in text  # the two points of redis_list have none
    redis = [line for line in text.splitlines() if line.startswith("| redis_list + pinned | echo |")]
    assert len(redis) == 2 and all(line.endswith("| — |") for line in redis)


def test_rows_from_before_open_load_match_those_of_a_closed_one(tmp_path, undrawn):
    told = {"arrivals": "closed", "rate": 0, "burst_us": 0, "pause_us": 0, "trace_file": "none"}
    told |= {"payload_mix": "none", "priority_mix": "none"}
    new = [rows.cell(rows.params(**told)), rows.cell(rows.params(**told | {"arrivals": "poisson", "rate": 1000}))]
    a, b = (load([run]) for run in two_runs(tmp_path, [rows.cell(rows.params())], new))
    matched, lonely = match(a, b)
    assert list(matched["arrivals"]) == ["closed"] and list(lonely["arrivals"]) == ["poisson"]


def test_a_point_that_b_could_not_sustain_is_named(tmp_path, undrawn):
    common, open_load = rows.cell(rows.params()), rows.params(rate=1e6, arrivals="poisson")
    late = rows.not_ok(open_load, "unsustainable", "the backlog grew", sent=1)
    a, b = two_runs(tmp_path, [common, rows.cell(open_load)], [common, late])
    main(["compare", str(a), str(b)])
    assert "| A | host_polled + pinned | 1 | unsustainable: the backlog grew |" in (b / "compare.md").read_text()


def test_no_service_time_no_column(tmp_path, undrawn):
    a, b = two_runs(tmp_path, *planted(1, 1))
    main(["compare", str(a), str(b)])
    assert "| p50 | p99 |\n" in (b / "compare.md").read_text()


def test_margin_moves_the_verdict(tmp_path, undrawn):
    a, b = two_runs(tmp_path, *planted(0.96, 1))

    def verdicts(*options: str) -> str:
        main(["compare", str(a), str(b), "--run-noise", "0", *options])
        return next(line for line in (b / "compare.md").read_text().splitlines() if line.startswith("- throughput:"))

    assert "4 SLOWER, 0 SAME" in verdicts()
    assert "0 SLOWER, 4 SAME" in verdicts("--margin", "10%")


def test_noise_between_runs_takes_more_for_a_verdict_of_its_metric(tmp_path, undrawn):
    a, b = two_runs(tmp_path, *planted(0.9, 1.1))
    main(["compare", str(a), str(b), "--run-noise", "0", "--run-noise", "20%:p99"])
    text = (b / "compare.md").read_text()
    assert "throughput: 0 FASTER, 4 SLOWER" in text and "p50: 0 FASTER, 4 SLOWER" in text
    assert "p99: 0 FASTER, 0 SLOWER, 0 SAME, 4 UNCLEAR." in text
    assert "taken to be 20 % p99." in text


def test_two_runs_are_taken_to_differ_by_some_noise(tmp_path, undrawn):
    def verdicts(factor: float, *options: str) -> str:
        a, b = two_runs(tmp_path, *planted(factor, 1))
        main(["compare", str(a), str(b), *options])
        return (b / "compare.md").read_text()

    assert "throughput: 0 FASTER, 0 SLOWER, 0 SAME, 4 UNCLEAR." in verdicts(0.9)
    assert "throughput: 0 FASTER, 4 SLOWER" in verdicts(0.9, "--run-noise", "0")
    text = verdicts(0.75)
    assert "throughput: 0 FASTER, 4 SLOWER" in text and "taken to be 5 %." in text
