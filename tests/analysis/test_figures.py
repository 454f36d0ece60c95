"""Checks of every figure of each experiment: it is drawn in both shapes, its labels do not collide, its colours have a
counterpart in dark mode, and it shows the data of its rows."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from collections import Counter

import kernels_rows
import matplotlib
import numpy as np
import other_rows
import pytest
import rows
import storage_rows
from conftest import ROOT, committed, main
from matplotlib.colors import to_hex

from analysis import dark, figures, sections
from analysis.feeding.plots import capacities, draw_all, heatmap, load_stages, offered, percentiles, prices, timeouts, transfers
from analysis.feeding.plots.stages import LOOKS
from analysis.feeding.plots.styles import Styles
from analysis.feeding.ring import plots as ring
from analysis.handoff.plots import styles as handoff_styles
from analysis.histogram import Histogram
from analysis.kernels.plots import styles as kernels_styles
from analysis.overlap.plots import styles as overlap_styles
from analysis.overlap.plots.styles import LEAST
from analysis.plots.style import NARROW, figure_style
from analysis.stats import points
from analysis.storage.plots import styles as storage_styles

COLOUR = re.compile(r"\b(fill|stroke)(: |=\")(#[0-9A-Fa-f]{6})\b")
SCREEN = "@media screen and (prefers-color-scheme:dark){"
# Colours that need no contrast with the background: the background itself, the grid, and numbers on heat-map cells.
SURFACES = {"#FFFFFF", "#333333", "#DDDDDD", heatmap.ON_BRIGHT, heatmap.ON_DIM}


def luminance(colour: str) -> float:
    """Relative luminance as defined by WCAG 2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def check(drawing, narrow: bool, svg: str = "") -> None:
    """Runs the checks that apply to every figure."""
    assert (drawing.box.width < NARROW * 1.25) == narrow, drawing.name
    for axes in drawing.figure.axes:
        boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text() and label.get_visible()]
        boxes = sorted(boxes, key=lambda box: box.x0)
        assert all(left.x1 <= right.x0 for left, right in zip(boxes, boxes[1:])), f"labels of {drawing.name} collide"
    colours = {colour.upper() for _, _, colour in COLOUR.findall(svg)}
    assert not svg or len(colours) > 2 and colours <= dark.FIGURES.keys(), drawing.name


def one(figure, folder: str):
    return lambda narrow: [figure.draw(results := committed(folder), Styles(results.cells, narrow))]


def every(folder: str):
    return lambda narrow: sections.of(folder).draw(committed(f"h200/{folder}", folder), narrow)


@pytest.mark.parametrize("draw, panels", [
    (one(transfers, "h100/transfers"), {"transfers": 1}), (one(timeouts, "h100/transfers"), {"batch_timeout": 3}),
    (one(prices, "h100/guarantees"), {"prices": 3}),
    (every("overlap"), {"overlap_strategies": 3, "overlap_balance": 1, "overlap_items": 2, "overlap_depth": 1}),
    (every("handoff"), {"handoff_by_size": 2, "handoff_start": 2, "handoff_several": 3}),
], ids=["transfers", "timeouts", "prices", "overlap", "handoff"])  # fmt: skip
def test_figures_of_committed_rows_are_drawn(draw, panels):
    with figure_style():
        found = draw(True)  # the other shape differs only in the arrangement of its panels
    assert {drawing.name: len(drawing.figure.axes) for drawing in found} == panels
    for drawing in found:
        check(drawing, True, figures._svg(drawing, "slim"))


