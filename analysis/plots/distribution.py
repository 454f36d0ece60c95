"""Latency distributions as percentile plots: the tail gets as much room as the body."""

import pandas as pd
from matplotlib.ticker import FuncFormatter

from .. import stats, units
from ..histogram import Histogram, merge
from ..load import Results
from .style import Drawing, Styles, log_axis, new_figure, shared_legend

NAME, TITLE = "latency_distribution", "Latency distribution"


def draw(results: Results, measured: pd.DataFrame, styles: Styles) -> Drawing:
    measured = measured[measured["work"] == stats.main_work(measured)] if len(measured) else measured
    panels = [
        (title, chosen)
        for title, chosen in (
            ("lone message: one in flight, smallest payload", stats.lone(measured)),
            ("under load: at the knee", stats.knee(measured)),
        )
        if any(_histograms(results, point) for point in chosen.itertuples())
    ]
    if not panels:
        return Drawing(NAME, TITLE, "", None, "No ok row carries a latency histogram.")
    figure, all_axes = new_figure(11, 5, columns=len(panels), sharey=True)
    for axes, (title, chosen) in zip(all_axes, panels):
        for point in chosen.itertuples():
            _curve(axes, _histograms(results, point), styles.line(point.variant))
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(left=1)
        axes.xaxis.set_major_formatter(FuncFormatter(percentile_label))
        axes.set_xlabel("percentile of messages")
        axes.set_title(title, loc="left")
    log_axis(all_axes[0].yaxis, units.nanoseconds)
    all_axes[0].set_ylabel("latency")
    shared_legend(figure, all_axes)
    lacks = "" if len(panels) == 2 else " The sweep has no lone-message cell (window 1, producers 1)."
    return Drawing(
        NAME,
        TITLE,
        "All repetitions together. Each step to the right is ten times rarer; a line ends at its "
        "slowest sample. Flat is predictable. The knee: of the points within 5 % of a "
        "variant's most messages per second the one with the least p99." + lacks,
        figure,
    )


def _histograms(results: Results, point) -> list[Histogram]:
    rows = results.cells.loc[point.members, "histogram"]
    return [Histogram.from_row(row) for row in rows if isinstance(row, dict)]


def _curve(axes, histograms: list[Histogram], style: dict) -> None:
    if not histograms:
        return
    x, y = merge(histograms).curve()
    # Steps, because every percentile up to a bucket's last has that bucket's value; a slope would invent samples.
    # Markers only to tell the lines apart, evenly along the axis; every bucket is in the line itself.
    axes.plot(x, y, **style | {"markersize": 5}, markevery=0.12, drawstyle="steps-pre")


def percentile_label(value: float, _) -> str:
    if value < 1:
        return ""
    return f"{100 * (1 - 1 / value):.10g} %"
