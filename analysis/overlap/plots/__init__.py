"""The figures of `overlap`; figures without data are left out."""

from ...load import Results
from ...plots import together
from ...plots.style import Drawing
from . import by_axis, by_strategy

ALL = (by_strategy, *by_axis.ALL)


def draw_all(results: Results, narrow: bool = False) -> list[Drawing]:
    """The drawings in the report's order. `narrow`: for a phone's screen."""
    return together.draw_all(ALL, results, narrow)