@pytest.mark.parametrize("narrow", [True, False])
def test_figures_of_storage_are_drawn(read, narrow):
    shapes = [{}, {"block_bytes": 4 << 20}, storage_rows.DIRECT, storage_rows.RANDOM, {"operation": "write"}]
    some = [storage_rows.repeated(engine, **shape) for shape in shapes for engine in ("pread", "io_uring")]
    some += [[storage_rows.storage("pread", n, arrivals="poisson", rate=rate, samples=20_000) for n in range(3)] for rate in (1e9, 2e9)]
    results = read(*some, experiment="storage", catalogue=storage_rows.CATALOGUE)
    found = sections.of("storage").draw(results, narrow)
    panels = {drawing.name: len(drawing.figure.axes) for drawing in found}
    assert panels == {"storage_by_block": 4, "storage_cpu": 4, "storage_load": 1}
    for drawing in found if narrow else found[2:]:
        check(drawing, narrow, figures._svg(drawing, "slim"))
    bandwidth, cost, load = found
    direct, random = (by_title(bandwidth, title) for title in ("O_DIRECT", "random"))
    fio = [line for line in direct.lines if line.get_label() == "limit: fio"]
    assert [list(line.get_ydata()) for line in fio] == [[6e9]] and "limit: fio" in random.get_legend_handles_labels()[1]
    assert "limit: fio" not in by_title(bandwidth, "warm").get_legend_handles_labels()[1]
    marks = [line for line in by_title(cost, "O_DIRECT").lines if line.get_label() == "io_uring"]
    assert [line.get_xdata()[0] for line in marks] == pytest.approx([0.2], rel=0.01)
    (panel,) = load.figure.axes
    p50 = next(line for line in panel.lines if line.get_linestyle() == "-")
    assert list(p50.get_xdata()) == [954, 1907] and {line.get_linestyle() for line in panel.lines} >= {"-", "--", ":"}


@pytest.mark.parametrize("narrow", [True, False])
def test_figures_of_kernels_are_drawn(read, narrow):
    fp32 = {"dtype": "fp32", "layout": "nn"}
    some = [*kernels_rows.ladder(), *kernels_rows.errors(), kernels_rows.repeated("naive", rate=5e11, **fp32),
            kernels_rows.repeated("coalesced", rate=4e12, **fp32)]  # fmt: skip
    results = read(*some, experiment="kernels", catalogue=kernels_rows.CATALOGUE)
    found = sections.of("kernels").draw(results, narrow)
    panels = {drawing.name: len(drawing.figure.axes) for drawing in found}
    assert panels == {"kernels_by_rung": 2, "kernels_roofline": 2, "kernels_error": 1}
    for drawing in found:
        check(drawing, narrow, figures._svg(drawing, "slim"))
    by_rung, roofline, error = found
    bars = [bar.get_height() for bar in by_title(by_rung, "bf16").patches]
    assert bars == pytest.approx([400e12, 600e12, 720e12], rel=0.01)
    lines = {line.get_label(): line.get_ydata()[0] for line in by_title(by_rung, "bf16").lines}
    assert lines["cublas"] == pytest.approx(667e12) and lines["limit"] == pytest.approx(800e12)
    assert not {"cublas", "cublaslt"} & set(by_title(by_rung, "fp32").get_legend_handles_labels()[1])
    roofs = [line for line in by_title(roofline, "bf16").lines if line.get_label() == "limit"]
    (flat,), (sloped, cache) = ([line for line in roofs if (len(set(line.get_ydata())) == 1) == level] for level in (True, False))
    assert flat.get_ydata()[0] == 800e12 and sloped.get_xdata()[1] == pytest.approx(200)  # the ridge
    assert cache.get_xdata()[1] == flat.get_xdata()[0] == pytest.approx(160) and cache.get_ydata()[1] == 800e12
    texts = {text.get_text() for text in by_title(roofline, "bf16").texts}
    assert texts == {"tensor bf16", "DRAM copy", "L2 read", "8", "11", "13"}
    curves = {line.get_label(): list(line.get_ydata()) for line in error.figure.axes[0].lines}
    assert curves["warp_tensor"] == pytest.approx([1e-3, 4e-3, 16e-3]) and curves["tma_store"] == pytest.approx([1e-3] * 3)


def by_title(drawing, word: str):
    """The first panel with the word in its title."""
    return next(axes for axes in drawing.figure.axes if word in axes.get_title(loc="left").replace("\n", " "))


def test_figures_of_the_ring_are_drawn():
    drawn = ring.draw_all(committed("h200/ring"))
    assert [drawing.name for drawing in drawn] == list(ring.NAMES)
    for drawing in drawn:
        check(drawing, False)  # always PNGs, which have only light colours


def test_figures_of_a_report_have_both_shapes(full_report):
    svgs = re.findall(r'<div class="(broad|slim)">(<svg.*?</svg>)', full_report.html, re.DOTALL)
    assert [shape for shape, _ in svgs] == ["broad", "slim"] * 10
    for narrow, some in zip((False, True), np.array_split(np.array(full_report.drawings, dtype=object), 2)):
        for drawing in (drawing for drawing in some if drawing.figure):
            check(drawing, narrow, full_report.html)
            if narrow:  # panels are stacked vertically
                assert {axes.get_subplotspec().colspan.start for axes in drawing.figure.axes} == {0}
    # The fixture replaces the other PNGs by b"".
    assert {file.name for file in full_report.directory.glob("*.png")} == {"headline.png"}
    image = matplotlib.image.imread(full_report.directory / "headline.png")
    assert image.shape[1] > 1000 and (image[0, 0, :3] == 1).all(), "paper is white"


