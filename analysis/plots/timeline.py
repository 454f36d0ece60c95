"""Timelines one above the other, with one time axis and one scale, which show concurrent work and idle gaps."""

import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from .. import trace, units
from ..errors import BadInput
from ..figures import standalone
from ..files import write_all
from ..trace import Trace
from .style import Drawing, figure_style

NAME = "timeline"
WIDTH = 7.2  # inches; the text is still readable on a phone's screen
TRACK, ABOVE, AXIS = 0.24, 0.42, 0.5  # inches: height of a track, of the space above a trace, of the time axis
BAR = 0.8  # share of a track's height
MOST = 20_000  # maximum number of bars; more make the SVG slow to display and are thinner than a line
MANY = 200  # number of bars in a track above which they have no edges
# In the order in which labels first appear; neighbouring stages of a pipeline also differ in lightness.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")


def write_timeline(files: Sequence[str], out: str, milliseconds: float | None) -> Path:
    """Writes the SVG; returns its path."""
    traces = [trace.read(file) for file in files]
    if milliseconds is not None:
        if not (math.isfinite(milliseconds) and milliseconds > 0):
            raise BadInput("--milliseconds", milliseconds, "invalid value", "more than 0")
        traces = [trace.window(one, 1e3 * milliseconds) for one in traces]
    bars = sum(len(track.work) for one in traces for track in one.tracks)
    if bars > MOST:
        raise BadInput("TRACE", ", ".join(files), f"{bars} kernels and copies are too many", "--milliseconds N")
    with figure_style():
        svg = standalone(draw(traces))
    return write_all({Path(out): svg})[0]


def draw(traces: Sequence[Trace]) -> Drawing:
    """Draws the timelines. Must run within the style's settings (`figure_style`)."""
    heights = [ABOVE + TRACK * len(trace.tracks) for trace in traces]
    figure = Figure(figsize=(WIDTH, sum(heights) + AXIS))
    ratios = {"height_ratios": [len(trace.tracks) for trace in traces]}  # tracks of all traces have the same height
    panels = figure.subplots(len(traces), 1, sharex=True, squeeze=False, gridspec_kw=ratios).flat
    colours = _colours(traces)
    for axes, trace in zip(panels, traces):
        _panel(axes, trace, colours)
    axes.set_xlim(0, max(work.end for trace in traces for track in trace.tracks for work in track.work))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda us, _: units.tick(units.nanoseconds)(1e3 * us) if us else "0"))
    axes.set_xlabel("since the first work on the GPU")
    entries = [Patch(facecolor=colour, label=label) for label, colour in colours.items()]
    # The legend is below the figure; saving crops to the drawing.
    where = {"loc": "upper left", "bbox_to_anchor": (0, 0), "ncols": 4}
    figure.legend(handles=entries, fontsize=9, handlelength=1.2, columnspacing=1.2, **where)
    return Drawing(NAME, "Timelines", "", figure)


def _colours(traces: Sequence[Trace]) -> dict[str, str]:
    """One colour for each label, the same in every trace."""
    firsts: dict[str, float] = {}
    for trace in traces:
        for work in sorted((one for track in trace.tracks for one in track.work), key=lambda one: one.begin):
            firsts.setdefault(work.label, work.begin)
    return {label: COLOURS[place % len(COLOURS)] for place, label in enumerate(firsts)}


def _panel(axes: Axes, trace: Trace, colours: dict[str, str]) -> None:
    for place, track in enumerate(trace.tracks):
        # An edge in the background's colour separates adjacent bars. With many bars, edges would hide them.
        edge = 0.3 if len(track.work) < MANY else 0
        spans: dict[str, list[tuple[float, float]]] = {}
        for work in track.work:
            spans.setdefault(work.label, []).append((work.begin, work.end - work.begin))
        for label, some in spans.items():
            axes.broken_barh(some, (place - BAR / 2, BAR), facecolor=colours[label], edgecolor="#FFFFFF", linewidth=edge)
    axes.set_yticks(range(len(trace.tracks)), [track.name for track in trace.tracks], fontsize=9)
    axes.set_ylim(len(trace.tracks) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.set_title(f"{trace.title}: {units.nanoseconds(1e3 * trace.length)} in total", loc="left", fontsize=10.5)
