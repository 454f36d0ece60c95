"""Timelines one above the other, with one time axis and one scale: what ran beside what, and where nothing ran."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from .. import units
from ..trace import Trace
from .style import Drawing

NAME = "timeline"
WIDTH = 7.2  # inches: on a phone's screen the text can still be read
TRACK, ABOVE, AXIS = 0.24, 0.42, 0.5  # inches: a track's height, what a trace has above its tracks, the time axis
BAR = 0.8  # of a track's height
MANY = 200  # bars of a track
# In the order in which labels first begin: neighbours of a pipeline differ in lightness as well.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")


def draw(traces: Sequence[Trace]) -> Drawing:
    """In the style's settings (`looks`)."""
    heights = [ABOVE + TRACK * len(trace.tracks) for trace in traces]
    figure = Figure(figsize=(WIDTH, sum(heights) + AXIS))
    ratios = {"height_ratios": [len(trace.tracks) for trace in traces]}  # a track is as high in every trace
    panels = figure.subplots(len(traces), 1, sharex=True, squeeze=False, gridspec_kw=ratios).flat
    colours = _colours(traces)
    for axes, trace in zip(panels, traces):
        _panel(axes, trace, colours)
    axes.set_xlim(0, max(work.end for trace in traces for track in trace.tracks for work in track.work))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda us, _: units.tick(units.nanoseconds)(1e3 * us) if us else "0"))
    axes.set_xlabel("since the first work on the GPU")
    entries = [Patch(facecolor=colour, label=label) for label, colour in colours.items()]
    # Below the figure; saving cuts to what was drawn.
    where = {"loc": "upper left", "bbox_to_anchor": (0, 0), "ncols": 4}
    figure.legend(handles=entries, fontsize=9, handlelength=1.2, columnspacing=1.2, **where)
    return Drawing(NAME, "Timelines", "", figure)


def _colours(traces: Sequence[Trace]) -> dict[str, str]:
    """The same label looks the same in every trace."""
    firsts: dict[str, float] = {}
    for trace in traces:
        for work in sorted((one for track in trace.tracks for one in track.work), key=lambda one: one.begin):
            firsts.setdefault(work.label, work.begin)
    return {label: COLOURS[place % len(COLOURS)] for place, label in enumerate(firsts)}


def _panel(axes: Axes, trace: Trace, colours: dict[str, str]) -> None:
    for place, track in enumerate(trace.tracks):
        # The edge has the paper's colour: what follows without a gap is still told apart. Of many it would hide the bars.
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
    axes.set_title(f"{trace.title}: {units.nanoseconds(1e3 * trace.length)} in all", loc="left", fontsize=10.5)
