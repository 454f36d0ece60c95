"""Tables of `feeding`: the best variant and its certainty, advice on queues under a bound, open loads, capacities,
transfers, the ring against other queues, and searches against sweeps. test_blocks.py recomputes the tables of committed
rows; these tests cover cases that those rows do not contain."""

import numpy as np
import pytest
import rows
from conftest import dictionaries, lines, main, report
from rows import limited, repeated

from analysis import answer, catalogue, measurement_quality, stability, stats
from analysis.document import Table
from analysis.feeding import advice, after_kernel, capacity, costs, headline, open_load, questions, tails, transfers
from analysis.feeding.ranks import MEASURES, disagreements
from analysis.feeding.ring import points as ring
from analysis.feeding.ring.block import ring_text
from analysis.load import load

pytestmark = pytest.mark.usefixtures("figureless")

SMALL, LARGE, LONE = "small messages", "large messages", "lone messages"


def disturbed(some: list[dict]) -> list[dict]:
    return [rows.spoilt(row, "disturbed") for row in some]


def points_of(queue: str = "gpu_ring", *rates: float, **more) -> list[dict]:
    return repeated(queue, tuple(rates), **more)


# --- the answer


@pytest.fixture
def answers(read):
    """A function that returns the lines of the answer by question."""

    def found(*some, **options) -> dict[str, dict]:
        results = read(*some, **options).closed
        table = answer.table(results, questions.questions(results))
        return {" ".join(line["for"].split()[:2]): line for line in dictionaries(table)}

    return found


NEXT = points_of("host_polled", 1e6, 1e6)


def test_answer_shows_fastest_with_interval_and_runner_up(answers):
    line = answers(points_of("gpu_ring", 9.9e6, 10e6, 10.1e6), points_of("host_polled", 4.9e6, 5e6, 5.1e6))[SMALL]
    assert line["for"] == "small messages (64 B): most verified messages"
    assert line["best"].startswith("gpu_ring") and line["runner-up"].startswith("host_polled + pinned")
    # Two points are too few for moderation: Student's t with 2 degrees of freedom, for the median of three values.
    reach = 4.302652729911275 * np.log([9.9, 10, 10.1]).std(ddof=1) * np.sqrt(1.346 / 3)
    assert line["figure"] == f"10.0 M msg/s ({10 * np.exp(-reach):.2f}–{10 * np.exp(reach):.1f})"
    assert line["ratio"] == "2.00"


@pytest.mark.parametrize("some, column, expected", [
    ([*points_of("gpu_ring", 1e6, 1e6, window=8), *points_of("gpu_ring", 3e6, 3e6, window=512)], "best", "gpu_ring\nwindow 512"),
    (points_of("gpu_ring", 1.5e6, 1.5e6, 4e6), "figure", "1.50 M msg/s ("),  # the median
    (points_of("gpu_ring", 1e6, 1.2e6), "ratio", "1.10\nno clear difference"),  # the intervals overlap
    (points_of("gpu_ring", 9e6), "ratio", "9.00\nno clear difference"),  # one repetition has no interval
    (points_of("gpu_ring", 9e6), "figure", "9.00 M msg/s\none repetition"),
    (points_of("null", 99e6, 99e6), "best", "host_polled"),  # null delivers nothing
    (limited(points_of("gpu_ring", 9e6, 9e6)), "figure", "at least 9.00"),
    (limited(points_of("gpu_ring", 9e6, 9e6)), "ratio", "9.00"),
    (limited(points_of("gpu_ring", 0.9e6, 0.9e6)), "ratio", "1.11\nno clear difference"),  # the runner-up may be faster
    (disturbed(points_of("gpu_ring", 9e6, 9e6)), "figure", "9.00 M msg/s ¶"),  # the point has no other rows
    ([*disturbed(points_of("gpu_ring", 9e6)), *repeated("gpu_ring", (2e6, 2e6))[:1]], "figure", "2.00 M msg/s"),
    (points_of("gpu_ring", 2e6, 12e6), "figure", "7.00 M msg/s ("),
    (points_of("gpu_ring", 9e6, 9e6, device="cpu"), "best", "host_polled"),  # does not compete with a GPU
])  # fmt: skip
def test_answer_handles_special_points(answers, some, column, expected):
    some = [row | {"id": f"{place:016}"} for place, row in enumerate(some)]  # different ids, so that all rows count
    line = answers(some, NEXT)[SMALL]
    assert line[column].startswith(expected), line
    assert ("unstable: 6 times between" in line["figure"]) == (expected == "7.00 M msg/s (")


