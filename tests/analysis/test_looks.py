"""How the report reads: plain words, short links to the evidence, and a shape of every figure for a phone."""

import re
import xml.etree.ElementTree as xml

import pytest
import rows
from conftest import without_pngs
from test_report import with_rows

from analysis import units
from analysis.document import Link, Table, evidence, markdown_table, to_html, without_links
from analysis.load import load
from analysis.feeding.plots import draw_all
from analysis.plots.style import NARROW
from analysis.report import write_report


def texts(page: str) -> str:
    """What a reader sees."""
    body = re.sub(r"<svg.*?</svg>", "", page[page.index("<body>") :], flags=re.DOTALL)
    return re.sub(r"<[^>]*>", "\n", body)


@pytest.mark.parametrize(
    "name, said",
    [
        ("batch*launch_per_second", "launches"),
        ("launch_per_second", "launches"),
        ("batch/copy_launch_copy_ns", "copy, launch, copy, once a batch"),
        ("2*redis_round_trip_ns+copy_launch_copy_ns", "two Redis round trips and a copy, launch, copy"),
        ("2*redis_round_trip_ns+mapped_launch_sync_ns", "two Redis round trips and a launch on mapped memory"),
        (
            "window/2*redis_round_trip_ns+copy_launch_copy_ns",
            "two Redis round trips and a copy, launch, copy, once a window",
        ),
        ("window/word_round_trip_ns", "word round trip, once a window"),
        (
            "launch_sync_ns+bytes/copy_engine_d2h+bytes/copy_engine_h2d",
            "a launch sync and the bytes to the host and the bytes to the device",
        ),
        ("redis_list_push_per_second+redis_list_pop_per_second", "Redis list push and Redis list pop"),
        ("copy_engine_both_bytes_per_second", "copy engine both"),
        ("sm_echo_bytes_per_second", "SM echo"),
        ("", ""),
    ],
)
def test_floors_are_said_in_words(name, said):
    assert units.words(name) == said


def test_no_formula_and_no_code_in_what_is_read(page):
    read = texts(page)
    assert "two Redis round trips and a copy, launch, copy" in read
    assert "`" not in read and not re.search(r"\w[*+/]\w+_", read)


def test_no_hash_and_no_path_above_the_evidence(page, tmp_path):
    above = page[: page.index("<h2>Evidence</h2>")]
    tables = "".join(re.findall(r"<table>.*?</table>", above, re.DOTALL))
    assert not re.search(r"\b[0-9a-f]{16}\b", tables) and "/tmp/" not in tables


def test_evidence_is_a_link_to_the_row(page):
    links = set(re.findall(r'<a href="#(evidence-\d+)">\d+</a>', page))
    anchors = re.findall(r'<span id="(evidence-\d+)">', page)
    assert links and links == set(anchors) and len(anchors) == len(set(anchors))
    below = page[page.index("<h2>Evidence</h2>") :]
    assert len(re.findall(r">[0-9a-f]{16}<", below)) == len(anchors)


def test_a_link_leads_somewhere_in_markdown_too():
    table = Table(["use", "rate", "evidence"], [["ring", "1", Link("1", "evidence-1", "0123\nhere")]], {1})
    heading, told = evidence([table])
    assert "[1](#evidence-1)" in markdown_table(table)
    assert '| <a id="evidence-1"></a>1 | 0123 | here |' in markdown_table(told)
    assert without_links(table) == Table(["use", "rate"], [["ring", "1"]], {1})
    assert evidence([without_links(table)]) == []


def test_every_figure_has_a_shape_for_a_phone(page):
    figures = re.findall(r"<figure .*?</figure>", page, re.DOTALL)
    assert len(figures) == 10
    for figure in figures:
        shapes = re.findall(r'<div class="(?:broad|slim)">(<svg.*?</svg>)', figure, re.DOTALL)
        broad, slim = (float(re.search(r'width="([\d.]+)pt"', shape)[1]) for shape in shapes)
        assert slim < 72 * NARROW * 1.25 < broad, re.search('aria-label="[^"]*', figure)[0]


def test_one_shape_is_shown_at_a_time(page):
    style = page[: page.index("</style>")]
    phone = style[style.index("@media screen and (max-width") :]
    assert ".slim{display:none}" in style[: style.index("@media screen and (max-width")]
    assert ".broad{display:none}" in phone and ".slim{display:block}" in phone
    assert "<script" not in page


def test_panels_stand_below_each_other_on_a_phone(run):
    for drawing in draw_all(load([run]), narrow=True):
        lefts = {round(axes.get_subplotspec().colspan.start) for axes in drawing.figure.axes}
        assert lefts == {0} and drawing.figure.get_size_inches()[0] == NARROW, drawing.name


def test_tables_show_that_they_scroll(page):
    assert page.count('<div class="wide" tabindex="0"><table>') == page.count("<table>")
    rule = re.search(r"\.wide\{.*?\}", page, re.DOTALL)[0]
    assert "overflow-x:auto" in rule and "var(--shade)" in rule and "local" in rule and "scroll}" in rule


def test_the_page_is_well_formed(page):
    xml.fromstring(page[page.index("<body>") : page.index("</html>")])
    ids = re.findall(r' id="([^"]+)"', page)
    clips = [one for one in ids if len(one) == 11 and one.startswith("p")]
    assert len(clips) == len(set(clips)), "the shapes of a figure must not share clip paths"


def test_a_lines_length_decides_its_room():
    page = to_html("t", [Table(["c"], [["short"], ["neither short nor long"], ["x" * 40], ["word " * 20]])])
    kinds = re.findall(r'<td><span class="([^"]+)">', page)
    assert kinds == ["value short", "value plain", "value long", "value prose"]


def drawn_labels(figure) -> list:
    """The boxes of the x axes' labels, an axis a list, as they are drawn."""
    figure.canvas.draw()
    return [
        [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text() and label.get_visible()]
        for axes in figure.axes
    ]


@pytest.mark.parametrize("narrow", [False, True], ids=["desk", "phone"])
def test_labels_do_not_collide(tmp_path, narrow):
    """Tails of a million and more samples need many steps on the percentiles' axis."""
    some = [rows.cell(rows.params(window=window), samples=2_000) for window in (1, 64, 4096)]
    for row in some:
        row["figures"]["latency_ns"]["histogram"]["counts"][0] += 20_000_000
    for drawing in draw_all(load([with_rows(tmp_path, *some)]), narrow):
        if drawing.figure:
            for boxes in drawn_labels(drawing.figure):
                boxes = sorted((box for box in boxes), key=lambda box: box.x0)
                assert all(left.x1 <= right.x0 for left, right in zip(boxes, boxes[1:])), drawing.name


def test_same_rows_give_the_same_report(reported, tmp_path):
    with without_pngs():
        write_report([str(reported)], str(tmp_path / "again"), None)
    assert (tmp_path / "again/report.html").read_bytes() == (reported / "report.html").read_bytes()
