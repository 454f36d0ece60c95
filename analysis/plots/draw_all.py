"""Draws all figures of an experiment, without those that have no data."""

from collections.abc import Iterable
from dataclasses import replace

from .. import flags
from ..load import Results
from .style import Drawing, figure_style, mark_cpu


def draw_all(figures: Iterable, results: Results, narrow: bool = False) -> list[Drawing]:
    """The drawings in the order of `figures`, which are modules or objects with `draw(results, narrow)`. `narrow`: for
    a phone's screen."""
    with figure_style():
        drawings = [drawing for figure in figures if (drawing := figure.draw(results, narrow))]
        for drawing in drawings:
            mark_cpu(drawing.figure, results.devices)
    legend = flags.legend(results.cells)
    return [replace(drawing, caption=f"{drawing.caption} {legend}".strip()) for drawing in drawings]