def test_answer_uses_largest_common_payload_and_one_lone_message_in_flight(answers):
    some = [points_of("gpu_ring", 1e6, 1e6, payload_bytes=size) for size in (64, 4096)]
    some += [points_of("host_polled", 2e6, 2e6, payload_bytes=size) for size in (64, 4096, 1 << 20)]
    some += [points_of("null", 9e6, 9e6)]  # null does no work, so its missing payloads do not matter
    some += [points_of("gpu_ring", 1e5, 1e5, p50=25_600.0, window=1), points_of("host_polled", 1e5, 1e5, p50=51_200.0, window=1)]
    some += [points_of("host_polled", 1e5, 1e5, p50=6.0, window=1, producers=2)]  # not alone
    found = answers(*some)
    assert found[LARGE]["for"].startswith("large messages (4 KiB)") and found[LARGE]["figure"].startswith("8.19 GB/s")
    assert found[LONE]["best"].startswith("gpu_ring") and found[LONE]["ratio"] == "2.00"
    assert found[LONE]["figure"] == "25.6 µs (25.5–25.7)"  # the interval is at least as wide as the bucket


def test_only_rows_measured_afresh_count_for_the_best_of_several(answers, read):
    lucky = [rows.cell(rows.params("gpu_ring", window=window), n, rate=rate) for window, rate in ((256, 9e6), (512, 7e6))
             for n in range(3)]  # fmt: skip
    fresh = [rows.cell(rows.params("gpu_ring", window=256), 6 + n, rate=8e6 + 1e4 * n, afresh={"of": 2}) for n in range(3)]
    line = answers(lucky, NEXT)[SMALL]
    assert line["figure"].startswith("9.00 M") and line["best"].endswith("1 of 2")
    line = answers([*lucky, *fresh], NEXT)[SMALL]
    assert line["figure"].startswith("8.01 M") and line["best"].endswith("1 of 2")
    line = answers([*lucky, *fresh[:1]], NEXT)[SMALL]
    assert line["figure"].startswith("9.00 M"), "a single fresh row may not count alone"
    slow = [rows.cell(rows.params("gpu_ring", window=256), 6 + n, rate=6e6, afresh={"of": 2}) for n in range(3)]
    line = answers([*lucky, *slow], NEXT)[SMALL]
    assert line["figure"].startswith("6.00 M"), "the second-best point has not been measured afresh and may not win"
    large = [rows.cell(rows.params("gpu_ring", payload_bytes=65536), n, rate=1e5) for n in range(3)]
    best = headline.headline(read([*lucky, *fresh, *large], name="e"), stats.points(read([*lucky, *fresh, *large], name="f")), "echo")
    assert "64 KiB" in best.rows[0][4], "another question's point is chosen by its own figure"
    named = [stats.best(stats.counted(stats.points(read(some, name=name))), "variant", "messages_per_second")
             for some, name in ((lucky, "c"), (lucky + fresh[:1], "g"), (lucky + fresh, "d"))]  # fmt: skip
    said = [stats.chosen_sentence(some) for some in named]
    assert "too good by chance" in said[0] and said[1] == said[0]
    assert "measured afresh." in said[2] and "too good" not in said[2]


def test_limit_that_a_row_beats_is_taken_back(read):
    def with_ratio(queue: str, ratio: float) -> list[dict]:
        some = points_of(queue, 4e6, 4.1e6, 4.2e6)
        for row in some:
            bound = row["bounds"]["messages_per_second"]
            bound |= {"ratio": ratio, "value": 4e6 / ratio}
            row["flags"] = ["above_limit"] if ratio > 1.05 else []
        return some

    both = [*with_ratio("redis_list", 0.8)[:1], *with_ratio("redis_list", 1.3)[1:], *with_ratio("gpu_ring", 0.9)]
    cells = read(both).cells.set_index("queue")
    assert cells.loc["redis_list", "messages_per_second_ratio"].isna().all(), "also of rows that do not beat it"
    assert (cells.loc["redis_list", "messages_per_second_ceiling"] == "").all()
    assert (cells.loc["gpu_ring", "messages_per_second_ratio"] == 0.9).all()
    fine = read([*with_ratio("redis_list", 1.04)], name="fine").cells
    assert (fine["messages_per_second_ratio"] == 1.04).all()


def test_answer_names_members_that_did_not_compete(read):
    results = read(points_of("gpu_ring", 1e6))
    said = answer.absent(results)
    assert said.startswith("Did not compete: ") and "redis_list" in said and "gpu_ring" not in said and "null" not in said


def test_answer_is_empty_without_rows_that_count(read):
    assert questions.blocks(read(rows.not_ok(rows.params(), "failed", "the device fell off the bus"))) == []


# --- unstable points


RATE, P50 = "messages_per_second", "latency_ns.p50"


