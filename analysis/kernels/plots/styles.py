"""The style of rungs and of libraries, the same in every figure, and the arrangement of panels."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...plots.style import new_figure, panels

RUNG, MARKER, EDGE = "#0072B2", "o", "#333333"
# Colour, marker and dashes of libraries, in order of appearance.
LIBRARIES = (
    ("#D55E00", "D", (0, (6, 2))),
    ("#009E73", "s", (0, (2, 2))),
    ("#CC79A7", "^", (0, (6, 2, 1, 2))),
    ("#E69F00", "v", (0, (1, 1.5))),
    ("#8A7F00", "h", (0, (8, 2, 2, 2))),
)
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A7F00", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "h", "x")
ACROSS = 2  # maximum number of panels side by side
WRAP = 44  # maximum characters of a title's line
MEDIANS = "Values are medians of the repetitions, and whiskers are 95 % intervals."


def library_styles(names) -> dict[str, tuple]:
    """The style of each library; the order of the names decides it."""
    return {name: LIBRARIES[place % len(LIBRARIES)] for place, name in enumerate(dict.fromkeys(names))}


def grid(count: int, narrow: bool, width: float = 6.2, height: float = 4.4) -> tuple[Figure, list[Axes]]:
    """A figure with this number of panels in rows of at most ACROSS; if `narrow`, one below another. The size is the
    size of one panel in inches."""
    if narrow or count <= ACROSS:
        return panels(count, width, height, narrow)
    rows = math.ceil(count / ACROSS)
    figure, axes = new_figure(width * ACROSS, height * rows, rows, ACROSS)
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]
