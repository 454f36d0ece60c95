"""Bytes a second where several tensors are handed over at once, or several processes read them."""

from ... import units
from ...load import Results
from ...plots.style import Drawing, log_axis, panels, shared_legend, value_axis
from .. import points as handoff
from .. import several
from .styles import lines

NAME, TITLE = "handoff_several", "Bytes a second by the number of tensors and readers"
CAPTION = (
    "Bytes that all readers have read, over the median of the hand-off. Medians of the repetitions, whiskers the 95 % "
    "interval."
)
LABELS = {"tensors": "tensors handed over at once", "readers": "processes that read them"}


def draw(results: Results, narrow: bool) -> Drawing | None:
    """None where no way was measured at two numbers."""
    found = several.found(results)
    if not found:
        return None
    figure, axes = panels(len(found), 4.6, 4.2, narrow)
    for one, steps in zip(axes, found):
        one.set_yscale("log")
        lines(one, steps.points, steps.axis, handoff.RATE)
        value_axis(one, steps.values, lambda value: f"{value:g}", LABELS[steps.axis])
        log_axis(one.yaxis, units.bytes_per_second)
        one.set_ylabel("bytes read a second")
        one.set_title(several.where(results, steps), loc="left", fontsize=10.5)
    shared_legend(figure, axes, below=narrow)
    return Drawing(NAME, TITLE, CAPTION, figure)
