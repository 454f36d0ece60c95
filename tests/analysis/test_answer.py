"""The answer: who wins for small, large and lone messages, by how much, and how sure that is."""

import numpy as np
import pytest
import rows
from test_report import report, with_rows

from analysis import answer
from analysis.feeding import questions
from analysis.load import load

pytestmark = pytest.mark.usefixtures("undrawn")

SMALL, LARGE, LONE = "small messages", "large messages", "lone messages"


def cells(queue, rates, p50=1e4, **changes) -> list[dict]:
    """Repetitions of one point at these rates, messages a second."""
    some = [rows.cell(rows.params(queue, **changes), repetition) for repetition in range(len(rates))]
    for row, rate in zip(some, rates):
        size = row["params"]["payload_bytes"]
        row["figures"] |= {"messages_per_second": rate, "bytes_per_second": rate * size}
        row["figures"]["latency_ns"]["p50"] = p50
    return some


def limited(some: list[dict]) -> list[dict]:
    why = "driver-bound: 97 % of what the driver alone reaches"
    return [rows.spoilt(row, "driver_bound", why) for row in some]


def answers(tmp_path, *groups) -> dict[str, dict]:
    results = load([with_rows(tmp_path, *(row for group in groups for row in group))]).closed
    found = answer.table(results, questions.questions(results))
    return {" ".join(row[0].split()[:2]): dict(zip(found.columns, row)) for row in found.rows}


def test_the_fastest_wins_with_its_interval_and_the_next_beside_it(tmp_path):
    fast = cells("gpu_ring", (9.9e6, 10e6, 10.1e6))
    slow = cells("host_polled", (4.9e6, 5e6, 5.1e6))
    line = answers(tmp_path, fast, slow)[SMALL]
    assert line["for"] == "small messages (64 B): most verified messages"
    assert line["best"].startswith("gpu_ring") and line["runner-up"].startswith("host_polled + pinned")
    # Two points moderate nothing: Student's t of 2 degrees of freedom, and the median of three for their mean.
    reach = 4.302652729911275 * np.log([9.9, 10, 10.1]).std(ddof=1) * np.sqrt(1.346 / 3)
    assert line["figure"] == f"10.0 M msg/s ({10 * np.exp(-reach):.2f}–{10 * np.exp(reach):.1f})"
    assert line["ratio"] == "2.00"


def test_of_a_variant_its_best_settings_count(tmp_path):
    some = [cells("gpu_ring", (1e6, 1e6), window=8), cells("gpu_ring", (3e6, 3e6), window=512)]
    line = answers(tmp_path, *some, cells("host_polled", (2e6, 2e6)))[SMALL]
    assert line["best"] == "gpu_ring\nwindow 512" and line["figure"].startswith("3.00") and line["ratio"] == "1.50"


def test_the_median_is_told_as_in_every_other_table(tmp_path):
    assert answers(tmp_path, cells("gpu_ring", (1e6, 1e6, 4e6)))[SMALL]["figure"].startswith("1.00 M msg/s (")


def test_overlapping_intervals_are_no_clear_difference(tmp_path):
    line = answers(tmp_path, cells("gpu_ring", (9e6, 11e6)), cells("host_polled", (8e6, 10e6)))[SMALL]
    assert line["ratio"] == "1.11\nno clear difference"


def test_a_single_repetition_has_no_interval_and_no_clear_difference(tmp_path):
    line = answers(tmp_path, cells("gpu_ring", (9e6,)), cells("host_polled", (1e6, 1e6)))[SMALL]
    assert line["figure"] == "9.00 M msg/s\none repetition" and line["ratio"] == "9.00\nno clear difference"


def test_null_never_wins(tmp_path):
    line = answers(tmp_path, cells("null", (99e6, 99e6)), cells("gpu_ring", (1e6, 1e6)))[SMALL]
    assert line["best"].startswith("gpu_ring") and line["runner-up"] == "nothing else was measured"


def test_driver_bound_rows_count_as_at_least(tmp_path):
    line = answers(tmp_path, limited(cells("gpu_ring", (9e6, 9e6))), cells("host_polled", (1e6, 1e6)))[SMALL]
    assert line["figure"].startswith("at least 9.00") and line["ratio"] == "9.00"


def disturbed(some: list[dict]) -> list[dict]:
    return [rows.spoilt(row, "disturbed", "disturbed: 1.8 cores stood idle") for row in some]


