"""Figures that only some specs have: on a dark screen their colours are exchanged, and what is written in them can be
read in both."""

import re

import handoff_rows
import overlap_rows
import pytest
import rows
import transfer_rows
from matplotlib.colors import to_hex
from test_dark import contrast

from analysis import dark
from analysis.feeding.plots import timeouts, transfers
from analysis.feeding.plots.styles import Styles
from analysis.figures import render
from analysis.handoff import plots as handoff
from analysis.handoff.plots import styles as handoff_styles
from analysis.load import load
from analysis.overlap import plots as overlap
from analysis.overlap.plots import styles as overlap_styles
from analysis.plots.style import NARROW, looks


@pytest.fixture(scope="module")
def drawn(tmp_path_factory) -> dict:
    """Every such figure by its name, in the shape for a phone."""
    folder = tmp_path_factory.mktemp("figures")
    some = load([rows.write(folder / "transfers", [*transfer_rows.sweep(2), *transfer_rows.timeouts(2)])])
    other = load([overlap_rows.write(folder / "overlap", overlap_rows.sweep(2))], experiment="overlap")
    third = load([handoff_rows.write(folder / "handoff", handoff_rows.sweep(2))], experiment="handoff")
    with looks():
        found = [figure.draw(some, Styles(some.cells, True)) for figure in (transfers, timeouts)]
    return {one.name: one for one in [*found, *overlap.draw_all(other, True), *handoff.draw_all(third, True)]}


def test_every_colour_is_exchanged(drawn):
    assert len(drawn) == 9
    for one in render(list(drawn.values()), "slim"):
        colours = set(re.findall(r"(?:fill|stroke)(?:: |=\")(#[0-9a-f]{6})", one.svg))
        assert len(colours) > 2 and {colour.upper() for colour in colours} <= dark.FIGURES.keys(), one.name


def test_each_is_as_wide_as_a_phone(drawn):
    assert all(one.box.width < NARROW * 1.25 for one in drawn.values())


@pytest.mark.parametrize("colour, ink", [*transfers.COLOURS.values(), transfers.OTHER])
def test_a_cells_text_can_be_read_in_both(colour, ink):
    assert dark.FIGURES[ink] == ink
    assert contrast(ink, colour) >= 3 and contrast(ink, dark.FIGURES[colour]) >= 3


@pytest.mark.parametrize("styles", [overlap_styles, handoff_styles], ids=["strategies", "ways"])
def test_the_looks_differ(styles):
    every = [*styles.LOOKS.values(), styles.OTHER]
    assert len({to_hex(dark.FIGURES[colour]) for colour, _ in every}) == len({marker for _, marker in every}) == len(every)
