"""Capacity under a latency bound: one interval per search."""

import numpy as np
import pandas as pd
from matplotlib.ticker import FuncFormatter

from ... import units
from ...load import Results
from ...plots.style import Drawing
from .. import capacity
from .styles import Styles

NAME, TITLE = "capacity", "Capacity under a bound"
SPACE = 0.6  # share of a line's height for its searches
CAPTION = (
    "Each bar is one search. All rates judged up to its left end are sustained, and none at or beyond its right end "
    "is. An arrow means that the search found no such end. Hatched: the search ended before its interval was as narrow "
    "as its resolution, so the capacity within it is undecided. On the right: the median "
    "of the left ends (the lower of two), or “none” if not even the lowest rate met the bound. A variant with several "
    "settings is shown with the setting of highest capacity."
)


def draw(results: Results, styles: Styles) -> Drawing | None:
    found = capacity.best_settings(capacity.answers(results))
    if found.empty:
        return None
    tasks = list(found["task"].unique())
    bounds = list(found.sort_values("bound_ns", kind="stable")["slo"].unique())
    wording = {line["slo"]: capacity.bound(line) for _, line in found.iterrows()}
    variants = list(found.sort_values("rank")["variant"].unique())
    size = 3 + 3.4 * len(bounds), 0.8 + len(tasks) * (1.1 + 0.5 * len(variants))
    figure, panels = styles.figure(*size, rows=len(tasks), columns=len(bounds), sharex=True, sharey=True)
    ends = np.array([end for line in found["intervals"] for one in line for end in one[:2]])
    ends = ends[np.isfinite(ends) & (ends > 0)]
    limits = (ends.min() / 2, ends.max() * 2) if len(ends) else (1, 10)
    for place, axes in enumerate(panels):
        task, bound = tasks[place // len(bounds)], bounds[place % len(bounds)]
        axes.set_xscale("log")
        axes.set_xlim(*limits)
        for _, line in found[(found["task"] == task) & (found["slo"] == bound)].iterrows():
            _line(axes, variants.index(line["variant"]), line, styles.line(line["variant"])["color"], limits)
        axes.set_title(f"{task}, {wording[bound]}", loc="left")
        axes.grid(axis="y", visible=False)
        axes.minorticks_off()
    for axes in panels[-1:] if styles.narrow else panels[-len(bounds) :]:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: units.tick(units.number)(value)))
        axes.set_xlabel("messages due per second")
    panels[0].set_yticks(range(len(variants)), variants)
    panels[0].set_ylim(len(variants) - 0.4, -0.6)
    return Drawing(NAME, TITLE, CAPTION, figure)


def _line(axes, place: int, line: pd.Series, colour: str, limits: tuple[float, float]) -> None:
    """Draws the searches of one variant one below another. The tick at each end keeps a very narrow bar visible."""
    height = SPACE / len(line["intervals"])
    for number, (low, high, undecided) in enumerate(line["intervals"]):
        y = place - SPACE / 2 + (number + 0.5) * height
        left, right = low or limits[0], high if np.isfinite(high) else limits[1]
        hatch = "//" if undecided else None
        axes.barh(y, right - left, left=left, height=0.7 * height, color=colour, alpha=0.55, hatch=hatch)
        axes.plot([left], [y], marker="|" if low else "<", color=colour, markersize=7)
        axes.plot([right], [y], marker="|" if np.isfinite(high) else ">", color=colour, markersize=7, clip_on=False)
    text = units.number(line["low"]) if line["low"] else "none"
    axes.annotate(
        text, (1, place), xycoords=("axes fraction", "data"), xytext=(8, 0), textcoords="offset points", va="center"
    )
