"""The section of `handoff`: who is cheapest, from which size on another way is, what tables and figures hold."""

import re

import handoff_rows as made
import pytest
import rows

from analysis import sections
from analysis.__main__ import main
from analysis.document import Bullets
from analysis.handoff import changes, cheapest, points, several, story, ways
from analysis.handoff.plots import draw_all, styles
from analysis.load import load
from analysis.plots.style import NARROW
from analysis.report import CPU_WARNING
from handoff_rows import KI, MI
from test_report import report

FAST, SLOW, NEAR = (100e3, 101e3, 99e3), (200e3, 202e3, 198e3), (100.5e3, 101e3, 99.5e3)


def results(tmp_path, *groups):
    some = [row for group in groups for row in group]
    return load([made.write(tmp_path / "rows", some)], experiment="handoff")


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A run with all ways of one GPU and of two. Only to be read."""
    return made.write(tmp_path_factory.mktemp("handoff") / "run", made.sweep())


@pytest.fixture(scope="module")
def whole(swept):
    return load([swept], experiment="handoff")


def lines(some, to: str = "same", told: tuple = ()) -> list[dict]:
    found = cheapest.table(some, cheapest.places(some, to), told)
    return [dict(zip(found.columns, row)) for row in found.rows]


def only(tmp_path, *groups) -> dict:
    (line,) = lines(results(tmp_path, *groups))
    return line


def said(some) -> list[str]:
    return changes.sentences(some, cheapest.places(some))


def test_the_rows_are_valid(schema):
    for row in rows.with_runs(made.sweep(1)):
        schema.validate(row)


# --- the cheapest way


def test_the_cheapest_stands_beside_the_next(tmp_path):
    slower = (300e3, 303e3, 297e3)
    line = only(tmp_path, made.cells(SLOW, "shm_copy"), made.cells(FAST, "store"), made.cells(slower, "redis_value"))
    assert (line["use"], line["size"], line["cheapest"], line["runner-up"]) == ("cached", "1 MiB", "store", "shm_copy")
    assert re.fullmatch(r"100 µs \(9\d\.?\d*–10\d\)", line["hand-off"]) and line["its hand-off"].startswith("200 µs (")
    assert line["until start"].startswith("10.0 µs (")
    ratio, _, interval = line["ratio"].partition(" ")
    low, _, high = interval.strip("()").partition("–")
    assert ratio == "2.00" and 1 < float(low) < 2 < float(high)


def test_what_overlaps_is_unclear(tmp_path):
    assert only(tmp_path, made.cells(FAST, "store"), made.cells(NEAR, "ipc_vmm"))["ratio"].endswith("\nunclear")


def test_equal_times_are_unclear_and_keep_the_order_of_the_ways(tmp_path):
    line = only(tmp_path, made.cells(FAST, "store"), made.cells(FAST, "ipc_vmm"))
    assert (line["cheapest"], line["runner-up"]) == ("ipc_vmm", "store")
    assert line["ratio"].startswith("1.00 (") and line["ratio"].endswith("\nunclear")


def test_a_single_repetition_is_unclear(tmp_path):
    some = results(tmp_path, made.cells(FAST[:1], "store"), made.cells(SLOW[:1], "ipc_vmm"))
    (line,) = lines(some)
    assert line["ratio"] == "2.00\nunclear" and line["hand-off"] == "100 µs\none repetition"
    assert said(some)[0].endswith(": No way is told apart from the others at 1 MiB.")


def test_a_way_alone_has_no_runner_up(tmp_path):
    some = results(tmp_path, made.cells(FAST, "store"))
    (line,) = lines(some)
    assert (line["runner-up"], line["its hand-off"], line["ratio"]) == ("nothing else was measured", "—", "—")
    assert said(some)[0].endswith(": Only store was measured at 1 MiB.")


def test_a_row_with_a_wrong_tensor_counts_nowhere(tmp_path):
    wrong = made.cells(FAST, "store")
    for row in wrong:
        row["details"]["verified"]["wrong"] = 1
    assert only(tmp_path, wrong, made.cells(SLOW, "shm_copy"))["cheapest"] == "shm_copy"


def test_an_unstable_time_says_so(tmp_path):
    assert "unstable: 2 times between" in only(tmp_path, made.cells((100e3, 200e3), "store"))["hand-off"]


def test_lines_are_by_use_and_size_at_one_setting(whole):
    told = lines(whole)
    assert [(line["use"], line["size"]) for line in told[:5]] == [
        ("cached", "1 KiB"), ("cached", "64 KiB"), ("cached", "1 MiB"), ("cached", "4 MiB\n4 ways only"),
        ("cached", "64 MiB"),
    ]  # fmt: skip
    assert [line["use"] for line in told] == ["cached"] * 5 + ["first"] * 4
    assert cheapest.where(whole, cheapest.places(whole)) == "All with 1 tensor, 1 reader."
    assert all(place.best["tensors"] == place.best["readers"] == 1 for place in cheapest.places(whole))


def test_the_note_says_what_a_number_of_ways_means(whole, tmp_path):
    assert "names a number of ways" in cheapest.note(whole, cheapest.places(whole))
    some = results(tmp_path, made.cells(FAST, "store"))
    assert "names a number of ways" not in cheapest.note(some, cheapest.places(some))


# --- the sentences


def by_size(way: str, *times, use: str = "cached") -> list[dict]:
    """Rows of a way at growing sizes; None: it was not measured there."""
    sizes = (KI, 64 * KI, MI, 64 * MI)
    return [row for size, some in zip(sizes, times) if some for row in made.cells(some, way, size, use)]


def test_from_which_size_on_another_way_is_cheapest(tmp_path):
    some = results(tmp_path, by_size("shm_pinned", FAST, FAST, SLOW, SLOW), by_size("store", SLOW, SLOW, FAST, FAST))
    (text,) = said(some)
    assert text.startswith(f"{changes.USES['cached']}: shm_pinned is cheapest from 1 KiB to 64 KiB. ")
    assert "store is cheapest from 1 MiB to 64 MiB." in text


def test_what_noise_ranks_otherwise_is_no_change(tmp_path):
    some = results(
        tmp_path, by_size("ipc_vmm", FAST, NEAR, FAST, NEAR), by_size("store", NEAR, FAST, NEAR, FAST),
        by_size("shm_copy", *[SLOW] * 4),
    )  # fmt: skip
    assert {place.best["variant"] for place in cheapest.places(some)} == {"ipc_vmm", "store"}
    assert "ipc_vmm and store are cheapest from 1 KiB to 64 MiB, or not told apart from the cheapest." in said(some)[0]


def test_a_way_that_falls_behind_is_named_no_longer(tmp_path):
    some = results(
        tmp_path, by_size("ipc_vmm", FAST, NEAR, SLOW, SLOW), by_size("store", NEAR, FAST, FAST, FAST),
        by_size("shm_copy", *[SLOW] * 4),
    )  # fmt: skip
    assert "(cached): store is cheapest from 1 KiB to 64 MiB, or not told apart from the cheapest." in said(some)[0]


def test_what_it_costs_to_move_the_bytes(tmp_path):
    some = results(tmp_path, by_size("shm_pinned", FAST, FAST, SLOW, SLOW), by_size("store", *[FAST] * 4))
    assert said(some)[0].endswith(
        "Beside the best way that moves no bytes over the bus, the best that does takes 1.00 times as long at 1 KiB "
        "(shm_pinned) and 2.00 times as long at 64 MiB (shm_pinned)."
    )


def test_each_use_has_its_sentence(tmp_path):
    first = by_size("store", *[SLOW] * 4, use="first")
    some = results(tmp_path, by_size("store", *[FAST] * 4), first)
    assert [text.partition(":")[0] for text in said(some)] == [changes.USES["cached"], changes.USES["first"]]


def test_a_size_where_a_way_was_not_asked_for_is_in_no_sentence(tmp_path):
    """The best way was not measured at 1 MiB; that another one leads there is no change."""
    some = results(tmp_path, by_size("store", FAST, FAST, None, FAST), by_size("shm_pinned", *[SLOW] * 4))
    assert "store is cheapest from 1 KiB to 64 MiB." in said(some)[0]
    assert lines(some)[2]["size"] == "1 MiB\n1 way only" and lines(some)[2]["cheapest"] == "shm_pinned"


def test_a_size_that_a_way_cannot_have_is_in_them(tmp_path):
    none = [made.skipped(made.params("redis_value", 64 * MI), "a value in Redis has at most 512 MiB")]
    some = results(tmp_path, by_size("redis_value", FAST, FAST, FAST, None), none, by_size("store", *[SLOW] * 4))
    assert "redis_value is cheapest from 1 KiB to 1 MiB. Only store was measured at 64 MiB." in said(some)[0]
    assert lines(some)[3]["size"] == "64 MiB"


# --- what each way costs


def ways_lines(some) -> dict[str, dict]:
    table = ways.table(some, ways.found(some))
    return {row[0]: dict(zip(table.columns, row)) for row in table.rows}


def test_each_way_stands_with_its_times_and_what_it_holds(whole):
    told = ways_lines(whole)
    assert list(told) == [way for way in points.ORDER if way != "ipc_memfd"] + ["ipc_memfd"]
    line = told["shm_pinned"]
    assert line["create"].startswith("200 µs (") and line["delete"].startswith("40.0 µs (")
    assert line["first"].startswith("241 µs (") and line["cached"].startswith("191 µs (")
    assert (line["device memory"], line["host memory"]) == ("2 MiB", "1 MiB")
    assert (told["store"]["device memory"], told["store"]["host memory"]) == ("1 MiB", "0 B")
    assert told["ipc_memfd"]["create"] == f"skipped: {made.WHY}" and told["ipc_memfd"]["first"] == "—"
    assert ways.where(whole, ways.found(whole)).startswith("All with 1 MiB, 1 tensor, 1 reader, unless")


def test_ways_stand_at_the_size_that_most_share_nearest_to_1_mib(tmp_path):
    shared = [row for way in ("store", "shm_copy") for size in (KI, 256 * KI) for row in made.cells(FAST, way, size)]
    some = results(tmp_path, shared, made.cells(FAST, "store", MI), made.cells(SLOW, "ipc_vmm", 64 * MI))
    assert ways.usual(ways.found(some)) == 256 * KI
    told = ways_lines(some)
    assert list(told) == ["shm_copy", "ipc_vmm\n64 MiB", "store"] and told["store"]["cached"].startswith("100 µs")


def test_of_two_sizes_as_near_the_larger_stands():
    assert ways.nearest([256 * KI, 4 * MI, KI]) == 4 * MI


def test_a_use_that_was_not_measured_has_no_figure(tmp_path):
    line = ways_lines(results(tmp_path, made.cells(FAST, "store")))["store"]
    assert (line["create"], line["delete"], line["first"]) == ("—",) * 3 and line["cached"].startswith("100 µs")


# --- two GPUs, several tensors and readers, the CPU


def test_two_gpus_have_a_table_of_their_own(whole):
    assert all(place.best["to"] == "same" for place in cheapest.places(whole))
    told = lines(whole, "other", ("reach",))
    assert [line["size"] for line in told] == ["1 KiB", "64 KiB", "1 MiB", "64 MiB"]
    assert told[-1]["cheapest"] == "ipc_vmm\nread in place" and told[-1]["runner-up"] == "ipc_vmm\ncopied first"


def test_without_a_second_gpu_there_is_no_such_table(tmp_path, undrawn):
    text = report(made.write(tmp_path / "run", made.sweep(2, two_gpus=False)))
    assert story.TWO_GPUS not in text and "this machine has no second GPU" in text


def test_what_moves_of_several_tensors_and_to_several_readers(whole):
    found = several.found(whole)
    axes = [(steps.axis, steps.use) for steps in found]
    assert axes == [("tensors", "cached"), ("tensors", "first"), ("readers", "cached")]
    assert several.where(whole, found[0]) == "1 MiB, use cached, 1 reader"
    table = several.table(whole, found[2])
    assert table.columns == ["way", "1 reader", "2 readers", "4 readers"]
    assert [row[0] for row in table.rows] == ["redis_value", "shm_pinned", "ipc_vmm", "store"]
    rate, time = table.rows[3][3].split("\n")
    assert rate.startswith("104 GB/s (") and time.startswith("161 µs (")


def test_one_number_is_no_axis(tmp_path):
    some = results(tmp_path, made.cells(FAST, "store"), made.cells(FAST, "shm_copy", tensors=4))
    assert several.found(some) == []


def test_the_cpu_does_not_compete_with_a_gpu(tmp_path):
    some = results(tmp_path, made.cells(SLOW, "store"), made.cells(FAST, "ipc_memfd", device="cpu"))
    (line,) = lines(some)
    assert (line["cheapest"], line["runner-up"]) == ("store", "nothing else was measured")


def test_rows_of_the_cpu_are_marked(tmp_path, undrawn):
    some = [made.cells(FAST, way, size, device="cpu") for way in ("store", "shm_copy") for size in (KI, MI)]
    directory = made.write(tmp_path / "run", [row for point in some for row in point])
    text = report(directory)
    assert text.index(CPU_WARNING) < text.index("100 µs") and "over the bus" not in text
    for drawing in draw_all(load([directory], experiment="handoff")):
        assert CPU_WARNING.rstrip(".") in drawing.figure.get_suptitle()
    page = tmp_path / "page.md"
    page.write_text("<!-- cheapest:begin -->\n<!-- cheapest:end -->\n")
    assert main(["readme", str(directory), str(page), "--block", "cheapest"]) == 0
    assert page.read_text().splitlines()[1] == f"**{CPU_WARNING}**"


# --- figures


@pytest.mark.parametrize("narrow", [False, True], ids=["desk", "phone"])
def test_the_figures(whole, narrow):
    drawn = {one.name: one for one in draw_all(whole, narrow)}
    panels = {name: len(one.figure.axes) for name, one in drawn.items()}
    assert panels == {"handoff_by_size": 2, "handoff_start": 2, "handoff_several": 3}
    for one in drawn.values():
        assert one.caption and (one.figure.get_size_inches()[0] == NARROW) == narrow
        one.figure.canvas.draw()
        for axes in one.figure.axes:
            boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
            boxes = sorted(boxes, key=lambda box: box.x0)
            assert all(left.x1 <= right.x0 for left, right in zip(boxes, boxes[1:])), one.name
            assert axes.get_yscale() == axes.get_xscale() == "log"


def test_a_line_a_way_and_a_line_a_floor(whole):
    cached = draw_all(whole)[0].figure.axes[0]
    names = cached.get_legend_handles_labels()[1]
    assert names[:7] == [way for way in points.ORDER if way != "ipc_memfd"]
    floors = ["floor: launch sync", "floor: a launch sync and the bytes to the host and the bytes to the device"]
    assert [" ".join(name.split()) for name in names[7:]] == floors
    line = next(line for line in cached.get_lines() if line.get_label() == names[7])
    assert set(line.get_ydata()) == {made.LAUNCH}


def test_one_size_is_no_figure_by_size(tmp_path):
    assert draw_all(results(tmp_path, made.cells(FAST, "store"), made.cells(SLOW, "shm_copy"))) == []


def test_every_way_has_a_look_of_its_own():
    """That looks differ, and what they become on a dark screen: test_new_figures.py."""
    assert set(styles.LOOKS) == set(points.ORDER) and styles.look("torch") == styles.OTHER


# --- the report, its blocks in pages, other commands


def test_the_report_has_sentences_tables_and_figures(swept, undrawn):
    text = report(swept)
    order = ["The answer", "What was measured", story.WAYS, story.TWO_GPUS, story.SEVERAL, "Hand-off by size",
             "Time until the kernel could start", "Bytes a second by the number", "Every point"]  # fmt: skip
    places = [text.index(f"## {heading}") for heading in order]
    assert places == sorted(places)
    assert "× launch sync" in text and not re.search(r"\w[*+/]\w+_", text)


def test_nothing_ok_is_still_a_report(tmp_path, undrawn):
    text = report(made.write(tmp_path / "run", [made.skipped(made.params(), "no such GPU")]))
    assert "no such GPU" in text and "## The answer" not in text and f"## {story.WAYS}" not in text


def test_a_catalogue_that_lacks_the_experiment_tells_no_figures(tmp_path, undrawn):
    text = report(rows.write(tmp_path / "run", made.sweep(1), made.catalogue() | {"experiments": []}))
    assert " ok, 0 invalid" in text and "## The answer" not in text


def test_the_blocks_of_the_page_come_from_commands(swept, tmp_path):
    page, figures = tmp_path / "page.md", tmp_path / "figures"
    names = ("best", "points", "cheapest", "ways", "two_gpus", "several")
    page.write_text("".join(f"<!-- {name}:begin -->\n<!-- {name}:end -->\n" for name in names))
    assert main(["figures", str(swept), "--out", str(figures)]) == 0
    drawn = ("by_size", "start", "several")
    assert {file.name for file in figures.iterdir()} == {f"handoff_{name}.png" for name in drawn}
    for name in names:
        arguments = ["readme", str(swept), str(page), "--block", name, "--figures", str(figures)]
        assert main(arguments) == 0 and main([*arguments, "--check"]) == 0
    text = page.read_text()
    assert "- Tensors that the readers have had before (cached): " in text and "| cached | 1 KiB | " in text
    assert "| ipc_vmm<br>read in place |" in text and "| way | 1 tensor | 4 tensors | 16 tensors |" in text
    for name in drawn:
        assert text.count(f"](figures/handoff_{name}.png)") == 1


@pytest.mark.parametrize(
    "block, lacks",
    [("two_gpus", "holds no row of handoff to another GPU that counts"),
     ("several", "holds no way with two numbers of tensors or readers")],
)  # fmt: skip
def test_a_block_wants_rows_of_its_kind(tmp_path, capsys, block, lacks):
    page = tmp_path / "page.md"
    page.write_text(f"<!-- {block}:begin -->\n<!-- {block}:end -->\n")
    directory = made.write(tmp_path / "run", made.cells(FAST, "store"))
    assert main(["readme", str(directory), str(page), "--block", block]) == 2
    assert lacks in capsys.readouterr().err


def test_rows_of_another_experiment_are_bad_input(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("<!-- ways:begin -->\n<!-- ways:end -->\n")
    directory = rows.write(tmp_path / "run", [rows.cell(rows.params(), samples=50)])
    assert main(["readme", str(directory), str(page), "--block", "ways"]) == 2
    assert "holds rows of feeding only; allowed: rows of handoff" in capsys.readouterr().err


def test_the_answer_begins_with_the_sentences(whole):
    heading, bullets, *_ = sections.of("handoff").answer(whole)
    assert heading.text == "The answer" and bullets == Bullets(said(whole))
    assert len(bullets.items) == 2 and "shm_pinned is cheapest from 1 KiB to 64 KiB" in bullets.items[0]
