"""The figures of `overlap`; one without data is left out."""

from ...load import Results
from ...plots import together
from ...plots.style import Drawing
from . import by_axis, by_strategy

ALL = (by_strategy, *by_axis.ALL)


def draw_all(results: Results, narrow: bool = False) -> list[Drawing]:
    """In the report's order. Narrow: for a phone's screen."""
    return together.draw_all(ALL, results, narrow)
