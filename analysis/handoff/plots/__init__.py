"""The figures of `handoff`; one without data is left out."""

from dataclasses import replace

from ... import flags
from ...load import Results
from ...plots.style import Drawing, looks, mark_cpu
from . import by_size, several

ALL = (*by_size.ALL, several)


def draw_all(results: Results, narrow: bool = False) -> list[Drawing]:
    """In the report's order. Narrow: for a phone's screen."""
    with looks():
        drawings = [drawing for figure in ALL if (drawing := figure.draw(results, narrow))]
        for drawing in drawings:
            mark_cpu(drawing.figure, results.devices)
    legend = flags.legend(results.cells)
    return [replace(drawing, caption=f"{drawing.caption} {legend}".strip()) for drawing in drawings]