# --- dark mode


def dark_rules(page: str) -> str:
    """The rules inside the media query for dark mode."""
    begin, depth = page.index(SCREEN) + len(SCREEN), 1
    for place in range(begin, len(page)):
        depth += {"{": 1, "}": -1}.get(page[place], 0)
        if depth == 0:
            return page[begin:place]
    raise AssertionError("the media query has no end")


def test_dark_mode_replaces_every_colour_of_a_report(full_report):
    rules = dark_rules(full_report.html)
    drawn = "".join(re.findall(r"<figure .*?</figure>", full_report.html, re.DOTALL))
    assert len(set(COLOUR.findall(drawn))) > 15
    for what, how, colour in set(COLOUR.findall(drawn)):
        becomes = dark.FIGURES[colour.upper()]
        selector = f'[style*="{what}: {colour}"]' if how == ": " else f'[{what}="{colour}"]'
        # The selector must have no ancestor, because it would then not match the copies made by <use>.
        rule = rf"^([^{{}} ]+,)?{re.escape(selector)}[^{{}}]*\{{{what}:{becomes}!important\}}"
        assert becomes == colour.upper() or re.search(rule, rules, re.MULTILINE), f"{what} {colour} is not replaced"
    rest = COLOUR.sub("", re.sub(r'href="#[^"]*"|url\(#[^)]*\)', "", drawn))
    assert not re.search(r'#[0-9A-Fa-f]{6}\b|rgba?\(|currentColor|(fill|stroke): (?!none|url|#)[a-z]+[;"]', rest)
    text = re.findall(r'<g id="text_\d+">.*?<(?:g|use)\b([^>]*)>', drawn, re.DOTALL)
    assert sum("fill" not in attributes for attributes in text) > 50 and f"figure svg{{fill:{dark.TEXT}}}" in rules


def test_dark_colours_are_distinguishable():
    data = [dark.FIGURES[light] for light in dark.FIGURES.keys() - SURFACES]
    assert len(data) == len(set(data)) and all(contrast(colour, dark.PAPER) >= 3 for colour in data)
    assert all(contrast(dark.FIGURES[fill], dark.FIGURES["#333333"]) >= 3 for fill, _ in LOOKS.values())
    for share in np.linspace(0, 1, 101):  # the numbers of a heat map, in every cell
        ink = heatmap.ink(share)
        assert dark.FIGURES[ink] == ink and contrast(ink, to_hex(matplotlib.colormaps["cividis"](share))) >= 3
    for colour, ink in [*transfers.COLOURS.values(), transfers.OTHER]:  # the text of a cell
        assert dark.FIGURES[ink] == ink and contrast(ink, colour) >= 3 and contrast(ink, dark.FIGURES[colour]) >= 3
    for styles in (overlap_styles, handoff_styles, storage_styles):
        looks_of = [*styles.STYLES.values(), styles.OTHER]
        assert len({dark.FIGURES[colour] for colour, _ in looks_of}) == len({marker for _, marker in looks_of}) == len(looks_of)
    libraries = [colour for colour, *_ in kernels_styles.LIBRARIES]
    for colours in ([*libraries, kernels_styles.RUNG], kernels_styles.LINES):
        assert len({dark.FIGURES[colour] for colour in colours}) == len(colours)


def test_page_is_readable_in_both_modes_and_light_on_paper(full_report):
    head, rules = full_report.html[: full_report.html.index("</style>")], dark_rules(full_report.html)
    names = r"--(\w+):(#[0-9A-Fa-f]{3,6})\b"
    night, day = dict(re.findall(names, rules)), dict(re.findall(names, head[: head.index(SCREEN)]))
    assert night.keys() == day.keys() and set(re.findall(r"var\(--(\w+)\)", full_report.html)) == day.keys()
    for colours in (day, night):
        colours = {name: to_hex(value) for name, value in colours.items()}
        for text in ("text", "soft", "softer"):
            assert all(contrast(colours[text], colours[paper]) >= 4.5 for paper in ("paper", "head"))
        assert all(contrast(colours["text"], colours[paper]) >= 7 for paper in ("warned", "missing"))
    assert head.count("prefers-color-scheme") == 1, "the dark rules must only apply to screens"
    rest = head.replace(rules, "").upper()
    changed = {becomes for light, becomes in dark.FIGURES.items() if becomes != light}
    assert not any(colour in rest for colour in changed - {"#FFFFFF"}) and "COLOR-SCHEME:LIGHT" in rest


