"""Response time and throughput against the batch timeout."""

from itertools import cycle

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from ... import units
from ...load import Results
from ...plots.style import Drawing, log_axis
from .. import open_load, timeouts
from .styles import OTHER_QUEUES, Styles, error_bars

NAME, TITLE = "batch_timeout", "Batches held back: latency and throughput against the timeout"
SIDES = (
    ("p50", "response time, p50"),
    ("p99", "response time, p99"),
    ("messages_per_second", "results returned / messages due"),
)
# Marker and line, lowest rate first.
RATES = (("o", "-"), ("s", "--"), ("^", ":"), ("D", "-."), ("v", (0, (5, 1, 1, 1, 1, 1))))
CAPTION = (
    "Open loads: response time starts when a message was due, so it includes the time for which a producer holds a "
    "batch back. Markers are medians of the repetitions, and whiskers are their 95 % intervals. A line is one queue "
    "and transfer at one rate. Hollow: the rate was not sustained, and the latency only reflects how long the phase "
    "was."
)


def draw(results: Results, styles: Styles) -> Drawing | None:
    found = timeouts.lines(results)
    if found.empty:
        return None
    tasks = list(found["task"].unique())
    by_rate = dict(zip(sorted(found["rate"].unique()), cycle(RATES)))
    colours = _colours(found, styles)
    figure, panels = styles.figure(13, 0.6 + 4.1 * len(tasks), rows=len(tasks), columns=len(SIDES))
    for row, task in enumerate(tasks):
        chosen = found[found["task"] == task]
        steps = sorted(chosen[timeouts.AXIS].unique())
        for axes, (metric, label) in zip(panels[len(SIDES) * row :], SIDES):
            for line in timeouts.in_order(chosen):
                first = line.iloc[0]
                _line(axes, line, steps, metric, colours[first["variant"]], *by_rate[first["rate"]])
            if metric in open_load.TIMES:
                axes.set_yscale("log")
                log_axis(axes.yaxis, units.nanoseconds)
            else:
                axes.set_ylim(bottom=0)
                axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: units.percent(share) if share else "0"))
            # Use equal steps instead of a scale, because a logarithmic scale has no 0.
            axes.set_xticks(range(len(steps)), [f"{step:g}" for step in steps])
            axes.set(xlabel="batch held back for (µs)", ylabel=label)
            axes.set_title(task, loc="left")
    styles.legend(figure, panels)
    return Drawing(NAME, TITLE, CAPTION, figure)


def _colours(found: pd.DataFrame, styles: Styles) -> dict[str, str]:
    """A different colour for each variant: its own colour, if that is free. Transfers of one queue share a colour
    elsewhere, but here the line style shows the rate."""
    taken: dict[str, str] = {}
    for variant in found.sort_values("rank")["variant"].unique():
        own = styles.line(variant)["color"]
        spare = (colour for colour, _ in OTHER_QUEUES if colour not in taken.values())
        taken[variant] = own if own not in taken.values() else next(spare, own)
    return taken


def _line(axes: Axes, line: pd.DataFrame, steps: list, metric: str, colour: str, marker: str, dash) -> None:
    line = line.assign(place=line[timeouts.AXIS].map(steps.index))
    if metric not in open_load.TIMES:  # lines of all rates in one panel
        shares = [metric, f"{metric}_low", f"{metric}_high"]
        line[shares] = line[shares].div(line["rate"], axis=0)
    error_bars(axes, line, "place", metric, fmt="none", color=colour, alpha=0.6)
    label = f"{line['variant'].iloc[0]}, {units.tick(units.messages_per_second)(line['rate'].iloc[0])} due"
    axes.plot(line["place"], line[metric], linestyle=dash, linewidth=1.5, color=colour)
    axes.plot([], [], linestyle=dash, marker=marker, color=colour, label=label)  # independent of the states
    for place, value, state in zip(line["place"], line[metric], line["state"]):
        face = colour if state == open_load.SUSTAINED else "white"
        axes.plot([place], [value], marker, color=colour, markerfacecolor=face)