@pytest.mark.parametrize("some, unstable", [
    ({"rates": (1e6, 1.49e6)}, []), ({"rates": (1.5e6, 1e6, 1.2e6)}, ["throughput"]),
    ({"p50": (1e4, 1.49e4)}, []), ({"p50": (1e4, 1.5e4)}, ["p50"]), ({"p99": (2e4, 5.9e4)}, []),
    ({"p99": (2e4, 6e4)}, ["p99"]), ({"rates": (1e6, 6e6), "p50": (1e4, 9e4), "p99": (1e4, 63e4)}, ["throughput", "p50", "p99"]),
    ({"rates": (1e6,)}, []),
])  # fmt: skip
def test_point_is_unstable_at_the_factors_of_the_catalogue(read, some, unstable):
    (point,) = stats.points(read(repeated(**some))).to_dict("records")
    assert point["unstable"] == unstable
    rates = some.get("rates", (1e6,))
    assert len(rates) == 1 or point["spread"]["throughput"] == pytest.approx(max(rates) / min(rates))


def test_last_row_decides_stability_for_one_run_but_not_for_two(read, folder):
    some = repeated(rates=(1e6, 9e6))
    some[-1]["stop"] = {"reason": "repetitions", "repetitions": 2, "spread": {RATE: 1.0, P50: 1.6}, "unstable": [P50]}
    (point,) = stats.points(read(some)).to_dict("records")
    assert point["unstable"] == ["p50"] and point["spread"]["p50"] == 1.6
    steady = repeated(rates=(6e6, 6e6))
    steady[-1]["stop"] = {"reason": "repetitions", "repetitions": 2, "spread": {}, "unstable": []}
    (point,) = stats.points(load([folder(some, name="a"), folder(steady, name="b")])).to_dict("records")
    assert point["unstable"] == ["throughput"] and point["repetitions"] == 4
    rule = "throughput or p50 differ by 1.5 times or more between repetitions, or p99 by 3 times or more"
    assert stability.rule(catalogue.merged([rows.CATALOGUE]).experiment("feeding")) == rule


# --- advice, costs and measurement quality


@pytest.fixture
def advised(read):
    """A function that returns the lines of "Which should I use?" by bound."""

    def found(*some, **options) -> dict[str, dict]:
        blocks = advice.blocks(read(*some, **options))
        return {line["bound"]: line for one in blocks if isinstance(one, Table) for line in dictionaries(one)}

    return found


def open_cell(queue: str, rate: int, p99: float, **changes) -> dict:
    return rows.load_cell(rows.load_params(queue, rate, **changes), samples=50, p99=p99)


RING, POLLED = rows.load_params("gpu_ring"), rows.load_params("host_polled")


def test_highest_capacity_wins_and_runner_up_is_another_queue(advised, tmp_path):
    probe = rows.load_cell(RING | {"rate": 5000})
    won, second = rows.capacity(RING, 5000, 6000, probes=[probe]), rows.capacity(POLLED, 4000, 4500)
    other = rows.capacity(POLLED | {"transfer": "mapped"}, 3000, 3500)
    line = advised(probe, won, second, other)["p99 ≤ 1 ms"]
    assert line["use"].startswith("gpu_ring") and line["its rate"] == "5.00 to 6.00 k msg/s"
    assert (line["host threads"], line["cores used"], line["SMs"], line["GPU power"]) == ("2", "1.20", "16", "231 W")
    assert line["delivery"] == "exactly once in process" and line["runner-up"] == "host_polled + pinned\n4.00 to 4.50 k msg/s"
    assert str(line["evidence"]) == "1" and line["evidence"].evidence == f"{won['id']}\n{tmp_path / 'some'}"
    near = advised(probe, won, rows.capacity(POLLED, 4800, 5500), name="near")["p99 ≤ 1 ms"]
    assert near["runner-up"].endswith("no clear difference: the intervals overlap")
    best = [rows.capacity(POLLED | {"transfer": name}, low, low + 50) for name, low in (("pinned", 8000), ("mapped", 7900))]
    line = advised(probe, won, best, name="two")["p99 ≤ 1 ms"]
    assert line["use"].startswith("host_polled + pinned") and line["runner-up"].startswith("gpu_ring")
    none = advised(probe, rows.capacity(RING, 0, 10, "p99:5us"), name="none")
    assert list(none) == ["p99 ≤ 5 µs"] and none["p99 ≤ 5 µs"]["use"] == "none of the measured queues"


