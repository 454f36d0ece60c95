"""The report's figures. Each is drawn from the results by one function; a new figure is one file and one line here."""

from ..load import Results
from ..stats import points
from . import distribution, headline, heatmap, stages, throughput, window
from .style import Drawing, Styles, looks, mark_cpu

ALL = (headline, throughput, distribution, window, heatmap, stages)


def draw_all(results: Results) -> list[Drawing]:
    """Every figure in the report's order; one without data says what the sweep lacks."""
    measured, styles = points(results), Styles(results.cells)
    with looks():
        drawings = [figure.draw(results, measured, styles) for figure in ALL]
        for drawing in drawings:
            if drawing.figure:
                mark_cpu(drawing.figure, results.devices)
    return drawings
