"""The style of each engine, the same in every figure (a colour and a marker), and the arrangement of panels."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...plots.style import new_figure, panels

STYLES = {
    "pread": ("#7F7F7F", "x"),
    "pread_pinned": ("#E69F00", "v"),
    "threads": ("#D55E00", "o"),
    "mmap": ("#009E73", "^"),
    "io_uring": ("#0072B2", "s"),
    "cufile": ("#CC79A7", "D"),
    "nvme_user": ("#56B4E9", "P"),
}
OTHER = ("#8A7F00", "h")
ACROSS = 3  # maximum number of panels side by side
WRAP = 40  # maximum characters of a title's line
MEDIANS = "Markers are medians of the repetitions, and whiskers are 95 % intervals."


def style(engine: str) -> dict:
    """The colour and the marker as keyword arguments."""
    colour, marker = STYLES.get(engine, OTHER)
    return {"color": colour, "marker": marker}


def grid(count: int, narrow: bool) -> tuple[Figure, list[Axes]]:
    """A figure with this number of panels in rows of at most ACROSS; if `narrow`, one below another."""
    width, height = 5.2, 4.2  # inches, of one panel
    if narrow or count <= ACROSS:
        return panels(count, width, height, narrow)
    rows = math.ceil(count / ACROSS)
    figure, axes = new_figure(width * ACROSS, height * rows, rows, ACROSS)
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]
