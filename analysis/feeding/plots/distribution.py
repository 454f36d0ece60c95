"""Latency distributions as percentile plots, in which the tail gets as much room as the body."""

import numpy as np
import pandas as pd
from matplotlib.ticker import FuncFormatter, NullLocator

from ... import units
from ...histogram import Histogram, merge
from ...load import Results
from ...plots.style import Drawing, log_axis
from .. import choose
from .styles import Styles

NAME, TITLE = "latency_distribution", "Latency distribution"
BAND_STEPS = 80
CAPTION = (
    "Each line combines all repetitions; the shade spans the lowest to the highest repetition. Each step to the right "
    "is ten times rarer, and a line ends at its slowest sample. A flat line means predictable latency. The knee is the "
    "point with the lowest p99 among those within 5 % of a variant's highest message rate."
)
NO_LONE = " The sweep has no lone-message cell (window 1, producers 1)."


def draw(results: Results, measured: pd.DataFrame, styles: Styles) -> Drawing:
    measured = choose.main_work(measured)
    panels = [
        (title, chosen)
        for title, chosen in (
            ("lone message: one in flight, smallest payload", choose.lone(measured)),
            ("under load: at the knee", choose.knee(measured)),
        )
        if any(_histograms(results, members) for members in chosen["members"])
    ]
    if not panels:
        return Drawing(NAME, TITLE, "", None, "No ok row has a latency histogram.")
    figure, all_axes = styles.figure(11, 5, columns=len(panels), sharey=True)
    for axes, (title, chosen) in zip(all_axes, panels):
        for variant, members in zip(chosen["variant"], chosen["members"]):
            _curve(axes, _histograms(results, members), styles.line(variant))
        axes.set_yscale("log")
        percentile_axis(axes, left=1)
        axes.set_title(title, loc="left")
    log_axis(all_axes[0].yaxis, units.nanoseconds)
    all_axes[0].set_ylabel("latency")
    styles.legend(figure, all_axes)
    return Drawing(NAME, TITLE, CAPTION + (NO_LONE if len(panels) < 2 else ""), figure)


def _histograms(results: Results, members: list[int]) -> list[Histogram]:
    rows = results.cells.loc[members, "histogram"]
    return [Histogram.from_row(row) for row in rows if isinstance(row, dict)]


def _curve(axes, histograms: list[Histogram], style: dict) -> None:
    if not histograms:
        return
    band(axes, histograms, style["color"])
    x, y = merge(histograms).curve()
    # Draw steps: every percentile up to a bucket's last has the bucket's value, and a slope would invent samples.
    # Markers only distinguish the lines and are spaced evenly; the line itself contains every bucket.
    axes.plot(x, y, **style | {"markersize": 5}, markevery=0.12, drawstyle="steps-pre")


def band(axes, histograms: list[Histogram], colour: str, last: float = np.inf) -> None:
    """Shades the range from the lowest to the highest repetition, as far as every repetition has samples."""
    if len(histograms) < 2:
        return
    end = min(last, *(histogram.total for histogram in histograms))
    x = np.geomspace(1, max(end, 1), BAND_STEPS)
    y = np.array([histogram.percentiles(100 * (1 - 1 / x)) for histogram in histograms])
    axes.fill_between(x, y.min(axis=0), y.max(axis=0), color=colour, alpha=0.18, linewidth=0)


def percentile_axis(axes, **limits) -> None:
    """Formats the x axis: each step to the right is ten times rarer. Long axes label only every second step."""
    axes.set_xscale("log")
    axes.set_xlim(**limits)
    axes.set_xlabel("percentile of messages")
    axes.xaxis.set_minor_locator(NullLocator())

    def label(value: float, _) -> str:
        step, steps = round(np.log10(value)), np.log10(axes.get_xlim()[1])
        named = value >= 1 and (steps < 5 or step < 2 or step % 2 == 0)
        return f"{100 * (1 - 1 / value):.10g} %" if named else ""

    axes.xaxis.set_major_formatter(FuncFormatter(label))
