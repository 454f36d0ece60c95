"""Overview figure: the peak verified message rate and the lone-message latency of each variant."""

import pandas as pd

from ... import flags, figure_text, stats, units
from ...load import Results
from ...plots.style import Drawing, log_axis, whiskers
from .. import choose
from .styles import Styles

NAME, TITLE = "headline", "At a glance"
RATE = "messages_per_second"
CAPTION = (
    "Workload {}. Markers are medians of the repetitions, and thin whiskers are their 95 % intervals. The first panel "
    "shows the best point of each variant; higher is better."
)
WITH_LONE = (
    " The second panel shows one message in flight with the smallest payload; a line joins p50 and p99; lower is "
    "better."
)
MISSING = "There is nothing to compare because no cell is ok."


def draw(results: Results, measured: pd.DataFrame, styles: Styles) -> Drawing:
    if measured.empty:
        return Drawing(NAME, TITLE, "", None, MISSING)
    chosen = choose.main_work(measured)
    caption = CAPTION.format(chosen["work"].iloc[0])
    return compare(stats.best(chosen, "variant", RATE), choose.lone(chosen), styles, caption)


def compare(peak: pd.DataFrame, alone: pd.DataFrame, styles: Styles, caption: str) -> Drawing:
    """The figure from one line per variant with its highest rate, and one with its lone latency, if it has any."""
    peak = peak.sort_values(RATE)
    order = list(peak["variant"])
    columns = 1 + bool(len(alone))
    figure, panels = styles.figure(1 + 5 * columns, 1.6 + 0.42 * len(order), columns=columns, sharey=True)
    left, right = panels[0], panels[-1]
    for place, (_, point) in enumerate(peak.iterrows()):
        _peak(left, place, point, styles)
        for _, lone_point in alone[alone["variant"] == point["variant"]].iterrows():
            _alone(right, place, lone_point, styles)
    left.set_yticks(range(len(order)), order)
    left.set_ylim(-0.6, len(order) - 0.3)
    rates = peak[[f"{RATE}_low", RATE]].stack()
    _finish(left, "peak verified messages per second", units.number, rates)
    if len(alone):
        right.tick_params(axis="y", length=0)
        times = alone[["p50_low", "p50", "p99", "p99_high"]].stack()
        _finish(right, "lone-message latency: p50 (marker), p99 (tick)", units.nanoseconds, times)
    return Drawing(NAME, TITLE, caption + (WITH_LONE if len(alone) else ""), figure)


def _peak(axes, place: int, point, styles: Styles) -> None:
    value = point[RATE]
    whiskers(axes, point, RATE, place, styles.line(point["variant"])["color"])
    axes.plot([value], [place], **styles.marker(point["variant"]))
    text = figure_text.sign(point, True) + units.number(value) + flags.mark(point)
    _number(axes, text, max(value, point[f"{RATE}_high"]), place)


def _alone(axes, place: int, point, styles: Styles) -> None:
    colour = styles.line(point["variant"])["color"]
    axes.plot([point["p50"], point["p99"]], [place, place], color=colour, linewidth=2)
    for metric in ("p50", "p99"):
        whiskers(axes, point, metric, place, colour)
    axes.plot([point["p99"]], [place], marker="|", markersize=11, color=colour)
    axes.plot([point["p50"]], [place], **styles.marker(point["variant"]))
    _number(axes, units.nanoseconds(point["p50"]) + flags.mark(point), max(point["p99"], point["p99_high"]), place)


def _number(axes, text: str, end: float, place: int) -> None:
    """Writes the number to the right of the whiskers."""
    axes.annotate(text, (end, place), xytext=(9, 0), textcoords="offset points", va="center")


def _finish(axes, label: str, formatter, values: pd.Series) -> None:
    axes.set_xscale("log")
    axes.set_xlim(values.min() / 1.6, values.max() * 4)  # room for the numbers on the right
    log_axis(axes.xaxis, formatter)
    axes.set_xlabel(label)
    axes.grid(axis="y", visible=False)
