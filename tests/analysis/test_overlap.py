"""The section of `overlap`: which points are compared, what stands in the tables and the figures, and what is not."""

import numpy as np
import overlap_rows as made
import pytest
import rows

from analysis import answer, sections, stats
from analysis.__main__ import main
from analysis.load import load
from analysis.overlap import along, axes, points, questions, story, strategies
from analysis.overlap.plots import draw_all
from analysis.overlap.plots.styles import LEAST
from analysis.plots.style import NARROW
from test_report import report


def results(tmp_path, some):
    return load([made.write(tmp_path / "rows", some)], experiment="overlap")


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A whole run of the spec `overlap`. Only to be read."""
    return made.write(tmp_path_factory.mktemp("overlap") / "run", made.sweep())


@pytest.fixture(scope="module")
def whole(swept):
    return load([swept], experiment="overlap")


def lines(some, pipeline: str) -> dict[str, dict]:
    measured = points.read(some)
    found = strategies.table(some, pipeline, measured[measured["pipeline"] == pipeline])
    return {row[0]: dict(zip(found.columns, row)) for row in found.rows}


def test_the_rows_are_valid(schema):
    for row in rows.with_runs(made.sweep(1)):
        schema.validate(row)


def test_a_table_has_the_strategies_of_a_pipeline_from_the_wrong_way_to_the_best(whole):
    order = ["serial", "two_stream", "ping_pong", "ring", "graph", "pdl", "persistent"]
    assert list(lines(whole, "chain")) == order
    ring = lines(whole, "chain")["ring"]
    assert ring["items a second"].startswith("13.") and " k items/s (" in ring["items a second"]
    assert ring["speedup"].startswith("2.4") and ring["overlap efficiency"].startswith("0.91")
    assert ring["by stages alone"].startswith("0.88")
    assert ring["stages, alone"].split("\n")[0].startswith("decode 60.") and ring["stages, alone"].count("\n") == 2
    assert ring["beside each other"].startswith("decode 63.")


def test_strategies_are_compared_at_the_setting_that_most_of_them_share(whole):
    measured = points.read(whole)
    shared = points.compared(whole, measured[measured["pipeline"] == "chain"])
    assert set(shared["item_bytes"]) == {1 << 20} and set(shared["balance"]) == {"even"}
    assert set(shared.loc[shared["strategy"] == "ring", "depth"]) == {3}  # the standard, though 8 may be faster
    text = "\n".join(story.text(whole))
    assert "All with item 1 MiB, 64 items, 60 µs a kernel, cost even, 44 blocks a stage, 3 stages" in text


def test_without_the_standard_depth_the_fastest_stands(tmp_path):
    some = [made.cell(made.params(strategy=strategy), number) for strategy in ("serial", "ping_pong") for number in (0, 1)]
    some += [made.cell(made.params(depth=depth), number) for depth in (1, 2) for number in (0, 1)]
    found = results(tmp_path, some)
    shared = points.compared(found, points.read(found))
    assert list(shared["depth"]) == [0, 0, 2]


def test_what_was_measured_elsewhere_says_where(whole):
    names = list(lines(whole, "producer_consumer"))
    assert names[:7] == [*points.ORDER[:7]]
    where = [name.partition("\n") for name in names[7:]]
    assert [name for name, _, _ in where] == ["peer_copy"] * 3 + ["peer_load"] * 3
    assert [place.split(",")[0] for _, _, place in where] == ["item 1 MiB", "item 16 MiB", "item 64 MiB"] * 2


def test_what_cannot_run_says_why(whole):
    line = lines(whole, "copy_process_copy")["persistent"]
    assert line["items a second"].startswith("skipped: strategy persistent runs kernels") and line["speedup"] == "—"


def test_serial_is_what_the_others_are_compared_with(whole):
    line = lines(whole, "chain")["serial"]
    assert (line["speedup"], line["overlap efficiency"], line["by stages alone"]) == ("1", "0", "0")


def test_an_efficiency_may_be_0_or_less_and_has_an_interval(tmp_path):
    some = [made.cell(made.params(strategy="two_stream"), number, overlap_efficiency=value)
            for number, value in enumerate((-0.02, 0.0, 0.02))]  # fmt: skip
    point = points.read(results(tmp_path, some)).iloc[0]
    reach = 4.302652729911275 * 0.02 * np.sqrt(1.346 / 3)  # Student's t of 2 degrees of freedom
    assert point["overlap_efficiency_low"] == pytest.approx(-reach)
    assert point["overlap_efficiency_high"] == pytest.approx(reach)
    assert lines(results(tmp_path, some), "chain")["two_stream"]["overlap efficiency"] == "0 (-0.0576 to 0.0576)"


def test_other_figures_keep_their_logarithms(whole):
    point = points.read(whole).iloc[0]
    low, middle, high = (point[f"items_per_second{end}"] for end in ("_low", "", "_high"))
    assert middle / low == pytest.approx(high / middle)
    assert sections.of("feeding").linear == () and "overlap_efficiency" in sections.of("overlap").linear


def test_where_there_is_nothing_to_save_there_is_no_efficiency(tmp_path):
    both = (points.EFFICIENCY, points.ALONE)
    some = [made.nothing_to_save(made.cell(made.params(), number), *both) for number in range(3)]
    some += [made.cell(made.params(strategy="graph"), number) for number in range(3)]
    made.nothing_to_save(some[-1], points.EFFICIENCY)
    found = results(tmp_path, some)
    told = lines(found, "chain")
    assert told["ring"]["overlap efficiency"] == told["ring"]["by stages alone"] == "—\n4 % to save"
    assert told["graph"]["overlap efficiency"].endswith("\nin 2 of 3 repetitions")
    assert "repetitions" not in told["graph"]["by stages alone"]
    assert draw_all(found)[0].figure is not None


def test_a_row_with_a_wrong_item_counts_nowhere(tmp_path):
    wrong = made.cell(made.params())
    wrong["details"]["verified"]["wrong"] = 1
    found = results(tmp_path, [wrong, made.cell(made.params(strategy="serial"))])
    assert list(lines(found, "chain")) == ["serial", "ring"]
    assert lines(found, "chain")["ring"]["items a second"] == "invalid: items were wrong"


def test_an_unstable_rate_says_so(tmp_path):
    some = [made.cell(made.params(), number, items_per_second=rate) for number, rate in enumerate((1e4, 2e4))]
    assert "unstable: 2 times between" in lines(results(tmp_path, some), "chain")["ring"]["items a second"]


def test_the_answer_is_by_pipeline_at_one_setting(whole):
    table = answer.table(whole, questions.questions(whole))
    assert [row[0].split(":")[0] for row in table.rows] == list(points.PIPELINES)
    best = {row[0].split(":")[0]: row[1].split("\n")[0] for row in table.rows}
    assert best == {"producer_consumer": "persistent", "chain": "persistent", "copy_process_copy": "graph"}
    assert "item 1 MiB" in table.rows[1][0] and "item" not in table.rows[1][1]


@pytest.mark.parametrize(
    "axis, moving, pipeline, steps",
    [
        ("balance", (), "chain", {"even", "first", "middle", "last", "rising"}),
        ("item_bytes", ("cost_us", "items"), "chain", {4 << 10, 64 << 10, 1 << 20, 16 << 20}),
        ("item_bytes", ("cost_us", "items"), "copy_process_copy", {4 << 10, 64 << 10, 1 << 20, 16 << 20}),
        ("depth", (), "chain", {1, 2, 3, 4, 8}),
    ],
)
def test_along_an_axis_all_else_is_equal(whole, axis, moving, pipeline, steps):
    measured = points.read(whole)
    found = points.along(whole, measured[measured["pipeline"] == pipeline], axis, moving)
    assert set(found[axis]) == steps and "serial" not in set(found["strategy"])
    assert not found.duplicated(["strategy", axis]).any()
    others = [one for one in points.setting_axes(whole) if one not in (axis, *moving)]
    assert all(found[one].nunique() == 1 for one in others)
    if axis != "depth":
        assert set(found.loc[found["depth"] > 0, "depth"]) == {3}


def test_one_value_is_no_axis(whole):
    measured = points.read(whole)
    some = measured[measured["pipeline"] == "producer_consumer"]
    assert points.along(whole, some, "balance").empty and points.along(whole, some, "nonsense").empty


def along_lines(some, axis: axes.Axis, pipeline: str = "chain") -> dict[str, list[str]]:
    """By the line's name, the cells of a table along an axis, the columns' names first."""
    measured = points.read(some)
    found = points.along(some, measured[measured["pipeline"] == pipeline], axis.name, axis.moving)
    table = along.table(some, axis, found)
    return {row[0]: row[1:] for row in [table.columns, *table.rows]}


@pytest.mark.parametrize(
    "axis, steps, strategies_told",
    [
        (axes.DEPTH, ["1", "2", "3", "4", "8"], ["ring", "graph", "persistent"]),
        (axes.BALANCE, ["even", "first", "middle", "last", "rising"], ["ping_pong", "ring", "graph", "persistent"]),
        (axes.ITEM, ["4 KiB\n5 µs", "64 KiB\n10 µs", "1 MiB\n60 µs", "16 MiB\n400 µs"],
         ["ping_pong", "ring", "graph", "pdl"]),
    ],
)  # fmt: skip
def test_a_table_along_an_axis_has_a_line_a_strategy_and_a_column_a_value(whole, axis, steps, strategies_told):
    told = along_lines(whole, axis)
    assert list(told) == ["strategy", *strategies_told, along.SERIAL, along.ALONE, along.BESIDE]
    assert told["strategy"] == steps
    assert all(len(cells) == len(steps) for cells in told.values())


def test_a_cell_along_an_axis_is_the_speedup_and_below_it_the_efficiency(whole):
    speedup, efficiency = along_lines(whole, axes.DEPTH)["ring"][2].split("\n")
    line = lines(whole, "chain")["ring"]
    assert (speedup, efficiency) == (line["speedup"], line["overlap efficiency"])


def test_a_cell_along_an_axis_says_where_there_is_nothing_to_save(tmp_path):
    some = [made.cell(made.params(depth=depth), number) for depth in (2, 3) for number in range(3)]
    for row in some[:3]:
        made.nothing_to_save(row, points.EFFICIENCY, saved=-0.01)
    made.nothing_to_save(some[3], points.EFFICIENCY)
    cells = along_lines(results(tmp_path, some), axes.DEPTH)["ring"]
    assert cells[0].endswith("\nnothing to save") and cells[1].endswith(", in 2 of 3 repetitions")


def test_a_strategy_without_a_point_at_a_value_has_no_figure_there(tmp_path):
    points_told = [("ring", 1), ("ring", 2), ("ring", 3), ("graph", 1), ("graph", 3)]
    some = [made.cell(made.params(strategy=strategy, depth=depth), number)
            for strategy, depth in points_told for number in (0, 1)]  # fmt: skip
    assert along_lines(results(tmp_path, some), axes.DEPTH)["graph"][1] == "—"


def test_the_last_lines_are_medians_over_the_rows(tmp_path):
    some = [made.cell(made.params(depth=depth), number) for depth in (1, 2) for number in range(3)]
    for number, row in enumerate(some[:3]):
        row["details"]["serial_ns"]["p50"] = 64e3 * (100 + number)
        for place, stage in enumerate(row["details"]["stages"]):
            stage |= {"alone_ns": 10e3 + number * 1e3 - place, "contended_ns": 20e3 + number * 1e3 - place}
    told = along_lines(results(tmp_path, some), axes.DEPTH)
    assert [told[kind][0] for kind in (along.SERIAL, along.ALONE, along.BESIDE)] == ["101 µs", "11.0 µs", "21.0 µs"]


@pytest.mark.parametrize("narrow", [False, True])
def test_the_figures(whole, narrow):
    drawn = {one.name: one for one in draw_all(whole, narrow)}
    assert list(drawn) == ["overlap_strategies", "overlap_balance", "overlap_items", "overlap_depth"]
    panels = {name: len(one.figure.axes) for name, one in drawn.items()}
    assert panels == {"overlap_strategies": 3, "overlap_balance": 1, "overlap_items": 2, "overlap_depth": 1}
    for one in drawn.values():
        assert one.caption and (one.figure.get_size_inches()[0] == NARROW) == narrow
        one.figure.canvas.draw()
        for axes in one.figure.axes:
            boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
            boxes = sorted(boxes, key=lambda box: box.x0)
            assert all(left.x1 <= right.x0 for left, right in zip(boxes, boxes[1:])), one.name
    (axes,) = drawn["overlap_depth"].figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "3", "4", "8"]
    assert axes.get_legend_handles_labels()[1] == ["ring", "graph", "persistent"]


def test_a_great_loss_does_not_squeeze_the_rest(tmp_path):
    some = [made.cell(made.params(strategy="serial")), made.cell(made.params(), overlap_efficiency=-30.0)]
    (axes,) = draw_all(results(tmp_path, some))[0].figure.axes
    assert axes.get_xlim()[0] >= LEAST - 0.2 and "-30.00" in [text.get_text() for text in axes.texts]


def test_the_cpu_does_not_compete_with_a_gpu(tmp_path):
    some = [made.cell(made.params(device=device)) for device in ("cpu", "cuda")]
    assert set(points.read(results(tmp_path, some))["device"]) == {"cuda"}


def test_the_report_has_tables_and_figures(swept, undrawn):
    text = report(swept)
    order = ["## The answer", "## What was measured", "## Pipeline chain", "## Overlap efficiency by strategy",
             "## Overlap efficiency by depth", "## Every point"]  # fmt: skip
    places = [text.index(heading) for heading in order]
    assert places == sorted(places)


def test_nothing_ok_is_still_a_report(tmp_path, undrawn):
    text = report(made.write(tmp_path / "run", [made.skipped(made.params(), "no such GPU")]))
    assert "no such GPU" in text and "## Pipeline" not in text


def test_compare_judges_no_efficiency(swept, tmp_path, capsys):
    """A ratio of two shares of which either may be 0 says nothing."""
    assert main(["compare", str(swept), str(swept), "--out", str(tmp_path)]) == 0
    text = (tmp_path / "compare.md").read_text()
    assert "speedup" in text and "efficiency" not in text
    assert stats.numbers(load([swept], experiment="overlap")).count("overlap_efficiency") == 1


def test_the_blocks_of_the_page_come_from_commands(swept, tmp_path, capsys):
    page, figures = tmp_path / "page.md", tmp_path / "figures"
    names = ("best", "points", "strategies", "by_depth", "by_item", "by_balance")
    page.write_text("".join(f"<!-- {name}:begin -->\n<!-- {name}:end -->\n" for name in names))
    assert main(["figures", str(swept), "--out", str(figures)]) == 0
    assert {file.name for file in figures.iterdir()} == {
        f"overlap_{name}.png" for name in ("strategies", "balance", "items", "depth")
    }
    for name in names:
        arguments = ["readme", str(swept), str(page), "--block", name, "--figures", str(figures)]
        assert main(arguments) == 0 and main([*arguments, "--check"]) == 0
    text = page.read_text()
    assert "| chain: most items per second<br>item 1 MiB" in text and "**Pipeline chain**" in text
    for name in ("strategies", "balance", "items", "depth"):
        assert text.count(f"](figures/overlap_{name}.png)") == 1
    assert "The cost of a kernel grows along with the item" in text


def test_a_block_along_an_axis_wants_two_values_of_it(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("<!-- by_depth:begin -->\n<!-- by_depth:end -->\n")
    directory = made.write(tmp_path / "run", [made.cell(made.params())])
    assert main(["readme", str(directory), str(page), "--block", "by_depth"]) == 2
    assert "holds no strategy with two values of depth" in capsys.readouterr().err


def test_rows_of_another_experiment_are_bad_input(run, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("<!-- strategies:begin -->\n<!-- strategies:end -->\n")
    assert main(["readme", str(run), str(page), "--block", "strategies"]) == 2
    assert "holds rows of feeding only" in capsys.readouterr().err