def test_page_is_well_formed_and_self_contained(full_report):
    xml.fromstring(full_report.html[full_report.html.index("<body>") : full_report.html.index("</html>")])
    assert not re.search(r'(src|href)="(?!#|data:)', re.sub(r"xmlns(:\w+)?=\"[^\"]*\"", "", full_report.html))
    assert "@import" not in full_report.html and "url(http" not in full_report.html and "<script" not in full_report.html
    clips = re.findall(r'<clipPath id="([^"]+)"', full_report.html)
    assert len(clips) == len(set(clips)), "the shapes of a figure must not share clip paths"
    phone = full_report.html[full_report.html.index("@media screen and (max-width") : full_report.html.index("</style>")]
    assert ".broad{display:none}" in phone and ".slim{display:block}" in phone and ".slim{display:none}" in full_report.html
    assert full_report.html.count('<div class="wide" tabindex="0"><table>') == full_report.html.count("<table>")


# --- the content of figures


def drawn(results, figure):
    return figure.draw(results, Styles(results.cells)).figure


def closed(results) -> dict:
    return {drawing.name: drawing for drawing in draw_all(results)}


def holds(axes, *ends: tuple) -> bool:
    """Whether a line or whisker has these ends, up to rounding."""
    found = [segment for group in axes.collections for segment in getattr(group, "get_segments", list)()]
    found += [list(zip(*line.get_data())) for line in axes.lines]
    return any(np.shape(line) == np.shape(ends) and np.allclose(line, ends) for line in found)


def test_closed_load_figures_show_intervals_bounds_and_unstable_points(read):
    some = rows.repeated(rates=(1e6, 3e6), window=1, p50=(1e4, 1.2e4), p99=(2e4, 4e4))
    some += rows.limited(rows.repeated(rates=(4e6, 4e6), payload_bytes=1024))
    some += rows.repeated(rates=(1e6, 3e6), window=16, p99=(2e4, 4e4))
    for row, factor in zip(some, (1, 3)):
        row["details"]["stages_ns"] = {name: {"mean": 1000 * factor, "p50": 1, "p99": 1} for name in ("sent", "collected")}
    some += [row for block in (64, 256) for streams in (1, 2)
             for row in rows.repeated(rates=(1e6, 2e6 if (block, streams) == (64, 2) else 1e6), block=block, streams=streams)]
    results = read(some)
    figures_of, point = closed(results), points(results).set_index("window").loc[1]
    left, right = figures_of["headline"].figure.axes
    for axes, metric in ((right, "p50"), (right, "p99")):
        assert holds(axes, (point[f"{metric}_low"], 0), (point[f"{metric}_high"], 0))
    texts = [text.get_text() for name in ("headline", "throughput") for axes in figures_of[name].figure.axes for text in axes.texts]
    assert any(text.startswith("≥") for text in texts) and "the limit was the load generator" in figures_of["headline"].caption
    deep = points(results).set_index("window").loc[16]
    assert holds(figures_of["latency_window"].figure.axes[2], (2e6, deep["p99_low"]), (2e6, deep["p99_high"]))
    assert [text.get_text() for text in figures_of["stages"].figure.axes[0].texts] == ["4.00 µs\n(2.00–6.00)"]
    cells = [text.get_text() for text in figures_of["block_streams"].figure.axes[0].texts]
    assert sum("unstable" in text for text in cells) == 1 and "1.50 M\nunstable" in cells
    assert "the shade spans" in figures_of["latency_distribution"].caption


def test_figure_without_data_states_what_is_missing(read):
    row = rows.cell(rows.params())
    del row["details"]["stages_ns"]
    found = closed(read(row))
    assert {name for name, drawing in found.items() if drawing.figure} == {"headline", "latency_distribution"}
    missing = " ".join(drawing.missing for drawing in found.values())
    for lacking in ("only one payload size", "only one window", "two or more block sizes", "stage times", "window 1"):
        assert lacking in missing
    row = rows.load_cell(rows.load_params())
    del row["details"]["stages_ns"]
    results = read(row, name="open")
    assert load_stages.draw(results, Styles(results.cells)) is None
    lanes = [rows.cell(rows.params("gpu_ring", block=block, lanes=lanes)) for block in (64, 128) for lanes in (1, 8)]
    assert closed(read(lanes, name="lanes"))["block_streams"].figure  # the ring's heat map shows its lanes


