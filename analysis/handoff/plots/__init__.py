"""The figures of `handoff`; figures without data are left out."""

from ...load import Results
from ...plots import together
from ...plots.style import Drawing
from . import by_size, several

ALL = (*by_size.ALL, several)


def draw_all(results: Results, narrow: bool = False) -> list[Drawing]:
    """The drawings in the report's order. `narrow`: for a phone's screen."""
    return together.draw_all(ALL, results, narrow)