def test_highest_sustained_rate_within_the_bound_wins_without_searches(advised):
    some = [open_cell("gpu_ring", 1000, 15e3), open_cell("gpu_ring", 2000, 90e3), open_cell("host_polled", 4000, 90e3),
            rows.backlog(open_cell("host_polled", 8000, 10e3)), open_cell("null", 9000, 1e3),
            open_cell("gpu_ring", 9000, 1e3, device="cpu")]  # fmt: skip
    found = advised(some)
    assert list(found) == ["p99 ≤ 20 µs", "p99 ≤ 100 µs", "p99 ≤ 1 ms"]
    assert found["p99 ≤ 20 µs"]["use"] == "gpu_ring" and found["p99 ≤ 20 µs"]["runner-up"] == "no other measured queue"
    line = found["p99 ≤ 100 µs"]
    assert line["use"].startswith("host_polled + pinned") and line["its rate"] == "4.00 k msg/s\np99 90.0 µs"
    assert line["runner-up"].startswith("gpu_ring\n2.00 k msg/s") and line["evidence"].evidence.startswith(some[2]["id"])
    line = advised(open_cell("gpu_ring", 1000, 5e6), name="slow")["p99 ≤ 1 ms"]
    assert line["use"] == "none of the measured queues" and set(list(line.values())[3:]) == {"—"}


def test_advice_uses_closed_loads_if_there_are_no_others(read):
    blocks = advice.blocks(read(repeated("gpu_ring", (8e6,), p99=500e3), repeated("host_polled", (5e6,), p99=50e3)))
    found = {line["bound"]: line["use"].partition("\n")[0] for line in dictionaries(blocks[1])}
    assert list(found.values()) == ["none of the measured queues", "host_polled + pinned", "gpu_ring"]
    assert "closed loads" in blocks[-1].text


def test_cost_refers_to_the_peak_and_includes_measured_watts(read):
    some = [rows.cell(rows.params(queue, window=window), machine=rows.machine())
            for queue, window in (("host_polled", 1), ("host_polled", 256), ("redis_list", 256))]  # fmt: skip
    some[1]["machine"]["gpu"]["power_w"], some[1]["machine"]["host"]["own_cores"] = 410.0, 3.5
    del some[2]["machine"]["gpu"]
    results = read(some)
    (table,) = [block for block in costs.blocks(results, stats.points(results.closed)) if isinstance(block, Table)]
    assert [(line["cores used"], line["GPU power"]) for line in dictionaries(table)] == [("3.50", "410 W"), ("1.20", "—")]
    results = read(rows.cell(rows.params()), name="none")
    assert costs.blocks(results, stats.points(results.closed)) == []


@pytest.mark.parametrize("stops, expected", [
    ([{}], ""), ([{"reason": "repetitions", "repetitions": 3, "disturbed": 0}], ""),
    ([{"reason": "disturbed", "repetitions": 1, "disturbed": 4}], "1 point(s) were given up"),
    ([{"reason": reason, "repetitions": 5} for reason in ("precise", "precise", "time limit", "repetitions")],
     "2 of 3 points met it, 1 ended at the time limit."),
])  # fmt: skip
def test_measurement_quality_counts_points_by_stop_reason(read, stops, expected):
    some = [rows.cell(rows.params(window=window)) | ({"stop": stop} if stop else {}) for window, stop in enumerate(stops, 1)]
    text = " ".join(block.text for block in measurement_quality.blocks(read(some)))
    assert expected in text and bool(text) == bool(expected)


def test_measurement_quality_counts_disturbed_repetitions(read):
    busy = rows.machine() | {"disturbances": ["2 other cores were busy"]}
    kept, left_out = rows.cell(rows.params(), 1, machine=busy), disturbed([rows.cell(rows.params(), machine=busy)])
    text = " ".join(block.text for block in measurement_quality.blocks(read(left_out, kept, rows.cell(rows.params(), 2))))
    assert "1 of 3 repetitions were left out and measured again" in text and "(for example: 2 other cores were busy)" in text
    assert "1 repetition(s) were disturbed but count" in text


# --- open loads


def saturation(results) -> list[list[str]]:
    return open_load.saturation(open_load.curves(open_load.points(results))).rows


def test_open_load_point_is_sustained_if_every_repetition_kept_up(read):
    some = [rows.load_cell(POLLED, n, p99=p99) for n, p99 in enumerate((5e4, 1e4, 9e6))]
    (point,) = open_load.points(read(some)).to_dict("records")
    assert (point["p99"], point["p99_least"], point["p99_greatest"], point["repetitions"]) == (5e4, 1e4, 9e6, 3)
    assert point["state"] == open_load.SUSTAINED and point["kept"] and point["unstable"] == ["p99"]
    some[1] = rows.backlog(some[1])
    results = read(some, name="one")
    (point,) = open_load.points(results).to_dict("records")
    assert point["state"] == open_load.UNSUSTAINABLE and point["reason"] == "the backlog grew" and not point["kept"]
    assert saturation(results)[0][7] == "in 1 of 3 repetitions: the backlog grew"
    assert saturation(read([rows.backlog(row, "it grew") for row in some], name="all"))[0][7] == "it grew"


