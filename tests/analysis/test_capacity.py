"""Searches for a capacity: read, put beside each other, drawn, and in nobody's way."""

import load_rows
import pytest
import rows
from test_report import report, with_rows

from analysis.feeding import capacity
from analysis.__main__ import main
from analysis.load import load
from analysis.feeding.plots import capacities
from analysis.feeding.plots.styles import Styles

pytestmark = pytest.mark.usefixtures("undrawn")

POINT = load_rows.params("gpu_ring")


def searched(tmp_path, *searches):
    """What the searches of some intervals found, with the one row that a directory needs."""
    found = [
        load_rows.capacity(POINT, low, high, repetition=repetition) for repetition, (low, high) in enumerate(searches)
    ]
    return load([with_rows(tmp_path, load_rows.cell(POINT), *found)])


@pytest.mark.parametrize(
    "intervals, overlap",
    [
        ([(1000, 1200)], "—"),
        ([(1000, 1200), (1100, 1300)], "yes"),
        ([(1000, 1200), (1200, 1300)], "no"),
        ([(1000, 0), (1200, 1300)], "yes"),  # the first has no upper end
        ([(0, 900), (1000, 1200), (900, 1100)], "no"),
    ],
)
def test_whether_the_searches_overlap_is_told(tmp_path, intervals, overlap):
    (row,) = capacity.table(capacity.answers(searched(tmp_path, *intervals))).rows
    assert row[4] == overlap


@pytest.mark.parametrize(
    "low, high, said",
    [
        (1_000_000, 1_200_000, "1.00 to 1.20 M msg/s"),
        (900_000, 1_200_000, "900 k msg/s to 1.20 M msg/s"),
        (900, float("inf"), "at least 900 msg/s"),
        (0, 900, "less than 900 msg/s"),
    ],
)
def test_an_interval_in_words(low, high, said):
    assert capacity.interval(low, high) == said


def test_the_table_tells_every_search_and_why_the_next_rate_failed(tmp_path):
    failed = load_rows.capacity(load_rows.params("redis_list"), 1, 2, "p999:50us")
    failed = rows.spoilt(failed, "error", "Redis: OOM command not allowed", "failed")
    del failed["capacity"], failed["cost"]
    both = [load_rows.capacity(POINT, 1000, 1200), load_rows.capacity(POINT, 1100, 1300, repetition=1)]
    text = report(with_rows(tmp_path, load_rows.cell(POINT), *both, failed))
    assert "1.00 to 1.20 k msg/s<br>1.10 to 1.30 k msg/s | yes | p99 2.22 ms |" in text
    assert "| 64 B | p99.9 ≤ 50 µs | redis_list + pinned | — | — | failed: Redis: OOM command not allowed |" in text
    assert "| 64 B | p99.9 ≤ 50 µs | none of those measured |" in text
    assert (tmp_path / "some/capacity.png").is_file()


def test_only_failed_searches_are_still_told(tmp_path):
    failed = rows.spoilt(load_rows.capacity(POINT, 1, 2), "hung", "it hung", "failed")
    del failed["capacity"]
    text = report(with_rows(tmp_path, load_rows.cell(POINT), failed))
    assert "failed: it hung" in text and not (tmp_path / "some/capacity.png").exists()


def test_the_figure_has_a_bar_a_search_from_low_to_high(tmp_path):
    results = searched(tmp_path, (1000, 1200), (1100, 1300))
    (axes,) = capacities.draw(results, Styles(results.cells)).figure.axes
    bars = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches)
    assert bars == [(1000, 1200), (1100, 1300)]
    assert [text.get_text() for text in axes.texts] == ["1.00 k"]


@pytest.mark.parametrize("lows, median", [([300, 100, 200], 200), ([400, 100, 300, 200], 200), ([7], 7)])
def test_the_search_with_the_median_capacity_stands_for_all(tmp_path, lows, median):
    results = searched(tmp_path, *((low, 2 * low) for low in lows))
    (answer,) = capacity.answers(results).to_dict("records")
    (row,) = results.capacities[results.capacities["id"] == answer["id"]].to_dict("records")
    assert answer["low"] == median == row["low"] and answer["high"] == 2 * median


def test_what_a_capacity_costs_is_that_of_its_highest_rate_kept(tmp_path):
    probes = [load_rows.cell(POINT | {"rate": rate}) for rate in (1000, 2000, 4000)]
    probes[2] = rows.spoilt(probes[2], "backlog", "the backlog grew", "unsustainable")
    for row, cores in zip(probes, (1.0, 2.0, 3.0)):
        row["machine"]["host"]["own_cores"] = cores
    answer = load_rows.capacity(POINT, 2000, 4000, probes=probes)
    results = load([with_rows(tmp_path, *probes, answer)])
    assert capacity.spent(capacity.answers(results).iloc[0], results.cells)["own_cores"] == 2.0


