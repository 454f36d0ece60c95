"""Which queue to use, what it costs, and how the measurement went."""

import load_rows
import pytest
import rows
from test_report import with_rows

from analysis import conduct, stats
from analysis.feeding import advice, costs
from analysis.document import Table
from analysis.load import load


def table(found) -> list[dict]:
    """The table among the blocks, a dictionary a line."""
    (one,) = [block for block in found if isinstance(block, Table)]
    return [dict(zip(one.columns, row)) for row in one.rows]


def advised(tmp_path, *some) -> dict[str, dict]:
    """The lines of "Which should I use?", by their bound."""
    return {line["bound"]: line for line in table(advice.blocks(load([with_rows(tmp_path, *some)])))}


def open_cell(queue: str, rate: int, p99: float, **changes) -> dict:
    row = load_rows.cell(load_rows.params(queue, rate, **changes), samples=100)
    row["figures"]["latency_ns"]["p99"] = p99
    return row


def test_of_searches_the_highest_capacity_wins_and_the_next_queue_is_told(tmp_path):
    ring, polled = load_rows.params("gpu_ring"), load_rows.params("host_polled")
    probe = load_rows.cell(ring | {"rate": 5000})
    won = load_rows.capacity(ring, 5000, 6000, probes=[probe])
    second = load_rows.capacity(polled, 4000, 4500)
    other = load_rows.capacity(polled | {"transfer": "mapped"}, 3000, 3500)
    line = advised(tmp_path, probe, won, second, other)["p99 ≤ 1 ms"]
    assert line["use"].startswith("gpu_ring") and line["its rate"] == "5.00 to 6.00 k msg/s"
    assert (line["host threads"], line["cores used"], line["SMs"], line["GPU power"]) == ("2", "1.20", "16", "231 W")
    assert line["delivery"] == "exactly once in process"
    assert line["runner-up"] == "host_polled + pinned\n4.00 to 4.50 k msg/s"
    assert str(line["evidence"]) == "1" and line["evidence"].evidence == f"{won['id']}\n{tmp_path / 'some'}"


def test_the_runner_up_is_another_queue(tmp_path):
    ends = {("host_polled", "pinned"): 5000, ("host_polled", "mapped"): 4900, ("gpu_ring", "none"): 3000}
    some = [
        load_rows.capacity(load_rows.params(queue, transfer=transfer), low, low + 50)
        for (queue, transfer), low in ends.items()
    ]
    line = advised(tmp_path, load_rows.cell(load_rows.params("gpu_ring")), *some)["p99 ≤ 1 ms"]
    assert line["use"].startswith("host_polled + pinned") and line["runner-up"].startswith("gpu_ring")


def test_capacities_whose_intervals_overlap_are_not_told_apart(tmp_path):
    both = [load_rows.capacity(load_rows.params(queue), *ends) for queue, ends in (
        ("gpu_ring", (5000, 6000)), ("host_polled", (4800, 5500)))]  # fmt: skip
    line = advised(tmp_path, load_rows.cell(load_rows.params("gpu_ring")), *both)["p99 ≤ 1 ms"]
    assert line["runner-up"].endswith("not told apart: their intervals overlap")


def test_bounds_are_those_that_were_searched_where_there_are_searches(tmp_path):
    none = load_rows.capacity(load_rows.params("gpu_ring"), 0, 10, "p99:5us")
    lines = advised(tmp_path, load_rows.cell(load_rows.params("gpu_ring")), none)
    assert list(lines) == ["p99 ≤ 5 µs"] and lines["p99 ≤ 5 µs"]["use"] == "none of those measured"


def test_without_searches_the_highest_rate_that_was_sustained_within_the_bound_wins(tmp_path):
    some = [
        open_cell("gpu_ring", 1000, 15e3),
        open_cell("gpu_ring", 2000, 90e3),
        open_cell("host_polled", 4000, 90e3),
        rows.spoilt(open_cell("host_polled", 8000, 10e3), "backlog", "the backlog grew", "unsustainable"),
        open_cell("null", 9000, 1e3),  # does no work
    ]
    lines = advised(tmp_path, *some)
    assert list(lines) == ["p99 ≤ 20 µs", "p99 ≤ 100 µs", "p99 ≤ 1 ms"]
    assert lines["p99 ≤ 20 µs"]["use"] == "gpu_ring" and lines["p99 ≤ 20 µs"]["its rate"].startswith("1.00 k msg/s")
    assert lines["p99 ≤ 20 µs"]["runner-up"] == "none of those measured"
    assert lines["p99 ≤ 100 µs"]["use"].startswith("host_polled + pinned")
    assert lines["p99 ≤ 100 µs"]["its rate"] == "4.00 k msg/s\np99 90.0 µs"
    assert lines["p99 ≤ 100 µs"]["runner-up"].startswith("gpu_ring\n2.00 k msg/s")
    assert lines["p99 ≤ 100 µs"]["evidence"].evidence.startswith(some[2]["id"])


