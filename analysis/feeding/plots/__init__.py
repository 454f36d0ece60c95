"""The report's figures. One function draws each from the results; a new figure needs one file and one line here."""

from dataclasses import replace

from ... import flags
from ...load import Results
from ...plots.style import Drawing, figure_style, mark_cpu
from ...stats import points
from . import after_kernel, capacities, distribution, headline, heatmap, load_stages, offered, percentiles, prices, stages
from . import throughput, timeouts, transfers, window
from .styles import Styles

CLOSED = (headline, throughput, distribution, window, heatmap, stages)  # figures of loads that keep the window full
WHERE_MEASURED = (transfers, prices, offered, timeouts, capacities, percentiles, load_stages, after_kernel)
ALL = (*CLOSED, *WHERE_MEASURED)


def draw_all(results: Results, narrow: bool = False) -> list[Drawing]:
    """Every figure in the report's order. If the sweep has closed loads, a figure without data states what the sweep
    lacks. Figures in WHERE_MEASURED are left out if their rows are missing. `narrow`: for a phone's screen."""
    closed, styles = results.closed, Styles(results.cells, narrow)
    measured = points(closed)
    with figure_style():
        drawings = [figure.draw(closed, measured, styles) for figure in CLOSED] if len(closed.cells) else []
        drawings += [drawing for figure in WHERE_MEASURED if (drawing := figure.draw(results, styles))]
        for drawing in drawings:
            if drawing.figure:
                mark_cpu(drawing.figure, results.devices)
    legend = " ".join(filter(None, (flags.legend(results.cells), flags.limited_sentence(results.cells))))
    return [replace(drawing, caption=f"{drawing.caption} {legend}".strip()) for drawing in drawings]
