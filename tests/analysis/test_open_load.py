"""Open loads: what counts as sustained, what is drawn of it, and that closed loads are told apart from them."""

from collections import Counter

import load_rows
import numpy as np
import pytest
import rows
from test_report import report, with_rows

from analysis import stats
from analysis.feeding import open_load, tails
from analysis.__main__ import main
from analysis.histogram import Histogram
from analysis.load import load
from analysis.feeding.plots import load_stages, offered, percentiles
from analysis.feeding.plots.styles import Styles
from analysis.blocks import headline_text
from analysis.feeding.ring import points as ring

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Three queues at four rates, three repetitions each. Only to be read."""
    return load([rows.write(tmp_path_factory.mktemp("open") / "run", load_rows.sweep())])


def read(tmp_path, *some):
    return load([with_rows(tmp_path, *some)])


def drawn(results, figure):
    return figure.draw(results, Styles(results.cells)).figure


def test_the_rows_are_valid(schema):
    some = [*load_rows.sweep(1), load_rows.late(load_rows.params())]
    for row in [*some, load_rows.capacity(load_rows.params(), 1000, 0, probes=some)]:
        schema.validate(row)


def test_open_loads_are_in_no_figure_of_closed_ones(tmp_path):
    closed = [rows.cell(rows.params("gpu_ring", window=window)) for window in (1, 256)]
    fast = load_rows.cell(load_rows.params("gpu_ring", 1000, window=1))
    fast["figures"]["messages_per_second"] = 9e12
    fast["figures"]["latency_ns"] |= {"p50": 1.0, "p99": 1.0}
    directory = with_rows(tmp_path, *closed, fast)
    results = load([directory])
    assert len(results.cells) == 3 and len(stats.points(results.closed)) == 2
    assert set(ring.read(results)["window"]) == {1, 256} and len(ring.read(results)) == 2
    text = report(directory)
    summary, rest = text.split("## Which should I use?")  # which is made of open loads where there are any
    figures = rest.partition("## At a glance")[2].partition(f"## {offered.TITLE}")[0]
    assert "## Where a lone message's time goes" in figures
    for told in (headline_text(results), summary, figures):
        assert "9.00 T msg/s" not in told and "1.00 ns" not in told


def test_open_loads_alone_are_a_report(tmp_path):
    text = report(with_rows(tmp_path, *load_rows.sweep(1, payloads=(64, 4096))))
    assert {file.stem for file in (tmp_path / "some").glob("*.png")} == {"offered_load", "percentiles", "load_stages"}
    assert "no coordinated omission" in text and "Headline" not in text
    assert "## Which should I use?" in text and "## What the peak costs" in text


def test_without_open_loads_there_is_no_word_of_them(reported):
    text = (reported / "report.md").read_text()
    assert not any(title in text for title in (offered.TITLE, percentiles.TITLE, "Capacity under", "What the peak"))


def test_a_point_is_the_median_of_its_repetitions_with_their_range(tmp_path):
    some = [load_rows.cell(load_rows.params(), repetition) for repetition in range(3)]
    for row, p99 in zip(some, (5e4, 1e4, 9e6)):
        row["figures"]["latency_ns"]["p99"] = p99
    (point,) = open_load.points(read(tmp_path, *some)).to_dict("records")
    assert (point["p99"], point["p99_least"], point["p99_greatest"]) == (5e4, 1e4, 9e6)
    assert point["repetitions"] == 3 and point["state"] == open_load.SUSTAINED and point["kept"]


def test_one_repetition_that_did_not_keep_up_makes_a_rate_unsustainable(tmp_path):
    some = [load_rows.cell(load_rows.params(), repetition) for repetition in range(3)]
    some[1] = rows.spoilt(some[1], "backlog", "the backlog grew", "unsustainable")
    (point,) = open_load.points(read(tmp_path, *some)).to_dict("records")
    assert point["state"] == open_load.UNSUSTAINABLE and point["reason"] == "the backlog grew" and not point["kept"]


def test_a_rate_that_some_repetitions_sustained_says_how_many_did_not(tmp_path):
    """"Why" is of those that did not; the others kept up."""
    point = load_rows.params("gpu_ring", 100_000)
    some = [load_rows.cell(point, repetition) for repetition in range(2)]
    some[0] = rows.spoilt(some[0], "backlog", "the backlog grew", "unsustainable")
    both = [rows.spoilt(row, "backlog", "it grew", "unsustainable") for row in some]
    (line,) = open_load.saturation(open_load.curves(open_load.points(read(tmp_path, *some)))).rows
    assert line[5] == "100 k msg/s" and line[7] == "in 1 of 2 repetitions: the backlog grew"
    (line,) = open_load.saturation(open_load.curves(open_load.points(read(tmp_path / "all", *both)))).rows
    assert line[7] == "it grew"


def test_a_late_repetition_is_in_the_median_and_in_the_range(tmp_path):
    """What was published once: 28.4 µs (27.7–29.0), where the third repetition, whose generator was late, had 56.2."""
    some = [load_rows.cell(load_rows.params(), repetition) for repetition in range(2)] + [
        load_rows.late(load_rows.params(), 2)
    ]
    for row, p99 in zip(some, (28e3, 29e3, 56e3)):
        row["figures"]["latency_ns"]["p99"] = p99
        row["details"]["load"]["without_own_lag_ns"] = {"p50": 10e3, "p99": min(p99, 30e3)}
    found = open_load.points(read(tmp_path, *some))
    (point,) = found.to_dict("records")
    assert (point["p99"], point["p99_least"], point["p99_greatest"]) == (29e3, 28e3, 56e3)
    assert point["state"] == open_load.SUSTAINED and point["repetitions"] == 3 and point["generator"] == 1
    (line,) = open_load.saturation(open_load.curves(found)).rows
    assert line[4].startswith("29.0 µs (") and " †\n28.0 µs to 56.0 µs\n" in line[4]
    assert line[4].endswith("without the generator's lag 29.0 µs, 28.0 µs to 30.0 µs")
    text = report(tmp_path / "some")
    assert "28.0 µs to 56.0 µs" in text and "† 1 of 3 rows with a late load generator" in text


def test_a_rate_with_a_late_generator_only_is_there(tmp_path):
    found = open_load.points(read(tmp_path, load_rows.late(load_rows.params(rate=1000))))
    assert list(found["state"]) == [open_load.SUSTAINED] and found["generator"].item() == 1 and found["kept"].item()


def test_what_is_sustained_above_a_rate_that_was_not_is_not_kept(tmp_path):
    some = [load_rows.cell(load_rows.params(rate=rate)) for rate in (1000, 2000, 4000)]
    some[1] = rows.spoilt(some[1], "backlog", "the backlog grew", "unsustainable")
    found = open_load.points(read(tmp_path, *some)).sort_values("rate")
    assert list(found["kept"]) == [True, False, False] and found["state"].iloc[2] == open_load.SUSTAINED


def test_rates_within_five_percent_stand_together(tmp_path):
    rates = (1000, 1040, 1049, 1060, 2000)
    found = open_load.points(read(tmp_path, *(load_rows.cell(load_rows.params(rate=rate)) for rate in rates)))
    assert sorted(found["repetitions"]) == [1, 1, 3]


def test_a_curve_is_of_the_setting_that_sustains_the_most(tmp_path):
    good, bad = ([load_rows.params(rate=rate, window=window) for rate in (1000, 2000)] for window in (256, 1))
    slow = rows.spoilt(load_rows.cell(bad[1]), "backlog", "the backlog grew", "unsustainable")
    found = open_load.points(read(tmp_path, *map(load_rows.cell, good), load_rows.cell(bad[0]), slow))
    assert set(found["window"]) == {1, 256} and set(open_load.curves(found)["window"]) == {256}


def test_payloads_and_kinds_of_arrivals_are_tasks_of_their_own(tmp_path):
    some = [load_rows.params(), load_rows.params(payload_bytes=4096), load_rows.params(arrivals="bursts", burst_us=100)]
    found = open_load.points(read(tmp_path, *map(load_rows.cell, some)))
    assert list(found["task"]) == ["64 B", "4 KiB", "64 B, bursts of 100 µs"]


def test_the_rate_to_compare_at_is_the_highest_that_the_most_sustain(results):
    chosen = open_load.comparable(open_load.curves(open_load.points(results)))
    assert set(chosen["variant"]) == {"gpu_ring", "host_polled + pinned", "redis_list + pinned"}
    assert chosen["rate"].median() == pytest.approx(100_000, rel=0.01)  # redis_list does 400 k, the next rate is 1 M


def test_saturation_tells_the_last_rate_sustained_and_what_came_back_beyond(results):
    table = open_load.saturation(open_load.curves(open_load.points(results)))
    redis = next(row for row in table.rows if row[1].startswith("redis_list"))
    assert redis[2] == "100 k msg/s" and redis[5] == "1.00 M msg/s" and redis[6] == "400 k msg/s"
    assert redis[7] == "the backlog grew by 600000 msg/s"
    ring = next(row for row in table.rows if row[1].startswith("gpu_ring"))
    assert ring[2] == "10.0 M msg/s" and ring[5] == "—"  # it kept up with all rates


def test_saturation_says_what_of_p99_is_the_generators(tmp_path):
    row = load_rows.cell(load_rows.params(rate=1000))
    row["details"]["load"]["without_own_lag_ns"] = {"p50": row["figures"]["latency_ns"]["p50"], "p99": 4_200.0}
    (line,) = open_load.saturation(open_load.curves(open_load.points(read(tmp_path, row)))).rows
    assert line[4].endswith("\nwithout the generator's lag 4.20 µs")
    (older,) = open_load.saturation(
        open_load.curves(open_load.points(read(tmp_path / "older", load_rows.cell(load_rows.params(rate=1000)))))
    ).rows
    assert "generator" not in older[4]


def test_unsustainable_rates_are_hollow_and_the_plateau_is_marked(results):
    axes = drawn(results, offered).axes[0]
    marked = [line for line in axes.lines if line.get_marker() not in ("None", "x")]
    hollow = {round(x) for line in marked if line.get_markerfacecolor() == "white" for x in line.get_xdata()}
    solid = {round(x) for line in marked if line.get_markerfacecolor() != "white" for x in line.get_xdata()}
    assert hollow == {1_001_000, 10_010_000}  # of redis_list, and host_polled and it
    assert solid == {10_010, 100_100, 1_001_000, 10_010_000}  # gpu_ring keeps up with all
    upright = {line.get_xdata()[0] for line in axes.lines if list(line.get_ydata()) == [0, 1]}
    assert upright == {load_rows.MOST["redis_list"], load_rows.MOST["host_polled"]}


def test_late_generators_are_crossed_and_counted_in_the_caption(tmp_path):
    late = [load_rows.late(load_rows.params(rate=1000), repetition) for repetition in range(2)]
    results = read(tmp_path, *late, load_rows.cell(load_rows.params(rate=4000)))
    drawing = offered.draw(results, Styles(results.cells))
    crossed = [line for line in drawing.figure.axes[0].lines if line.get_marker() == "x"]
    assert [len(line.get_xdata()) for line in crossed] == [1] and "(2 of 3 rows)" in drawing.caption


@pytest.mark.parametrize("samples, last", [(5, None), (1000, 100), (99_990, 9999), (1_000_000, 1e4)])
def test_a_percentile_needs_ten_samples_above_it(samples, last):
    values = np.random.default_rng(1).integers(1000, 1_000_000, samples)
    histogram = Histogram.from_row(rows.histogram(values))
    x, y = percentiles.supported(histogram)
    if last is None:
        assert len(x) == 0
    else:
        assert x[-1] == last and y[-1] == histogram.percentile(100 * (1 - 1 / last)) and (np.diff(x) >= 0).all()


def test_percentiles_show_response_and_service_with_their_samples(results):
    axes = drawn(results, percentiles).axes[0]
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "redis_list + pinned, n = 60.0 k" in labels and len(labels) == 3  # three repetitions together
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    solid = [line for line in axes.lines if line.get_linestyle() == "-"]
    assert len(dashed) == len(solid) == 3
    ends = [(below.get_ydata()[-1], above.get_ydata()[-1]) for below, above in zip(dashed, solid)]
    assert all(below <= above for below, above in ends) and any(below < above for below, above in ends)


def test_stages_of_all_queues_at_one_rate(results):
    figure = drawn(results, load_stages)
    (axes,) = figure.axes
    shown = {text.get_text() for text in axes.get_yticklabels()}
    assert shown == {"gpu_ring", "host_polled + pinned", "redis_list + pinned"}
    lengths = Counter()
    for bar in axes.patches:
        lengths[bar.get_y()] += bar.get_width()
    assert list(lengths.values()) == pytest.approx([100] * 3)  # the stages of a queue add up


def test_no_stages_no_figure(tmp_path):
    row = load_rows.cell(load_rows.params())
    del row["details"]["stages_ns"]
    some = read(tmp_path, row)
    assert load_stages.draw(some, Styles(some.cells)) is None


def test_readme_blocks_of_open_loads(tmp_path):
    some = load_rows.sweep(1)
    answer = load_rows.capacity(load_rows.params(), 1000, 2000, probes=some[:1])
    directory = rows.write(tmp_path / "run", [*some, answer])
    text = "".join(f"<!-- {block}:begin -->\nold\n<!-- {block}:end -->\n" for block in ("load", "capacity"))
    (readme := tmp_path / "README.md").write_text(text)
    figures = tmp_path / "figures"
    assert main(["figures", str(directory), "--out", str(figures)]) == 0
    for block, said in (("load", "sustained up to"), ("capacity", "1.00 to 2.00 k msg/s")):
        arguments = ["readme", str(directory), str(readme), "--block", block, "--figures", str(figures)]
        assert main([*arguments, "--check"]) == 1
        assert main(arguments) == 0 and main([*arguments, "--check"]) == 0
        assert said in readme.read_text()
    pictures = [line for line in readme.read_text().splitlines() if line.startswith("![")]
    assert len(pictures) == 3


def _with_null(null_rate: int, where: dict) -> list[dict]:
    """The ring at 1 M/s, null at nearly that, and the floors, on one machine."""
    return [
        load_rows.cell(load_rows.params("gpu_ring", 1_000_000), where=where),
        load_rows.cell(load_rows.params("null", null_rate), where=where),
        rows.floor("round_ns", 5_900.0, where=where),
        rows.floor("round_p99_ns", 7_200.0, where=where),
    ]


def test_a_tail_stands_beside_the_drivers_and_the_gpus(tmp_path):
    higher = load_rows.cell(load_rows.params("gpu_ring", 10_000_000))  # null was not measured there
    results = read(tmp_path, higher, *_with_null(1_000_000, rows.environment()))
    ring, null, bare = tails.table(results, open_load.curves(open_load.points(results))).rows
    assert ring[1] == null[1] == "1.00 M msg/s"  # the highest that both have
    assert ring[2].startswith("gpu_ring")
    assert null[2].startswith("null")
    assert bare[3:5] == ["5.90 µs", "7.20 µs"]


def test_a_late_generator_is_the_driver_too(tmp_path):
    ring, _, *floors = _with_null(1_000_000, rows.environment())
    results = read(tmp_path, ring, load_rows.late(load_rows.params("null", 1_000_000)), *floors)
    both = tails.table(results, open_load.curves(open_load.points(results))).rows[:2]
    assert [line[2].split()[0] for line in both] == ["gpu_ring", "null"]


def test_a_tail_stands_beside_those_of_its_own_machine(tmp_path):
    here, there = rows.environment(), rows.environment() | {"cores": 64}
    some = [*_with_null(1_000_000, here), *_with_null(980_000, there)]
    for place, row in enumerate(some):
        row["id"] = f"{place:016x}"  # the same points on two machines
    results = read(tmp_path, *some)
    table = tails.table(results, open_load.curves(open_load.points(results))).rows
    assert [line[1] for line in table[:4]] == ["1.00 M msg/s"] * 3 + ["980 k msg/s"]
    assert [line[2].split("\n")[0][-2:] for line in table] == ["@A", "@A", "@B", "@B", "@A", "@B"]


def test_without_the_driver_alone_there_is_nothing_to_stand_beside(results):
    assert tails.table(results, open_load.curves(open_load.points(results))) is None
