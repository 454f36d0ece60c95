"""Ratios B / A of two runs: a dot for every point, and the geometric mean of each variant with its interval."""

import numpy as np
import pandas as pd
from matplotlib.ticker import FixedLocator, NullLocator

from .. import units
from .style import Drawing, figure_style, log_axis, new_figure

NAME, TITLE = "compare", "Ratios B / A"
TICKS = (1.01, 1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 2, 4, 8, 16, 64, 256, 1024)
DOT, MEAN = "#56B4E9", "#000000"


def draw(matched: pd.DataFrame, overall: pd.DataFrame, metrics, experiment: str = "") -> Drawing:
    """`matched` has one row per point and `overall` one row per variant, each with a ratio for each of `metrics`.
    `experiment`: the experiment's name if there are several."""
    with figure_style():
        variants = list(overall["variant"])
        figure, panels = new_figure(13, 1.8 + 0.4 * len(variants), columns=len(metrics), sharey=True)
        for axes, metric in zip(panels, metrics):
            for place, variant in enumerate(variants):
                _dots(axes, place, matched.loc[matched["variant"] == variant, metric.column])
                _mean(axes, place, overall.loc[overall["variant"] == variant, metric.column].iloc[0])
            axes.axvline(1, color="#555555", linewidth=1)
            axes.set_xscale("log", base=2)
            log_axis(axes.xaxis, units.ratio)
            _limits(axes, matched[metric.column])
            axes.set_xlabel(f"{metric.name.replace('_', ' ')}, B / A")
            better_right = metric.larger_is_better
            axes.set_title("better →" if better_right else "← better", loc="right" if better_right else "left")
            axes.grid(axis="y", visible=False)
        panels[0].set_yticks(range(len(variants)), variants)
        panels[0].invert_yaxis()
    return Drawing(
        f"{NAME}_{experiment}" if experiment else NAME,
        TITLE,
        "Circles are points of equal parameters. Diamonds are geometric means over these points, with their 95 % "
        "intervals. A ratio of 1 means no change.",
        figure,
    )


def _dots(axes, place: int, ratios: pd.Series) -> None:
    values = [ratio.value for ratio in ratios]
    # Spread the dots over the row's height, so that equal ratios do not hide each other.
    heights = place + np.linspace(-0.22, 0.22, len(values)) if len(values) > 1 else [place]
    axes.plot(values, heights, "o", color=DOT, markersize=4.5, markeredgecolor="#333333", markeredgewidth=0.4)


def _mean(axes, place: int, ratio) -> None:
    axes.plot([ratio.value], [place], "D", color=MEAN, markersize=6)
    if not np.isnan(ratio.low):
        axes.plot([ratio.low, ratio.high], [place, place], color=MEAN, linewidth=2)


def _limits(axes, ratios: pd.Series) -> None:
    """Centres the axis on 1, so that the direction of a change is visible."""
    widest = max([1.1, *(max(ratio.value, 1 / ratio.value) for ratio in ratios if ratio.value > 0)]) * 1.1
    axes.set_xlim(1 / widest, widest)
    outer = max(tick for tick in TICKS if tick < widest)
    shown = {outer, max([tick for tick in TICKS if tick <= outer**0.6], default=outer)}  # two per side never collide
    axes.xaxis.set_major_locator(FixedLocator([1, *shown, *(1 / tick for tick in shown)]))
    axes.xaxis.set_minor_locator(NullLocator())
