"""Byte rate when several tensors are handed over at once or several processes read them."""

from ... import units
from ...load import Results
from ...plots.style import Drawing, log_axis, panels, shared_legend, value_axis
from .. import points as handoff
from .. import several
from .styles import lines

NAME, TITLE = "handoff_several", "Bytes per second by number of tensors and readers"
CAPTION = (
    "The rate is the bytes read by all readers, divided by the median hand-off time. Markers are medians of the "
    "repetitions, and whiskers are 95 % intervals."
)
LABELS = {"tensors": "tensors handed over at once", "readers": "processes that read them"}


def draw(results: Results, narrow: bool) -> Drawing | None:
    """The figure; None if no way was measured with two numbers of tensors or readers."""
    found = several.found(results)
    if not found:
        return None
    figure, axes = panels(len(found), 4.6, 4.2, narrow)
    for one, steps in zip(axes, found):
        one.set_yscale("log")
        lines(one, steps.points, steps.axis, handoff.RATE)
        value_axis(one, steps.values, lambda value: f"{value:g}", LABELS[steps.axis])
        log_axis(one.yaxis, units.bytes_per_second)
        one.set_ylabel("bytes read per second")
        one.set_title(several.where(results, steps), loc="left", fontsize=10.5)
    shared_legend(figure, axes, below=narrow)
    return Drawing(NAME, TITLE, CAPTION, figure)
