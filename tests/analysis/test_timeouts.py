"""Batches held back: which points make a line, and what stands in the table and the figure."""

import pytest
import rows
import transfer_rows as made

from analysis.__main__ import main
from analysis.feeding import timeouts
from analysis.feeding.plots import timeouts as drawn
from analysis.feeding.plots.styles import Styles
from analysis.load import load
from analysis.plots.style import looks


def results(tmp_path, some):
    return load([rows.write(tmp_path / "rows", some)])


def test_a_line_is_a_queue_at_a_rate_by_its_timeouts(tmp_path):
    found = timeouts.in_order(timeouts.lines(results(tmp_path, made.timeouts())))
    told = [(line["variant"].iloc[0], line["rate"].iloc[0], list(line[timeouts.AXIS])) for line in found]
    rates = (100_000, 1_000_000, 10_000_000)
    assert told == [
        (name, rate, [0, 5, 20, 100]) for name in ("gpu_ring", "host_polled + pinned") for rate in rates
    ]


def test_repetitions_of_which_more_was_due_than_of_others_are_one_point(tmp_path):
    """In a short phase what is due varies by more than the rates of a search do."""
    some = [made.held_back("gpu_ring", timeout, 1_000_000, number) for timeout in (0, 5) for number in range(3)]
    for row in some:
        row["details"]["load"]["due_per_second"] *= 1 + 0.2 * row["repetition"]
    found = timeouts.lines(results(tmp_path, some))
    assert list(found["repetitions"]) == [3, 3] and set(found["rate"]) == {1_000_000}


def test_one_timeout_makes_no_line(tmp_path, run):
    single = [made.held_back("gpu_ring", 20), made.held_back("host_polled", 0)]
    assert timeouts.lines(results(tmp_path, single)).empty
    assert timeouts.lines(load([run])).empty  # closed loads, of a release without the axis


def test_of_several_settings_the_one_of_most_timeouts(tmp_path):
    some = made.timeouts(1, ("gpu_ring",), (1_000_000,))
    for timeout in (0, 5):
        row = made.held_back("gpu_ring", timeout)
        row["params"]["window"] = 64
        some.append(row | {"id": rows.row_id(row["params"], 0)})
    assert set(timeouts.lines(results(tmp_path, some))["window"]) == {8192}


def test_the_table_has_times_throughput_and_what_was_not_sustained(tmp_path):
    some = results(tmp_path, made.timeouts())
    table = timeouts.table(some, timeouts.lines(some))
    lines = [dict(zip(table.columns, row)) for row in table.rows]
    assert len(lines) == 24
    first, last = lines[0], lines[-1]
    assert (first["due"], first["held back for"], first["sustained"]) == ("100 k msg/s", "0", "yes")
    assert first["p50"].startswith("3.0") and "(" in first["p50"] and first["came back"].startswith("100 k msg/s")
    assert (last["due"], last["held back for"], last["sustained"]) == ("10.0 M msg/s", "100 µs", "no")
    assert last["came back"].startswith("5.00 M msg/s")


def test_an_unstable_rate_says_so(tmp_path):
    some = [made.held_back("gpu_ring", timeout, 1_000_000, number) for timeout in (0, 5) for number in range(2)]
    some[-1]["figures"]["messages_per_second"] *= 3
    found = results(tmp_path, some)
    assert "unstable: 3 times between repetitions" in timeouts.table(found, timeouts.lines(found)).rows[-1][-2]


@pytest.mark.parametrize("narrow", [False, True])
def test_the_figure_tells_queues_and_rates_apart(tmp_path, narrow):
    some = results(tmp_path, made.timeouts())
    with looks():
        figure = drawn.draw(some, Styles(some.cells, narrow)).figure
    assert len(figure.axes) == 3
    for axes in figure.axes:
        assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "5", "20", "100"]
    handles, labels = figure.axes[0].get_legend_handles_labels()
    assert labels[0] == "gpu_ring, 100 k msg/s due" and len(labels) == len(set(labels)) == 6
    assert len({(one.get_color(), one.get_linestyle(), one.get_marker()) for one in handles}) == 6
    hollow = [line for line in figure.axes[0].get_lines() if line.get_markerfacecolor() == "white"]
    assert len(hollow) == 4  # of one line: the rate beyond what the queue can do


def test_two_transfers_of_a_queue_have_two_colours(tmp_path):
    some = made.timeouts(1, ("host_polled",), (1_000_000,))
    for timeout in (0, 5):
        row = made.held_back("host_polled", timeout)
        row["params"]["transfer"] = "mapped"
        some.append(row | {"id": rows.row_id(row["params"], 0)})
    found = results(tmp_path, some)
    with looks():
        figure = drawn.draw(found, Styles(found.cells)).figure
    handles, _ = figure.axes[0].get_legend_handles_labels()
    assert len({one.get_color() for one in handles}) == 2


def test_the_block_comes_from_a_command(tmp_path, capsys):
    folder = rows.write(tmp_path / "run", made.timeouts(2))
    page = tmp_path / "page.md"
    page.write_text("<!-- batch_timeout:begin -->\n<!-- batch_timeout:end -->\n")
    arguments = ["readme", str(folder), str(page), "--block", "batch_timeout"]
    assert main(arguments) == 0 and page.read_text().count("\n| 64 B |") == 24
    other = rows.write(tmp_path / "other", made.sweep(1))
    assert main(["readme", str(other), *arguments[2:]]) == 2
    assert "holds no open load with two values" in capsys.readouterr().err
