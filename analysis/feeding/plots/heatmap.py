"""Throughput by block size and stream count: shows where the launch configuration matters and where it does not."""

import matplotlib
import numpy as np
import pandas as pd

from ... import figure_text, units
from ...load import Results
from ...plots.style import Drawing
from .styles import ON_BRIGHT, ON_DIM, Styles, by_variant

NAME, TITLE = "block_streams", "Block size and stream count"
RATE = "messages_per_second"
ACROSS = ("streams", "lanes")  # a resident kernel has lanes instead of streams
CAPTION = (
    "Each cell shows verified messages per second (median of the repetitions). The best cell of each panel is framed, "
    "and the shade is the share of that best. All other parameters of a panel are equal."
)
UNSTABLE = " “Unstable”: the repetitions differ by 1.5 times or more."
MISSING = (
    "No queue and transfer was measured at two or more block sizes and two or more stream counts (or lanes): sweep "
    "block and streams together."
)


def draw(results: Results, measured: pd.DataFrame, styles: Styles) -> Drawing:
    grids = [grid for variant, points in by_variant(measured) if (grid := _grid(variant, points, results.axes))]
    if not grids:
        return Drawing(NAME, TITLE, "", None, MISSING)
    columns = min(3, len(grids))
    rows = -(-len(grids) // columns)
    figure, panels = styles.figure(0.6 + 4.3 * columns, 0.4 + 3.9 * rows, rows=rows, columns=columns)
    for axes, grid in zip(panels, grids):
        _panel(axes, *grid)
    for axes in panels[len(grids) :]:
        axes.set_axis_off()
    unstable = any("unstable" in str(text) for _, _, texts in grids for text in texts.to_numpy().flat)
    return Drawing(NAME, TITLE, CAPTION + (UNSTABLE if unstable else ""), figure)


def _grid(variant: str, chosen: pd.DataFrame, axes: list[str]) -> tuple[str, pd.DataFrame, pd.DataFrame] | None:
    """The variant's title, rates and cell labels by block and streams (or lanes), with everything else equal. The
    fullest table wins; among equally full ones, the fastest."""
    chosen = chosen.assign(text=[_text(point) for _, point in chosen.iterrows()])
    for across in [axis for axis in ACROSS if axis in axes]:
        others = [axis for axis in axes if axis not in ("block", across)]
        groups = chosen.groupby(others, dropna=False)
        groups = [group for _, group in groups if group["block"].nunique() > 1 and group[across].nunique() > 1]
        if groups:
            fullest = max(groups, key=lambda group: (group[RATE].count(), group[RATE].max()))
            first = fullest.iloc[0]
            title = f"{variant}\n{first['work']}, {units.size(first['payload_bytes'])}, window {first['window']:g}"
            return title, *(fullest.pivot(index="block", columns=across, values=name) for name in (RATE, "text"))
    return None


def _text(point: pd.Series) -> str:
    unstable = "\nunstable" if "throughput" in point["unstable"] else ""
    return figure_text.sign(point, True) + units.number(point[RATE]) + unstable


def ink(share: float) -> str:
    """The text colour for a cell with this share of the best."""
    return ON_BRIGHT if share > 0.55 else ON_DIM


def _panel(axes, title: str, rates: pd.DataFrame, texts: pd.DataFrame) -> None:
    share = (rates / rates.max().max()).to_numpy()
    axes.imshow(share, cmap=matplotlib.colormaps["cividis"], vmin=0, vmax=1, aspect="auto", origin="lower")
    for row, column in zip(*np.isfinite(share).nonzero()):
        style = {"ha": "center", "va": "center", "fontsize": 9.5, "color": ink(share[row, column])}
        if share[row, column] == 1:
            style |= {"fontweight": "bold", "bbox": {"edgecolor": ink(1), "facecolor": "none", "linewidth": 1.5}}
        axes.text(column, row, texts.iloc[row, column], **style)
    axes.set_xticks(range(len(rates.columns)), [f"{value:g}" for value in rates.columns])
    axes.set_yticks(range(len(rates.index)), [f"{value:g}" for value in rates.index])
    axes.set_xlabel("streams" if rates.columns.name == "streams" else "lanes of the resident kernel")
    axes.set_ylabel("block (threads)")
    axes.set_title(title, loc="left", fontsize=10.5)
    axes.grid(visible=False)
