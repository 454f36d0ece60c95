"""The best transfer for each payload and batch: who competes, how far the next one is behind, and what `auto` chose."""

import pytest
import rows
import transfer_rows as made

from analysis.__main__ import main
from analysis.feeding import transfers
from analysis.feeding.plots import transfers as drawn
from analysis.feeding.plots.styles import Styles
from analysis.load import load
from analysis.plots.style import looks

FAST, SLOW = (10e6, 10.1e6, 9.9e6), (5e6, 5.1e6, 4.9e6)


def results(tmp_path, *groups):
    return load([rows.write(tmp_path / "rows", [row for group in groups for row in group])])


def lines(tmp_path, *groups) -> list[dict]:
    some = results(tmp_path, *groups)
    found = transfers.table(some, transfers.places(some))
    return [dict(zip(found.columns, row)) for row in found.rows]


def only(tmp_path, *groups) -> dict:
    (line,) = lines(tmp_path, *groups)
    return line


def test_the_best_stands_with_its_rates_and_settings_beside_the_next(tmp_path):
    line = only(tmp_path, made.winner("gather", FAST, producers=4), made.winner("pinned", SLOW))
    assert (line["payload"], line["batch"]) == ("64 B", "1")
    assert line["best transfer"] == "gather\nwindow 256, producers 4, workers 2" and line["runner-up"].endswith("workers 2, streams 4")
    assert line["its messages"].startswith("5.00 M msg/s (") and line["bytes"].startswith("640 MB/s (")
    ratio, _, interval = line["ratio"].partition(" ")
    low, _, high = interval.strip("()").partition("–")
    assert ratio == "2.00" and 1 < float(low) < 2 < float(high)


def test_tries_never_count(tmp_path):
    """They are far faster than any row that counts."""
    assert " M msg/s" in only(tmp_path, made.winner("gather", FAST), made.winner("pinned", SLOW))["messages"]


def test_only_what_a_search_found_competes(tmp_path):
    """Other parts of a spec measure other settings, with no search: who has more of these would have more luck."""
    other = [made.made("mapped", rate, number, window=1) for number, rate in enumerate((20e6, 20e6))]
    more = [made.made("pinned", 20e6, number, window=4096) for number in range(2)]
    line = only(tmp_path, made.winner("gather", FAST), made.winner("pinned", SLOW), other, more)
    assert line["best transfer"].startswith("gather") and line["runner-up"].startswith("pinned")


def test_what_overlaps_is_unclear(tmp_path):
    near = (9.8e6, 10e6, 10.2e6)
    assert only(tmp_path, made.winner("gather", FAST), made.winner("pinned", near))["ratio"].endswith("\nunclear")


def test_a_single_repetition_is_unclear(tmp_path):
    line = only(tmp_path, made.winner("gather", FAST[:1]), made.winner("pinned", SLOW))
    assert line["ratio"] == "2.00\nunclear" and line["messages"] == "10.0 M msg/s\none repetition"


def limited(some: list[dict]) -> list[dict]:
    why = "driver-bound: 97 % of what the driver alone reaches"
    return [row if "search" in row else rows.spoilt(row, "driver_bound", why) for row in some]


def test_driver_bound_is_at_least(tmp_path):
    found = transfers.places(results(tmp_path, limited(made.winner("gather", FAST)), made.winner("pinned", SLOW)))
    assert found[0].clear and transfers.rate(found[0].best).startswith("at least 10.0 M msg/s")
    line = lines(tmp_path, limited(made.winner("gather", FAST)), made.winner("pinned", SLOW))[0]
    assert line["ratio"].startswith("at least 2.00") and line["bytes"].startswith("at least ")
    assert "≥10.0 M msg/s" in drawn.said(found[0])


def test_a_next_one_of_at_least_so_much_is_unclear(tmp_path):
    line = only(tmp_path, made.winner("gather", FAST), limited(made.winner("pinned", SLOW)))
    assert line["its messages"].startswith("at least 5.00") and line["ratio"].startswith("at most 2.00")
    assert line["ratio"].endswith("\nunclear")


def test_of_two_that_the_driver_limits_nothing_is_known(tmp_path):
    line = only(tmp_path, limited(made.winner("gather", FAST)), limited(made.winner("pinned", SLOW)))
    assert line["ratio"] == "—\nunclear"


def test_an_unstable_rate_says_so(tmp_path):
    some = [made.winner("gather", (10e6, 40e6)), made.winner("pinned", SLOW)]
    found = transfers.places(results(tmp_path, *some))
    assert "unstable: 4 times between repetitions" in transfers.rate(found[0].best) and "unstable" in drawn.said(found[0])