def test_open_load_figures_show_unsustained_rates_and_late_generators(read):
    results = read(rows.load_sweep(), [rows.late(rows.load_params(rate=1000), n) for n in range(2)])
    axes = drawn(results, offered).axes[0]
    marked = [line for line in axes.lines if line.get_marker() not in ("None", "x")]
    hollow = {round(x) for line in marked if line.get_markerfacecolor() == "white" for x in line.get_xdata()}
    assert hollow == {1_001_000, 10_010_000}  # the first of redis_list, the second of host_polled and redis_list
    upright = {line.get_xdata()[0] for line in axes.lines if list(line.get_ydata()) == [0, 1]}
    assert upright == {4e5, 5e6}  # their maximum rates
    assert sum(len(line.get_xdata()) for line in axes.lines if line.get_marker() == "x") == 1
    assert "(2 of 38 rows)" in offered.draw(results, Styles(results.cells)).caption
    axes = drawn(results, percentiles).axes[0]
    assert "redis_list + pinned, n = 3.00 k" in [text.get_text() for text in axes.get_legend().get_texts()]
    dashed, solid = ([line for line in axes.lines if line.get_linestyle() == style] for style in ("--", "-"))
    ends = [(below.get_ydata()[-1], above.get_ydata()[-1]) for below, above in zip(dashed, solid)]
    assert len(dashed) == len(solid) == 3 and all(below <= above for below, above in ends)
    lengths = Counter()
    for bar in drawn(results, load_stages).axes[0].patches:
        lengths[bar.get_y()] += bar.get_width()
    assert list(lengths.values()) == pytest.approx([100] * 3)  # the stages of a queue add up to 100 %


@pytest.mark.parametrize("samples, last", [(5, None), (1000, 100), (99_990, 9999), (1_000_000, 1e4)])
def test_percentile_curve_ends_ten_samples_before_the_maximum(samples, last):
    values = np.random.default_rng(1).integers(1000, 1_000_000, samples)
    histogram = Histogram.from_row(rows.histogram(values))
    x, y = percentiles.supported(histogram)
    if last is None:
        assert len(x) == 0
    else:
        assert x[-1] == last and y[-1] == histogram.percentile(100 * (1 - 1 / last)) and (np.diff(x) >= 0).all()


def test_capacity_figure_has_a_bar_for_each_search(read):
    some = [rows.capacity(rows.load_params("gpu_ring"), *ends, repetition=n) for n, ends in enumerate(((1000, 1200), (1100, 1300)))]
    results = read(rows.load_cell(rows.load_params("gpu_ring")), some)
    with figure_style():
        drawing = capacities.draw(results, Styles(results.cells))
    assert figures._svg(drawing, "") == figures._svg(drawing, "") != figures._svg(drawing, "slim")
    (axes,) = drawing.figure.axes
    assert sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches) == [(1000, 1200), (1100, 1300)]
    assert [text.get_text() for text in axes.texts] == ["1.00 k"]
    assert not any(bar.get_hatch() for bar in axes.patches)
    some[1]["capacity"]["undecided"] = True
    with figure_style():
        (axes,) = capacities.draw(read(rows.load_cell(rows.load_params("gpu_ring")), some, name="open"), Styles(results.cells)).figure.axes
    assert [bool(bar.get_hatch()) for bar in axes.patches] == [False, True]


def test_overlap_figure_clips_large_losses_and_marks_the_cpu_device(read):
    draw = sections.of("overlap").draw
    some = [other_rows.overlap("serial", device="cpu"), other_rows.overlap(overlap_efficiency=-30.0, device="cpu")]
    figure = draw(read(some, experiment="overlap"))[0].figure
    assert figure.axes[0].get_xlim()[0] >= LEAST - 0.2 and "-30.00" in [text.get_text() for text in figure.axes[0].texts]
    assert figure.get_suptitle() == "CPU device: these are not GPU results"


