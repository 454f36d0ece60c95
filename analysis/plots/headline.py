"""One glance: per variant, the most verified messages a second and the latency of a lone message."""

import pandas as pd

from .. import stats, units
from ..load import Results
from .style import Drawing, Styles, log_axis, new_figure

NAME, TITLE = "headline", "At a glance"


def draw(results: Results, measured: pd.DataFrame, styles: Styles) -> Drawing:
    if measured.empty:
        return Drawing(NAME, TITLE, "", None, "No cell is ok, so there is nothing to compare.")
    work = stats.main_work(measured)
    chosen = measured[measured["work"] == work]
    peak, alone = stats.best(chosen, "variant", "messages_per_second"), stats.lone(chosen)
    order = list(peak.sort_values("messages_per_second")["variant"])
    figure, (left, right) = new_figure(11, 1.6 + 0.42 * len(order), columns=2, sharey=True)
    for place, variant in enumerate(order):
        point = peak[peak["variant"] == variant].iloc[0]
        _peak(left, place, point, styles)
        for _, lone_point in alone[alone["variant"] == variant].iterrows():
            _alone(right, place, lone_point, styles)
    left.set_yticks(range(len(order)), order)
    right.tick_params(axis="y", length=0)
    left.set_ylim(-0.6, len(order) - 0.3)
    _finish(left, "peak verified messages per second", units.number, peak["messages_per_second"])
    if len(alone):
        _finish(
            right, "lone-message latency: p50 (marker) to p99 (bar)", units.nanoseconds, alone[["p50", "p99"]].stack()
        )
    else:
        right.set_axis_off()
    caption = (
        f"Workload {work}. Left: the best point of each, median of its repetitions; more is better. Right: one "
        "message in flight, smallest payload; less is better."
        if len(alone)
        else f"Workload {work}. The best point of each, median of its repetitions; more is better."
    )
    return Drawing(NAME, TITLE, caption, figure)


def _peak(axes, place: int, point, styles: Styles) -> None:
    value = point["messages_per_second"]
    axes.plot([value], [place], **styles.marker(point["variant"]))
    axes.annotate(units.number(value), (value, place), xytext=(9, 0), textcoords="offset points", va="center")


def _alone(axes, place: int, point, styles: Styles) -> None:
    colour = styles.line(point["variant"])["color"]
    axes.plot([point["p50"], point["p99"]], [place, place], color=colour, linewidth=2)
    axes.plot([point["p99"]], [place], marker="|", markersize=11, color=colour)
    axes.plot([point["p50"]], [place], **styles.marker(point["variant"]))
    axes.annotate(
        units.nanoseconds(point["p50"]), (point["p99"], place), xytext=(9, 0), textcoords="offset points", va="center"
    )


def _finish(axes, label: str, formatter, values: pd.Series) -> None:
    axes.set_xscale("log")
    axes.set_xlim(values.min() / 1.6, values.max() * 4)  # room for the numbers at the right
    log_axis(axes.xaxis, formatter)
    axes.set_xlabel(label)
    axes.grid(axis="y", visible=False)