def test_auto_stands_beside_the_best_and_never_wins(tmp_path):
    auto = made.winner("auto", (12e6, 12e6, 12e6), chosen="gather")
    line = only(tmp_path, made.winner("gather", FAST), made.winner("pinned", SLOW), auto)
    assert line["best transfer"].startswith("gather") and line["runner-up"].startswith("pinned")
    assert line["auto chose"] == "gather" and line["auto / best"].startswith("1.20 (")


def test_without_auto_there_is_none(tmp_path):
    line = only(tmp_path, made.winner("gather", FAST), made.winner("pinned", SLOW))
    assert line["auto chose"] == line["auto / best"] == "—"


def test_a_batch_that_was_searched_for_is_no_place(tmp_path):
    """As in `quick`: each transfer found a batch of its own, so none was measured at the others' ones."""
    some = [made.winner("gather", FAST, batch=16), made.winner("pinned", SLOW, batch=16)]
    tries = [made.tried(made.made(name, 1, batch=batch), 5) for name in ("gather", "pinned") for batch in (64, 256)]
    assert transfers.places(results(tmp_path, *some, tries)) == []


def test_a_batch_that_its_window_cut_off_hides_no_place(tmp_path):
    """No batch holds more than may be outstanding, so a try with a small window has a smaller batch than was given."""
    some = [made.winner("gather", FAST), made.winner("pinned", SLOW)]
    tries = [made.tried(made.made(name, 1, batch=8, window=8), 5) for name in ("gather", "pinned")]
    assert len(transfers.places(results(tmp_path, *some, tries))) == 1


def test_a_transfer_whose_repetitions_all_failed_hides_no_other_batch(tmp_path):
    failed = [
        row if "search" in row else rows.spoilt(row, "error", "it broke off", "failed")
        for row in made.winner("gather", FAST, batch=16)
    ]
    some = [made.winner("gather", FAST), made.winner("pinned", SLOW), made.winner("pinned", SLOW, batch=16)]
    first, second = lines(tmp_path, *some, failed)
    assert first["best transfer"].startswith("gather") and second["best transfer"].startswith("pinned")
    assert second["runner-up"] == "nothing else was measured"


def test_without_searches_there_is_nothing(tmp_path, run):
    assert transfers.places(load([run])) == []
    one = rows.write(tmp_path / "one", made.winner("gather", FAST))
    assert transfers.places(load([one])) == []


@pytest.mark.parametrize("narrow", [False, True])
def test_the_figure_has_a_cell_a_place_and_its_text_fits(tmp_path, narrow):
    some = results(tmp_path, made.sweep())
    with looks():
        figure = drawn.draw(some, Styles(some.cells, narrow)).figure
    figure.get_layout_engine().execute(figure)
    (axes,) = figure.axes
    assert len(axes.patches) == len(made.PLACES)
    inside = [patch.get_window_extent() for patch in axes.patches]
    for text in axes.texts:
        box = text.get_window_extent()
        assert any(cell.x0 <= box.x0 and box.x1 <= cell.x1 and cell.y0 <= box.y0 and box.y1 <= cell.y1 for cell in inside)
    names = [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"]
    assert len(names) == len(made.PLACES) and {"mapped", "gather"} <= set(names)


def test_the_block_comes_from_a_command(tmp_path, undrawn):
    folder = rows.write(tmp_path / "run", made.sweep())
    page = tmp_path / "page.md"
    page.write_text("<!-- transfers:begin -->\n<!-- transfers:end -->\n")
    arguments = ["readme", str(folder), str(page), "--block", "transfers"]
    assert main(arguments) == 0
    text = page.read_text()
    assert text.count("\n| ") == 1 + len(made.PLACES) and "| 64 B | 256 | gather<br>window 256, producers 2, workers 2 | 29.3 M msg/s" in text and "![" not in text
    assert main(["figures", str(folder), "--out", str(tmp_path / "figures")]) == 0
    assert main([*arguments, "--figures", str(tmp_path / "figures")]) == 0
    assert "![The best transfer by payload and batch](figures/transfers.png)" in page.read_text()


def test_rows_without_searches_are_bad_input(tmp_path, run, capsys):
    page = tmp_path / "page.md"
    page.write_text("<!-- transfers:begin -->\n<!-- transfers:end -->\n")
    assert main(["readme", str(run), str(page), "--block", "transfers"]) == 2
    assert "holds no two transfers" in capsys.readouterr().err