def test_a_point_with_nothing_but_disturbed_rows_counts_and_is_marked(tmp_path):
    line = answers(tmp_path, disturbed(cells("gpu_ring", (9e6, 9e6))), cells("host_polled", (1e6, 1e6)))[SMALL]
    assert line["best"].startswith("gpu_ring") and line["figure"].startswith("9.00 M msg/s") and "¶" in line["figure"]


def test_disturbed_rows_beside_others_are_left_out(tmp_path):
    some = [*disturbed(cells("gpu_ring", (9e6,))), *cells("gpu_ring", (2e6, 2e6))]
    line = answers(tmp_path, some, cells("host_polled", (1e6, 1e6)))[SMALL]
    assert line["figure"].startswith("2.00 M msg/s") and "¶" not in line["figure"]


def test_a_runner_up_that_is_at_least_so_fast_may_be_faster(tmp_path):
    line = answers(tmp_path, cells("gpu_ring", (9e6, 9e6)), limited(cells("host_polled", (1e6, 1e6))))[SMALL]
    assert line["runner-up's figure"].startswith("at least 1.00") and line["ratio"] == "9.00\nno clear difference"


def test_other_invalid_rows_count_nowhere(tmp_path):
    wrong = [rows.spoilt(row, "no_results", "no results came") for row in cells("gpu_ring", (9e6, 9e6))]
    assert answers(tmp_path, wrong, cells("host_polled", (1e6, 1e6)))[SMALL]["best"].startswith("host_polled")


def test_large_is_the_largest_payload_that_every_working_queue_has(tmp_path):
    ring = [cells("gpu_ring", (1e6, 1e6), payload_bytes=size) for size in (64, 4096)]
    polled = [cells("host_polled", (2e6, 2e6), payload_bytes=size) for size in (64, 4096, 1 << 20)]
    null = cells("null", (9e6, 9e6), payload_bytes=64)  # does not work, so what it lacks does not matter
    line = answers(tmp_path, *ring, *polled, null)[LARGE]
    assert line["for"].startswith("large messages (4 KiB)") and line["best"].startswith("host_polled")
    assert line["figure"] == "8.19 ± 0 GB/s" or line["figure"].startswith("8.19 GB/s")


def test_lone_is_one_in_flight_from_one_producer(tmp_path):
    lone = [cells("gpu_ring", (1e5, 1e5), 3000.0, window=1), cells("host_polled", (1e5, 1e5), 9000.0, window=1)]
    busy = [cells("host_polled", (1e5, 1e5), 5.0), cells("host_polled", (1e5, 1e5), 6.0, window=1, producers=2)]
    line = answers(tmp_path, *lone, *busy)[LONE]
    assert line["best"].startswith("gpu_ring") and line["figure"].startswith("3.00 µs") and line["ratio"] == "3.00"


def test_a_p50_is_no_finer_than_its_bucket(tmp_path):
    """Repetitions that agree lie in one bucket, which is not the same as being equal."""
    line = answers(tmp_path, cells("gpu_ring", (1e5, 1e5), 25_600.0, window=1))[LONE]
    assert line["figure"] == "25.6 µs (25.5–25.7)"


def test_an_unstable_figure_says_so(tmp_path):
    line = answers(tmp_path, cells("gpu_ring", (1e6, 6e6)), cells("host_polled", (1e5, 1e5)))[SMALL]
    assert line["figure"].endswith("\nunstable: 6 times between repetitions")


@pytest.mark.parametrize("devices, best", [(("cuda", "cpu"), "gpu_ring"), (("cpu",), "host_polled")])
def test_the_cpu_does_not_compete_with_a_gpu(tmp_path, devices, best):
    some = [cells("host_polled", (9e6, 9e6), device="cpu")] if "cpu" in devices else []
    some += [cells("gpu_ring", (1e6, 1e6))] if "cuda" in devices else []
    assert answers(tmp_path, *some)[SMALL]["best"].startswith(best)


def test_a_cpu_run_says_first_that_it_is_no_gpu_result(tmp_path):
    text = report(rows.write(tmp_path / "cpu", cells("host_polled", (9e6, 9e6), device="cpu")))
    assert text.index("these are not GPU results") < text.index(f"## {answer.TITLE}") < text.index("| small messages")


def test_the_answer_comes_before_every_other_table(reported):
    text = (reported / "report.md").read_text()
    assert text.index("\n| ") == text.index(f"\n| {answer.COLUMNS[0]} |")
    assert "null" not in text[text.index("| small messages") : text.index("Medians over the repetitions")]


def test_without_closed_loads_there_is_no_answer(tmp_path):
    failed = rows.not_ok(rows.params(), "failed", "the device fell off the bus")
    assert questions.blocks(load([with_rows(tmp_path, failed)])) == []
