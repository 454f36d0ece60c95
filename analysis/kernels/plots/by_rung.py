"""A bar for each rung of a ladder, with the libraries and the limit as lines, and one panel per problem."""

import textwrap

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from ... import units
from ...load import Results
from ...plots.style import LIMIT_COLOUR, Drawing, shared_legend, whiskers
from ..ladders import Ladder, ladders
from ..points import RATE
from .styles import EDGE, MEDIANS, RUNG, WRAP, grid, library_styles

NAME, TITLE = "kernels_by_rung", "Operations per second by rung"
CAPTION = (
    "Bars are rungs, from the first to the last step of the ladder. Dashed lines are libraries, and the grey line is "
    f"the limit that binds the last rung. A multiply-add counts as two operations. {MEDIANS}"
)


def draw(results: Results, narrow: bool) -> Drawing | None:
    """The figure; None if no problem was measured with two rungs or libraries."""
    found = [ladder for ladder in ladders(results) if len(ladder.points) > 1]
    if not found:
        return None
    figure, axes = grid(len(found), narrow)
    looks = library_styles(point["rung"] for ladder in found for point in ladder.peers)
    for one, ladder in zip(axes, found):
        _panel(one, results, ladder, looks)
        one.set_title(textwrap.fill(f"{ladder.problem}, {ladder.condition}", WRAP), loc="left", fontsize=10.5)
    shared_legend(figure, axes, below=narrow)
    return Drawing(NAME, TITLE, CAPTION, figure)


def _panel(axes: Axes, results: Results, ladder: Ladder, looks: dict) -> None:
    for place, point in enumerate(ladder.rungs):
        axes.bar(place, point[RATE], 0.7, color=RUNG, edgecolor=EDGE, linewidth=0.5)
        whiskers(axes, point, float(place), RATE, "#000000")
    for point in ladder.peers:
        colour, _, dash = looks[point["rung"]]
        axes.axhline(point[RATE], color=colour, linestyle=dash, linewidth=1.5, label=point["rung"])
    _limit_line(axes, ladder.rungs[-1])
    names = [point["rung"] for point in ladder.rungs]
    axes.set_xticks(range(len(names)), names, rotation=35, ha="right", fontsize=9)
    axes.set_xlim(-0.6, len(ladder.rungs) - 0.4)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.05)
    short = units.tick(results.experiment.formatter(RATE))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value) if value else "0"))
    axes.set_ylabel("operations per second")
    axes.grid(axis="x", visible=False)


def _limit_line(axes: Axes, point: pd.Series) -> None:
    bound, ratio = point[f"{RATE}_bound"], point[f"{RATE}_ratio"]
    if bound and ratio > 0:
        limit = point[RATE] / ratio
        axes.axhline(limit, color=LIMIT_COLOUR, linewidth=1.1, label="limit")
        above = {"xytext": (2, 3), "textcoords": "offset points", "fontsize": 9, "color": LIMIT_COLOUR}
        axes.annotate(bound, (-0.6, limit), **above)