def test_late_repetition_counts_in_median_and_range(read):
    some = [rows.load_cell(POLLED, 0, p99=28e3), rows.load_cell(POLLED, 1, p99=29e3), rows.late(POLLED, 2, p99=56e3)]
    for row in some:
        p99 = row["figures"]["latency_ns"]["p99"]
        row["details"]["load"]["without_own_lag_ns"] = {"p50": 10e3, "p99": min(p99, 30e3)}
    results = read(some)
    (point,) = open_load.points(results).to_dict("records")
    assert (point["p99"], point["state"], point["generator"]) == (29e3, open_load.SUSTAINED, 1)
    p99 = saturation(results)[0][4]
    assert p99.startswith("29.0 µs (") and " †\n28.0 µs to 56.0 µs\n" in p99
    assert p99.endswith("without the generator's lag 29.0 µs, 28.0 µs to 30.0 µs")
    assert open_load.points(read(rows.late(POLLED), name="late"))["kept"].item()


def test_rates_are_kept_only_below_the_first_unsustained_rate(read):
    some = [rows.load_cell(POLLED | {"rate": rate}) for rate in (1000, 2000, 4000)]
    some[1] = rows.backlog(some[1])
    found = open_load.points(read(some)).sort_values("rate")
    assert list(found["kept"]) == [True, False, False] and found["state"].iloc[2] == open_load.SUSTAINED


def test_curves_merge_near_rates_and_use_the_setting_that_sustains_most(read):
    near = read([rows.load_cell(POLLED | {"rate": rate}) for rate in (1000, 1040, 1049, 1060, 2000)])
    assert sorted(open_load.points(near)["repetitions"]) == [1, 1, 3]  # within five percent
    good, bad = ([POLLED | {"rate": rate, "window": window} for rate in (1000, 2000)] for window in (256, 1))
    some = [*map(rows.load_cell, good), rows.load_cell(bad[0]), rows.backlog(rows.load_cell(bad[1]))]
    found = open_load.points(read(some, name="settings"))
    assert set(found["window"]) == {1, 256} and set(open_load.curves(found)["window"]) == {256}
    kinds = [POLLED, POLLED | {"payload_bytes": 4096}, POLLED | {"arrivals": "bursts", "burst_us": 100}]
    tasks = open_load.points(read(list(map(rows.load_cell, kinds)), name="kinds"))["task"]
    assert list(tasks) == ["64 B", "4 KiB", "64 B, bursts of 100 µs"]


def test_saturation_shows_last_sustained_rate_and_results_beyond(read):
    results = read(rows.load_sweep(2))
    by_queue = {row[1].split()[0]: row for row in saturation(results)}
    redis, own = by_queue["redis_list"], by_queue["gpu_ring"]
    assert (redis[2], redis[5], redis[6], redis[7]) == (
        "100 k msg/s", "1.00 M msg/s", "400 k msg/s", "the backlog grew by 600000 msg/s",
    )  # fmt: skip
    assert own[2] == "10.0 M msg/s" and own[5] == "—"  # gpu_ring sustained all rates
    chosen = open_load.comparable(open_load.curves(open_load.points(results)))
    # 100 k is the highest rate that all queues sustain.
    assert chosen["rate"].median() == pytest.approx(100_000, rel=0.01) and len(chosen) == 3
    # Without null, the load generator's tail is unknown.
    assert tails.table(results, open_load.curves(open_load.points(results))) is None


def test_closed_load_tables_exclude_open_loads(folder, read):
    fast = open_cell("gpu_ring", 1000, 1.0, window=1)
    fast["figures"] |= {"messages_per_second": 9e12, "latency_ns": fast["figures"]["latency_ns"] | {"p50": 1.0}}
    closed = [rows.cell(rows.params("gpu_ring", window=window)) for window in (1, 256)]
    text = report(folder(closed, fast))
    answered, rest = text.split("## Which should I use?")  # this section uses open loads if there are any
    headline = rest.partition("## Headline")[2].partition("##")[0]
    assert headline and not any(expected in part for expected in ("9.00 T msg/s", "1.00 ns") for part in (answered, headline))
    assert "Capacity under" not in report(folder(closed, name="closed")) and len(ring.read(read(closed, fast))) == 2


# --- searches for a capacity


@pytest.fixture
def searched(read):
    """A function that returns results with a search for each interval, and the one cell that a folder needs."""

    def found(*searches):
        each = [rows.capacity(RING, low, high, repetition=n) for n, (low, high) in enumerate(searches)]
        return read(rows.load_cell(RING), each)

    return found


