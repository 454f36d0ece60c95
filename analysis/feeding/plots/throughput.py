"""Throughput against payload, in messages and in bytes, with the ceilings that bind it."""

import numpy as np
import pandas as pd

from ... import stats, units
from ...load import Results
from ...plots.style import LIMIT_COLOUR, Drawing, at_least, log_axis, value_axis
from .styles import Styles, by_variant, error_bars

NAME, TITLE = "throughput", "Throughput against payload"
SIDES = (
    ("messages_per_second", "verified messages per second", units.number),
    ("bytes_per_second", "payload bytes per second, one way", units.bytes_per_second),
)
CAPTION = (
    "Each marker is the best point at a payload over the other axes: the median of its repetitions, with whiskers for "
    "the 95 % interval. Thin lines with a name are ceilings, which are the rates that the hardware or Redis alone "
    "allows."
)
MISSING = (
    "The sweep has only one payload size. To see throughput against payload, sweep several payloads (for example "
    "64,1Ki,64Ki,1Mi)."
)


def draw(results: Results, measured: pd.DataFrame, styles: Styles) -> Drawing:
    if measured["payload_bytes"].nunique() < 2:
        return Drawing(NAME, TITLE, "", None, MISSING)
    works = sorted(measured["work"].unique(), key=lambda work: (work != stats.main_work(measured), work))
    figure, panels = styles.figure(11, 0.6 + 4.6 * len(works), rows=len(works), columns=2)
    ceilings = _binding_ceilings(results)
    for row, work in enumerate(works):
        chosen = measured[measured["work"] == work]
        for axes, (metric, label, formatter) in zip(panels[2 * row :], SIDES):
            for variant, points in by_variant(chosen):
                line = stats.best(points, "payload_bytes", metric).sort_values("payload_bytes")
                error_bars(axes, line, "payload_bytes", metric, **styles.line(variant))
                at_least(axes, line, "payload_bytes", metric, styles.line(variant)["color"])
            axes.set_yscale("log")
            _draw_ceilings(axes, ceilings, metric)
            log_axis(axes.yaxis, formatter)
            axes.set_ylabel(label)
            axes.set_title(work, loc="left")
            value_axis(axes, chosen["payload_bytes"], units.size, "payload")
    styles.legend(figure, panels)
    return Drawing(NAME, TITLE, CAPTION, figure)


def _binding_ceilings(results: Results) -> dict[str, float]:
    """The ceilings that bind at least one cell (name -> median value); drawing all would obscure the measurements."""
    ok = results.cells[results.cells["status"] == "ok"]
    names = set(ok["messages_per_second_ceiling"]) - {""}
    values = {name: [limits[name] for limits in ok["limits"] if name in limits] for name in names}
    return {name: float(pd.Series(found).median()) for name, found in sorted(values.items()) if found}


def _draw_ceilings(axes, ceilings: dict[str, float], metric: str) -> None:
    """Draws each ceiling as a horizontal line on the axis with its unit, labelled at the right edge."""
    mine = sorted(
        (value, name)
        for name, value in ceilings.items()
        if name.endswith("_bytes_per_second") == (metric == "bytes_per_second") and value > 0
    )
    for value, _ in mine:
        axes.axhline(value, color=LIMIT_COLOUR, linewidth=0.9, linestyle=(0, (6, 2)), zorder=1)
    low, high = np.log(axes.get_ylim())
    lowest = -1.0
    for value, name in mine:
        # Push the names of close ceilings apart; each name stays at the end of its line or just above it.
        lowest = max((np.log(value) - low) / (high - low), lowest + 0.04)
        axes.text(
            1.005, lowest, units.words(name), transform=axes.transAxes, va="center", fontsize=8.5, color=LIMIT_COLOUR
        )
