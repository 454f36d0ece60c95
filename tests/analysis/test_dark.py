"""The report on a dark screen: every colour of a figure is exchanged, what comes out can be read, and paper stays white."""

import re

import matplotlib
import pytest
from conftest import ROOT

from analysis import dark
from analysis.feeding.plots import heatmap
from analysis.feeding.plots.stages import LOOKS

COLOUR = r"#[0-9A-Fa-f]{6}\b"
# Not told apart from the paper: the paper itself and the grid. The heat map's numbers lie on its own cells.
SURFACES = {"#FFFFFF", "#333333", "#DDDDDD", heatmap.ON_BRIGHT, heatmap.ON_DIM}
SCREEN = "@media screen and (prefers-color-scheme:dark){"


def luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.fixture(scope="module")
def figures(page) -> str:
    drawn = re.findall(r"<figure .*?</figure>", page, re.DOTALL)
    assert len(drawn) == 10
    return "".join(drawn)


def dark_rules(page: str) -> str:
    """What stands inside the media query of dark screens."""
    begin, depth = page.index(SCREEN) + len(SCREEN), 1
    for place in range(begin, len(page)):
        depth += {"{": 1, "}": -1}.get(page[place], 0)
        if depth == 0:
            return page[begin:place]
    raise AssertionError("the media query has no end")


def test_every_colour_of_the_figures_is_known():
    """Of all that could be drawn; the comparison is only ever a PNG."""
    for file in (ROOT / "analysis/plots").glob("*.py"):
        if file.name != "comparison.py":
            for colour in re.findall(COLOUR, file.read_text()):
                assert colour.upper() in dark.FIGURES, f"{file.name}: say in dark.py what {colour} becomes"


def test_every_colour_drawn_is_exchanged(page, figures):
    rules = dark_rules(page)
    drawn = set(re.findall(rf"\b(fill|stroke)(: |=\")({COLOUR})", figures))
    assert len(drawn) > 15
    for what, how, colour in drawn:
        becomes = dark.FIGURES[colour.upper()]
        selector = f'[style*="{what}: {colour}"]' if how == ": " else f'[{what}="{colour}"]'
        # From the line's start or a comma: with an ancestor before it, it would not match in what <use> copies.
        rule = rf"^([^{{}} ]+,)?{re.escape(selector)}[^{{}}]*\{{{what}:{becomes}!important\}}"
        assert becomes == colour.upper() or re.search(rule, rules, re.MULTILINE), f"{what} {colour} stays as it is"


def test_no_colour_hides_in_another_way_of_writing(figures):
    plain = re.sub(r'href="#[^"]*"|url\(#[^)]*\)', "", figures)
    plain = re.sub(rf"\b(fill|stroke)(: |=\"){COLOUR}", "", plain)
    assert not re.search(rf"{COLOUR}|rgba?\(|currentColor|(fill|stroke): (?!none|url|#)[a-z]+[;\"]", plain)


def test_text_without_a_colour_takes_the_dark_one(page, figures):
    text = re.findall(r'<g id="text_\d+">.*?<(?:g|use)\b([^>]*)>', figures, re.DOTALL)
    assert sum("fill" not in attributes for attributes in text) > 50
    assert f"figure svg{{fill:{dark.TEXT}}}" in dark_rules(page)


@pytest.mark.parametrize("light", sorted(dark.FIGURES.keys() - SURFACES))
def test_data_can_be_told_from_dark_paper(light):
    assert contrast(dark.FIGURES[light], dark.PAPER) >= 3


def test_dark_colours_stay_different():
    data = [dark.FIGURES[light] for light in dark.FIGURES.keys() - SURFACES]
    assert len(data) == len(set(data))


def test_bars_can_be_told_from_their_edges():
    assert all(contrast(dark.FIGURES[fill], dark.FIGURES["#333333"]) >= 3 for fill, _ in LOOKS.values())


def test_a_heat_maps_numbers_can_be_read_in_every_cell():
    colours = matplotlib.colormaps["cividis"]
    for share in (step / 100 for step in range(101)):
        ink = heatmap.ink(share)
        assert dark.FIGURES[ink] == ink
        assert contrast(ink, matplotlib.colors.to_hex(colours(share))) >= 3


def test_the_page_can_be_read_in_both(page):
    names = rf"--(\w+):(#[0-9A-Fa-f]{{3,6}})\b"
    night = dict(re.findall(names, dark_rules(page)))
    day = dict(re.findall(names, page[: page.index(SCREEN)]))
    assert night.keys() == day.keys() and set(re.findall(r"var\(--(\w+)\)", page)) == day.keys()
    for colours in (day, night):
        colours = {name: value if len(value) == 7 else "#" + "".join(2 * digit for digit in value[1:])
                   for name, value in colours.items()}  # fmt: skip
        for text in ("text", "soft", "softer"):
            assert all(contrast(colours[text], colours[paper]) >= 4.5 for paper in ("paper", "head"))
        assert all(contrast(colours["text"], colours[paper]) >= 7 for paper in ("warned", "missing"))


def test_print_is_light(page):
    """Whatever the system prefers: the dark rules are for screens, and nothing dark stands outside them."""
    head = page[: page.index("</style>")]
    assert head.count("prefers-color-scheme") == 1
    rest = head.replace(dark_rules(page), "").upper()
    changed = {becomes for light, becomes in dark.FIGURES.items() if becomes != light}
    assert not any(colour in rest for colour in changed - {"#FFFFFF"})
    assert "COLOR-SCHEME:LIGHT" in rest and "COLOR-SCHEME:DARK;" not in rest


def test_pngs_stay_light(reported):
    for file in reported.glob("*.png"):
        assert (matplotlib.image.imread(file)[0, 0, :3] == 1).all(), file.name