@pytest.mark.parametrize("intervals, overlap", [
    ([(1000, 1200)], "—"), ([(1000, 1200), (1100, 1300)], "yes"), ([(1000, 1200), (1200, 1300)], "no"),
    ([(1000, 0), (1200, 1300)], "yes"),  # the first has no upper end
    ([(0, 900), (1000, 1200), (900, 1100)], "no"),
])  # fmt: skip
def test_table_shows_whether_searches_overlap(searched, intervals, overlap):
    (line,) = dictionaries(capacity.table(capacity.answers(searched(*intervals))))
    assert line["intervals overlap"] == overlap


@pytest.mark.parametrize("low, high, expected", [
    (1_000_000, 1_200_000, "1.00 to 1.20 M msg/s"), (900_000, 1_200_000, "900 k msg/s to 1.20 M msg/s"),
    (900, float("inf"), "at least 900 msg/s"), (0, 900, "less than 900 msg/s"),
])  # fmt: skip
def test_capacity_interval_is_written_in_words(low, high, expected):
    assert capacity.interval(low, high) == expected


@pytest.mark.parametrize("low, high, expected", [
    (1_000_000, 1_200_000, "undecided between 1.00 and 1.20 M msg/s"),
    (900_000, 1_200_000, "undecided between 900 k msg/s and 1.20 M msg/s"),
    (900, float("inf"), "undecided above 900 msg/s"), (0, 900, "undecided below 900 msg/s"), (0, float("inf"), "undecided"),
])  # fmt: skip
def test_undecided_interval_is_written_in_words(low, high, expected):
    assert capacity.interval(low, high, undecided=True) == expected


def judged(rate: int, kept: int, tries: int, verdict: str, **more) -> dict:
    return {"rate": rate, "tries": tries, "kept": kept, "verdict": verdict} | more


@pytest.fixture
def undecided(read):
    """An undecided search with a disturbed try that met the bound, and one that did not keep up."""
    tries = [rows.load_cell(RING | {"rate": 2000}, n) for n in range(3)]
    tries += [rows.spoilt(rows.load_cell(RING | {"rate": 3000}, n), "disturbed") for n in range(2)]
    tries[4]["details"]["load"]["behind"] = "the backlog grew"
    for row in tries:
        row["details"]["load"]["without_own_lag_ns"] = {"p50": 10e3, "p99": 20e3}
    outcomes = [judged(2000, 3, 3, "sustained", disturbed=0), judged(3000, 1, 2, "open", disturbed=2),
                judged(4000, 0, 0, "not sustained", disturbed=0)]
    return read(tries, rows.capacity(RING, 2000, 4000, probes=tries, rates=outcomes, undecided=True))


def test_undecided_answer_is_shown_as_undecided(undecided):
    (line,) = dictionaries(capacity.table(capacity.answers(undecided)))
    assert line["capacity, one line per search"] == "undecided between 2.00 and 4.00 k msg/s"
    assert line["tries, of them disturbed"] == "5, 2"
    (advice_line,) = dictionaries(next(one for one in advice.blocks(undecided) if isinstance(one, Table)))
    assert advice_line["its rate"] == "undecided between 2.00 and 4.00 k msg/s"


def test_disturbed_tries_of_a_pooled_test_count_and_are_shown(undecided):
    found = capacity.answers(undecided)
    lines = {line["rate"]: line for line in dictionaries(capacity.evidence(found, undecided.cells))}
    between = lines["3.00 k msg/s"]
    assert between["tries that met the bound"] == "1 of 2: open" and str(between["disturbed"]) == "2"
    assert between["met it without the generator's lag"] == "1 of 2"
    note = capacity.evidence_note(found, undecided.cells)
    assert "2 of 5 tries were disturbed; they count" in note and "one test" in note


def test_disturbed_tries_of_older_answers_are_not_counted(read):
    tries = [rows.load_cell(RING | {"rate": 2000}, n) for n in range(3)]
    tries[2] = rows.spoilt(tries[2], "disturbed")
    for row in tries:
        row["details"]["load"]["without_own_lag_ns"] = {"p50": 10e3, "p99": 20e3}
    outcomes = [judged(2000, 1, 1, "open", part=0), judged(2000, 1, 1, "sustained", part=1)]
    results = read(tries, rows.capacity(RING, 2000, 4000, probes=tries, rates=outcomes))
    found = capacity.answers(results)
    (line,) = dictionaries(capacity.evidence(found, results.cells))
    assert line["tries that met the bound"] == "1 of 1: open\nagain 1 of 1: sustained"
    assert str(line["disturbed, not counted"]) == "1" and line["met it without the generator's lag"] == "2 of 2"
    assert "1 of 3 tries were disturbed and do not count" in capacity.evidence_note(found, results.cells)