def test_what_a_capacity_costs_is_the_median_of_the_tries_at_that_rate(tmp_path):
    probes = [load_rows.cell(POINT | {"rate": 2000}, repetition) for repetition in range(4)]
    probes[3] = rows.spoilt(probes[3], "disturbed", "disturbed: threads shared cores")
    for row, watts in zip(probes, (139.0, 136.0, 132.0, 500.0)):
        row["machine"]["gpu"]["power_w"] = watts
    answer = load_rows.capacity(POINT, 2000, 4000, probes=probes)
    results = load([with_rows(tmp_path, *probes, answer)])
    spent = capacity.spent(capacity.answers(results).iloc[0], results.cells)
    assert spent["power_w"] == 136.0 and spent["delivery"] == "exactly once in process"
    assert "| 136 W |" in report(tmp_path / "some").partition("## Which should I use?")[2].partition("##")[0]


def test_what_the_ends_of_an_interval_rest_on_is_told(tmp_path):
    """Two tries made the upper end; afterwards the bound was kept there, and at a higher rate, too."""
    def tries(rate, count, p99=1e5, without=None):
        found = [load_rows.cell(POINT | {"rate": rate}, repetition) for repetition in range(count)]
        for row in found:
            row["figures"]["latency_ns"]["p99"] = p99
            row["details"]["load"]["without_own_lag_ns"] = {"p50": 1e4, "p99": without or p99}
        return found

    low, high, higher, highest = tries(1000, 3), tries(2000, 4, 1.2e6, 0.9e6), tries(3000, 1), tries(4000, 1, 2e6)
    high[0]["flags"] = ["late_generator", "unsteady"]
    high[3] = rows.spoilt(high[3], "disturbed", "disturbed: threads shared cores")
    probes = [*low, *high, *higher, *highest]
    rates = [{"rate": 500, "part": 0, "tries": 1, "kept": 1, "verdict": "open"}]
    rates += [{"rate": 1000, "part": 0, "tries": 3, "kept": 3, "verdict": "sustained"}]
    rates += [{"rate": 2000, "part": 0, "tries": 2, "kept": 0, "verdict": "not sustained"}]
    rates += [{"rate": 2000, "part": 1, "tries": 1, "kept": 1, "verdict": "open"}]
    rates += [{"rate": 3000, "part": 1, "tries": 1, "kept": 1, "verdict": "open"}]
    rates += [{"rate": 4000, "part": 1, "tries": 1, "kept": 0, "verdict": "open"}]
    answer = load_rows.capacity(POINT, 1000, 2000, probes=probes, rates=rates)
    results = load([with_rows(tmp_path, *probes, answer)])
    found = capacity.answers(results)
    assert [row[3:] for row in capacity.evidence(found, results.cells).rows] == [
        ["1.00 k msg/s", "3 of 3: sustained", "3 of 3", "0", "0", "0"],
        ["2.00 k msg/s", "0 of 2: not sustained\nagain 1 of 1: open", "3 of 3", "1", "1", "1"],
        ["3.00 k msg/s", "again 1 of 1: open", "1 of 1", "0", "0", "0"],
    ]
    assert "1 of 9 tries were disturbed and count neither way: gpu_ring 1 of 9." in capacity.evidence_note(
        found, results.cells
    )
    assert "again 1 of 1: open" in report(tmp_path / "some")


def test_an_answer_that_tells_no_rates_has_no_such_table(tmp_path):
    results = searched(tmp_path, (1000, 1200))
    assert capacity.evidence(capacity.answers(results), results.cells) is None


@pytest.mark.parametrize(
    "command",
    [
        ["compare", "DIR", "DIR", "--out", "OUT"],
        ["aa", "DIR", "DIR"],
        ["export", "DIR", "--format", "google-benchmark", "--out", "OUT/one.json"],
        ["export", "DIR", "--format", "hdr", "--out", "OUT"],
        ["figures", "DIR", "--out", "OUT"],
        ["readme", "DIR", "README", "--block", "ring"],
        ["ring", "DIR", "--out", "OUT", "--note", "README"],
        ["report", "DIR", "--out", "OUT"],
    ],
    ids=lambda command: " ".join(command[:4]),
)
@pytest.mark.parametrize("closed", [True, False], ids=["beside closed loads", "open loads only"])
def test_no_command_stumbles_over_a_search(tmp_path, command, closed):
    some = [load_rows.cell(POINT, repetition) for repetition in range(2)]
    some += [rows.cell(rows.params("gpu_ring"), repetition) for repetition in range(2)] if closed else []
    directory = with_rows(tmp_path, *some, load_rows.capacity(POINT, 10_000, 11_000, probes=some[:1]))
    readme = tmp_path / "README.md"
    readme.write_text("\n".join(f"<!-- {name}:{end} -->" for name in ("ring", "axes") for end in ("begin", "end")))
    places = {"DIR": str(directory), "OUT": str(tmp_path / "out"), "README": str(readme)}
    (tmp_path / "out").mkdir()
    words = [places.get(word, word.replace("OUT/", f"{tmp_path}/out/")) for word in command]
    assert main(words) == 0