def test_compare_writes_a_png(folder, tmp_path):
    sides = [folder([rows.cell(rows.params(window=window), n, speed=speed) for window in (1, 64) for n in (0, 1)], name=name)
             for name, speed in (("a", 1.0), ("b", 1.3))]
    assert main(["compare", *map(str, sides), "--out", str(tmp_path)]) == 0
    assert (tmp_path / "compare.png").read_bytes().startswith(b"\x89PNG") and (tmp_path / "compare.png").stat().st_size > 10_000
    assert "](compare.png)" in (tmp_path / "compare.md").read_text()


def test_figures_command_writes_pngs_and_headline(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "_png", lambda drawing: b"a picture")
    directory = folder([rows.cell(rows.params(window=window)) for window in (1, 64)])
    assert main(["figures", str(directory), "--out", str(tmp_path / "out")]) == 0
    assert {"headline.md", "headline.png", "headline.svg", "latency_window.png"} <= {file.name for file in (tmp_path / "out").iterdir()}
    assert "| host_polled + pinned |" in (tmp_path / "out/headline.md").read_text()
    svg = (tmp_path / "out/headline.svg").read_text()
    assert "prefers-color-scheme:dark" in svg and re.search("<text[^>]*>host_polled \\+ pinned</text>", svg)
    (page := tmp_path / "page.md").write_text("<!-- figures:begin -->\n<!-- figures:end -->\n")
    assert main(["readme", str(directory), str(page), "--figures", str(tmp_path / "out")]) == 0
    assert "](out/headline.png)" in page.read_text() and "| host_polled + pinned |" in page.read_text()
    written = page.read_text()
    page.write_text(written.replace("| host_polled + pinned |", "| outdated |"))
    assert main(["readme", str(directory), str(page)]) == 0
    assert page.read_text() == written, "the pictures that the block shows are kept without --figures"


def front(directory, page) -> str:
    page.write_text("<!-- front:begin -->\n<!-- front:end -->\n")
    assert main(["readme", str(directory), str(page), "--block", "front"]) == 0
    return page.read_text()


def test_front_table_shows_delivering_variants_fastest_first(folder, tmp_path):
    some = [*rows.repeated("null", rates=(9e9, 9e9)), *rows.repeated("host_polled", rates=(1e6, 2e6), window=64),
            *rows.repeated("gpu_ring", transfer="none", rates=(5e6, 5e6), window=64),
            *rows.repeated("gpu_ring", transfer="none", rates=(1e5, 1e5), p50=2e3, window=1)]
    lines = [line.split("|")[1:-1] for line in front(folder(some), tmp_path / "page.md").splitlines() if line.startswith("|")]
    table = [[cell.strip() for cell in line] for line in lines[2:]]
    assert [(line[0], line[1]) for line in table] == [("gpu_ring", "2"), ("host_polled + pinned", "2")]
    assert table[0][4].startswith("2.00 µs") and table[1][4] == "—"  # no lone message was measured
    assert table[1][2].endswith(", unstable") and not table[0][2].endswith(", unstable")


def test_front_table_and_svg_need_a_row_that_counts(folder, tmp_path, capsys):
    directory = folder([rows.not_ok(rows.params(), "failed", "because")])
    (page := tmp_path / "page.md").write_text("<!-- front:begin -->\n<!-- front:end -->\n")
    assert main(["readme", str(directory), str(page), "--block", "front"]) == 2
    assert "has no row of feeding that counts" in capsys.readouterr().err
    assert main(["figures", str(directory), "--out", str(tmp_path / "out")]) == 0
    assert not (tmp_path / "out/headline.svg").exists()


DRAW = """
from analysis import figures
from analysis.plots.style import Drawing, figure_style, new_figure
with figure_style():
    figure, (axes,) = new_figure(4, 3)
    axes.plot([1, 1000], [1, 10], label="a_b")
    axes.set_xscale("log")
    axes.legend()
svg = figures.render([Drawing("one", "a", "b", figure)], shape="wide")[0].svg
"""


def test_user_settings_of_matplotlib_do_not_change_figures(tmp_path):
    (settings := tmp_path / "matplotlibrc").write_text("text.usetex: True\nfont.size: 30\nbackend: tkagg\n")
    changed = os.environ | {"MATPLOTLIBRC": str(settings), "MPLBACKEND": "module://a_notebooks_own.backend"}
    words = [sys.executable, "-c", f"{DRAW}\nprint(svg)"]
    ran = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=changed)
    assert ran.returncode == 0, ran.stderr
    exec(DRAW, here := {})  # in this process, which has the default settings
    assert "<svg" in here["svg"] and ran.stdout.strip() == here["svg"].strip()