def test_advice_is_undecided_if_no_rate_is_judged(advised):
    probe = rows.load_cell(RING | {"rate": 5000})
    line = advised(probe, rows.capacity(RING, 0, 9000, probes=[probe], undecided=True))["p99 ≤ 1 ms"]
    assert line["use"] == "undecided"


@pytest.mark.parametrize("lows, median", [([300, 100, 200], 200), ([400, 100, 300, 200], 200), ([7], 7)])
def test_search_with_median_capacity_represents_all(searched, lows, median):
    results = searched(*((low, 2 * low) for low in lows))
    (found,) = capacity.answers(results).to_dict("records")
    (row,) = results.capacities[results.capacities["id"] == found["id"]].to_dict("records")
    assert found["low"] == median == row["low"] and found["high"] == 2 * median
    assert capacity.evidence(capacity.answers(results), results.cells) is None  # these searches record no rates


def test_capacity_cost_is_median_of_tries_at_highest_sustained_rate(read):
    probes = [rows.load_cell(RING | {"rate": 2000}, n) for n in range(4)] + [rows.load_cell(RING | {"rate": 4000})]
    probes[3:] = [rows.spoilt(probes[3], "disturbed"), rows.backlog(probes[4])]
    for row, watts in zip(probes, (139.0, 136.0, 132.0, 500.0, 600.0)):
        row["machine"]["gpu"]["power_w"] = watts
    results = read(probes, rows.capacity(RING, 2000, 4000, probes=probes))
    spent = capacity.spent(capacity.answers(results).iloc[0], results.cells)
    assert spent["power_w"] == 136.0 and spent["delivery"] == "exactly once in process"


@pytest.mark.parametrize("command", [
    "compare DIR DIR --out OUT", "aa DIR DIR", "export DIR --format google-benchmark --out OUT/one.json",
    "export DIR --format hdr --out OUT", "figures DIR --out OUT", "report DIR --out OUT",
])  # fmt: skip
def test_commands_accept_a_search_among_open_loads(folder, tmp_path, command):
    some = [rows.load_cell(RING, n) for n in range(2)]
    directory = folder(some, rows.capacity(RING, 10_000, 11_000, probes=some[:1]))
    (tmp_path / "out").mkdir()
    assert main(command.replace("DIR", str(directory)).replace("OUT", str(tmp_path / "out")).split()) == 0


# --- the best transfer


FAST, SLOW, NEAR = (10e6, 10.1e6, 9.9e6), (5e6, 5.1e6, 4.9e6), (9.8e6, 10e6, 10.2e6)


@pytest.fixture
def best_transfers(read):
    def found(*groups) -> list[dict]:
        results = read(*groups)
        places = transfers.places(results)
        return dictionaries(transfers.table(results, places)) if places else []

    return found


def test_best_transfer_is_shown_with_runner_up_and_auto_never_wins(best_transfers):
    auto = rows.winner("auto", (12e6, 12e6, 12e6), chosen="gather", producers=4)
    other = [rows.transfer("mapped", 20e6, n, window=1) for n in range(2)]  # no search found it: does not compete
    (line,) = best_transfers(rows.winner("gather", FAST, producers=4), rows.winner("pinned", SLOW), auto, other)
    assert (line["payload"], line["batch"], line["auto chose"]) == ("64 B", "1", "gather")
    assert line["best transfer"].startswith("gather\n") and "producers 4" in line["best transfer"]
    assert line["runner-up"].startswith("pinned\n")
    assert line["its messages"].startswith("5.00 M msg/s (") and line["bytes"].startswith("640 MB/s (")
    ratio, _, interval = line["ratio"].partition(" ")
    low, _, high = interval.strip("()").partition("–")
    assert ratio == "2.00" and 1 < float(low) < 2 < float(high) and line["auto / best"].startswith("1.20 (")


@pytest.mark.parametrize("first, second, column, begins, ends", [
    (rows.winner("gather", FAST), rows.winner("pinned", NEAR), "ratio", "1.00", "\nunclear"),
    (rows.winner("gather", FAST[:1]), rows.winner("pinned", SLOW), "ratio", "2.00", "\nunclear"),
    (limited(rows.winner("gather", FAST)), rows.winner("pinned", SLOW), "ratio", "at least 2.00", ""),
    (rows.winner("gather", FAST), limited(rows.winner("pinned", SLOW)), "ratio", "at most 2.00", "\nunclear"),
    (limited(rows.winner("gather", FAST)), limited(rows.winner("pinned", SLOW)), "ratio", "—", "\nunclear"),
    (rows.winner("gather", (10e6, 40e6)), rows.winner("pinned", SLOW), "messages", "25.0", ": 4 times between repetitions"),
    (rows.winner("gather", FAST), rows.winner("pinned", SLOW), "auto chose", "—", ""),
])  # fmt: skip
def test_ratio_of_transfers_reflects_the_certainty_of_its_rows(best_transfers, first, second, column, begins, ends):
    (line,) = best_transfers(first, second)
    assert line[column].startswith(begins) and line[column].endswith(ends)


