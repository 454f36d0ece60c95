"""The error of the results by the depth of the sums, with one panel per problem."""

import textwrap

from ...load import Results
from ...plots.style import Drawing, log_axis, shared_legend, value_axis
from .. import errors
from ..details import ERROR
from ..errors import DEPTH
from .styles import LINES, MARKERS, WRAP, grid

NAME, TITLE = "kernels_error", "Error by depth"
CAPTION = (
    "Root of the mean squared error of the checked elements, relative to that of their values, by the number of "
    "products in each sum (k). Markers are medians of the repetitions."
)


def draw(results: Results, narrow: bool) -> Drawing | None:
    """The figure; None if no rung with an error above 0 was measured at two depths."""
    found = {words: some[some[ERROR] > 0] for words, some in errors.curves(results).items()}
    found = {words: some for words, some in found.items() if len(some)}
    if not found:
        return None
    figure, axes = grid(len(found), narrow)
    names = list(dict.fromkeys(name for some in found.values() for name in some["rung"]))
    for one, (words, some) in zip(axes, found.items()):
        for name, curve in some.groupby("rung", sort=False):
            place, curve = names.index(name) % len(LINES), curve.sort_values(DEPTH)
            looks = {"color": LINES[place], "marker": MARKERS[place], "linewidth": 1.5, "label": name}
            one.plot(curve[DEPTH].to_numpy(), curve[ERROR].to_numpy(), **looks)
        one.set_yscale("log")
        log_axis(one.yaxis, "{:.0e}".format)
        value_axis(one, some[DEPTH], "{:g}".format, "depth (k)")
        one.set_ylabel("relative error")
        one.set_title(textwrap.fill(words, WRAP), loc="left", fontsize=10.5)
    shared_legend(figure, axes, below=narrow)
    return Drawing(NAME, TITLE, CAPTION, figure)