def test_nothing_within_the_bound_is_said(tmp_path):
    line = advised(tmp_path, open_cell("gpu_ring", 1000, 5e6))["p99 ≤ 1 ms"]
    assert line["use"] == "none of those measured" and set(list(line.values())[3:]) == {"—"}


def test_closed_loads_answer_where_there_are_no_others_and_are_named(tmp_path):
    fast, slow = rows.cell(rows.params("gpu_ring")), rows.cell(rows.params("host_polled"))
    for row, rate, p99 in ((fast, 8e6, 500e3), (slow, 5e6, 50e3)):
        row["figures"]["messages_per_second"], row["figures"]["latency_ns"]["p99"] = rate, p99
    found = advice.blocks(load([with_rows(tmp_path, fast, slow)]))
    lines = {line["bound"]: line["use"].partition("\n")[0] for line in table(found)}
    assert lines == {
        "p99 ≤ 20 µs": "none of those measured",
        "p99 ≤ 100 µs": "host_polled + pinned",
        "p99 ≤ 1 ms": "gpu_ring",
    }
    assert "closed loads" in found[-1].text


def test_a_cpu_device_does_not_compete_with_a_gpu(tmp_path):
    cpu = open_cell("gpu_ring", 9000, 1e3, device="cpu")
    line = advised(tmp_path, open_cell("gpu_ring", 1000, 1e3), cpu)["p99 ≤ 1 ms"]
    assert line["its rate"].startswith("1.00 k msg/s")


def test_cost_is_told_at_the_peak_with_watts_where_there_are_any(tmp_path):
    points = [rows.params("host_polled", window=1), rows.params("host_polled"), rows.params("redis_list")]
    slow, fast, without = (rows.cell(point) | {"machine": rows.machine()} for point in points)
    fast["machine"]["gpu"]["power_w"], fast["machine"]["host"]["own_cores"] = 410.0, 3.5
    del without["machine"]["gpu"]
    results = load([with_rows(tmp_path, slow, fast, without)])
    lines = table(costs.blocks(results, stats.points(results.closed)))
    assert [(line["cores used"], line["GPU power"]) for line in lines] == [("3.50", "410 W"), ("1.20", "—")]


def test_no_cost_table_where_rows_tell_of_no_machine(tmp_path):
    results = load([with_rows(tmp_path, rows.cell(rows.params()))])
    assert costs.blocks(results, stats.points(results.closed)) == []


def said(tmp_path, *some) -> str:
    return " ".join(block.text for block in conduct.blocks(load([with_rows(tmp_path, *some)])))


def test_disturbed_repetitions_are_counted(tmp_path):
    lost = rows.spoilt(rows.cell(rows.params(), 0), "disturbed", "disturbed: 2 other cores were busy")
    kept = rows.cell(rows.params(), 1) | {"machine": rows.machine() | {"disturbances": ["2 other cores were busy"]}}
    text = said(tmp_path, lost, kept, rows.cell(rows.params(), 2))
    assert "1 of 3 repetitions were disturbed" in text and "1 repetition(s) were disturbed and are counted" in text
    assert "given up" not in text


def test_points_that_were_given_up_are_counted(tmp_path):
    stopped = rows.cell(rows.params()) | {"stop": {"reason": "disturbed", "repetitions": 1, "disturbed": 4}}
    assert "1 point(s) were given up" in said(tmp_path, stopped)


def test_how_many_points_met_their_precision(tmp_path):
    reasons = ("precise", "precise", "time limit", "repetitions")
    some = [
        rows.cell(rows.params(window=window)) | {"stop": {"reason": reason, "repetitions": 5}}
        for window, reason in enumerate(reasons, start=1)
    ]
    assert "2 of 3 points met it, 1 ended at the time limit." in said(tmp_path, *some)


@pytest.mark.parametrize("stop", [{}, {"stop": {"reason": "repetitions", "repetitions": 3, "disturbed": 0}}])
def test_nothing_is_said_of_what_was_not_asked_for(tmp_path, stop):
    assert said(tmp_path, rows.cell(rows.params()) | stop) == ""