# --- a search against a sweep


SWEPT = {"gpu_ring": 9e6, "host_polled": 4e6, "redis_list": 3.5e6}


@pytest.mark.parametrize(("found", "expected"), [
    ({"gpu_ring": 8e6, "host_polled": 3.3e6, "redis_list": 3.4e6}, []),  # the last two are less than 1.5 × apart
    ({"gpu_ring": 5e6, "host_polled": 3.3e6, "redis_list": 3e6}, ["gpu_ring reaches 55.6%"]),
    ({"gpu_ring": 7.5e6, "host_polled": 8e6, "redis_list": 3e6},
     ["gpu_ring is 2.2 × better than host_polled but not ranked above it"]),
    ({"gpu_ring": 9e6, "host_polled": 4e6}, ["redis_list was not searched"]),
])  # fmt: skip
def test_ranks_reports_each_peak_that_a_search_missed(folder, read, capsys, found, expected):
    sides = [[row for queue, rate in some.items() for row in points_of(queue, rate)] for some in (found, SWEPT)]
    problems = disagreements(MEASURES[0], read(sides[0], name="found"), read(sides[1], name="swept"))
    assert problems == [f"peak messages: {each}" for each in expected]
    directories = [str(folder(side, name=name)) for side, name in zip(sides, ("found", "swept"))]
    assert main(["ranks", *directories]) == (1 if expected else 0)
    printed = capsys.readouterr().out
    assert all(each in printed for each in expected)


# --- the ring's axes


def test_comparison_of_ring_with_other_queues_shows_bounds(read):
    own, other = rows.ring(rate=40e6), rows.ring("redis_list", rate=4e6)
    for number, (some, expected) in enumerate((
        ([own, other], "10.0"), (limited([own]) + [other], "at least 10.0"), ([own] + limited([other]), "at most 10.0"),
        (limited([own, other]), "unknown"),
    )):  # fmt: skip
        (line,) = lines(ring_text(read(some, name=str(number))), "| 64 B | redis_list |")
        assert line[3] == expected and line[4:] == ["—", "—"]
    some = [rows.ring(repetition=n, rate=rate, window=64) for n, rate in enumerate((9e6, 10e6, 90e6))]
    text = ring_text(read(some, [rows.ring("redis_list", n, rate=rate) for n, rate in enumerate((1e6, 2e6, 3e6))], name="median"))
    assert "10.0 M msg/s (" in text and lines(text, "| 64 B | redis_list |")[0][3] == "5.00"
    alone = ring_text(read(own, name="alone"))
    assert "against other queues" not in alone and "peaks by payload" in alone and "nan" not in alone


# --- kernels of many lengths


def test_time_beyond_the_kernel_is_shown_for_variants_with_many_lengths(read):
    """With `pinned` what follows the kernel begins at multiples of 8 µs."""
    some = []
    for transfer, lengths in (("pinned", range(1, 17)), ("mapped", range(1, 17)), ("graph", range(1, 4))):
        for length in lengths:
            kernel = 1000 * length
            end = -(-kernel // 8000) * 8000 if transfer == "pinned" else kernel
            point = rows.params(transfer=transfer, workload="fma_chain", flops_per_byte=16 * length, window=1, batch=1)
            row = rows.cell(point, 0, p50=end + 10_000)
            row["details"]["stages_ns"]["kernel_end"]["mean"] = kernel
            some.append(row)
    results = read(some)
    found = after_kernel.lines(results)
    assert set(found["variant"]) == {"host_polled + pinned", "host_polled + mapped"}
    beyond = found.groupby("variant")["beyond"].agg(["min", "max"])
    assert list(beyond.loc["host_polled + pinned"]) == pytest.approx([10_000, 17_000], rel=0.01)
    assert list(beyond.loc["host_polled + mapped"]) == pytest.approx([10_000, 10_000], rel=0.01)
    assert "| host_polled + pinned | 64 B | 16 | 1.00 µs to 16.0 µs | 10.0 µs to 17.0 µs |" in after_kernel.text(results)[0]
    assert after_kernel.text(read([rows.cell(rows.params(window=1), 0)])) == []
