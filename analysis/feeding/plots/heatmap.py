"""Throughput by block size and stream count: shows where the launch configuration matters and where it does not."""

import matplotlib
import pandas as pd

from ... import units
from ...load import Results
from ...plots.style import Drawing
from .styles import Styles

NAME, TITLE = "block_streams", "Block size and stream count"
ACROSS = ("streams", "lanes")  # a resident kernel has lanes instead of streams
ON_BRIGHT, ON_DIM = "#111111", "#F8F8F8"  # neither black nor white, because dark mode swaps those


def draw(results: Results, measured: pd.DataFrame, styles: Styles) -> Drawing:
    grids = [
        grid
        for variant in measured.sort_values("rank")["variant"].unique()
        if (grid := _grid(variant, measured[measured["variant"] == variant], results.axes))
    ]
    if not grids:
        return Drawing(
            NAME,
            TITLE,
            "",
            None,
            "No queue and transfer was measured at two or more block sizes and two or more "
            "stream counts (or lanes): sweep block and streams together.",
        )
    columns = min(3, len(grids))
    rows = -(-len(grids) // columns)
    figure, panels = styles.figure(0.6 + 4.3 * columns, 0.4 + 3.9 * rows, rows=rows, columns=columns)
    for axes, grid in zip(panels, grids):
        _panel(axes, *grid)
    for axes in panels[len(grids) :]:
        axes.set_axis_off()
    return Drawing(
        NAME,
        TITLE,
        "Each cell shows verified messages per second (median of the repetitions). The best cell of each panel is "
        "framed, and the shade is the share of that best. All other parameters of a panel are equal."
        + (" “Unstable”: the repetitions differ by 1.5 times or more." if any(grid[-1] for grid in grids) else ""),
        figure,
    )


def _grid(variant: str, chosen: pd.DataFrame, axes: list[str]):
    """The variant's table of block x streams (or lanes), with everything else equal, and the cells (block, streams)
    that the load generator limited or that are unstable. The fullest table wins; among equally full ones, the
    fastest."""
    for across in [axis for axis in ACROSS if axis in axes]:
        others = [axis for axis in axes if axis not in ("block", across)]
        tables = []
        for fixed, group in chosen.groupby(others, dropna=False):
            if group["block"].nunique() > 1 and group[across].nunique() > 1:
                table = group.pivot(index="block", columns=across, values="messages_per_second")
                shaky = group[["throughput" in names for names in group["unstable"]]]
                unstable = set(zip(shaky["block"], shaky[across]))
                bound = group[group["limited"]]
                limited = set(zip(bound["block"], bound[across]))
                found = dict(zip(others, fixed)) | {"work": group["work"].iloc[0]}
                tables.append((table.notna().sum().sum(), table.max().max(), table, limited, unstable, found))
        if tables:
            *_, table, limited, unstable, fixed = max(tables, key=lambda found: found[:2])
            context = f"{fixed['work']}, {units.size(fixed['payload_bytes'])}, window {fixed['window']:g}"
            return variant, across, table, context, limited, unstable
    return None


def ink(share: float) -> str:
    """The text colour for a cell with this share of the best."""
    return ON_BRIGHT if share > 0.55 else ON_DIM


def _panel(axes, variant: str, across: str, table: pd.DataFrame, context: str, limited: set, unstable: set) -> None:
    share = table / table.max().max()
    axes.imshow(share, cmap=matplotlib.colormaps["cividis"], vmin=0, vmax=1, aspect="auto", origin="lower")
    for row in range(len(table.index)):
        for column in range(len(table.columns)):
            value = table.iloc[row, column]
            if pd.isna(value):
                continue
            best = share.iloc[row, column] == 1
            place = (table.index[row], table.columns[column])
            sign, mark = "≥" if place in limited else "", "\nunstable" if place in unstable else ""
            axes.text(
                column,
                row,
                sign + units.number(value) + mark,
                ha="center",
                va="center",
                fontsize=9.5,
                color=ink(share.iloc[row, column]),
                fontweight="bold" if best else "normal",
                bbox={"edgecolor": ink(1), "facecolor": "none", "linewidth": 1.5} if best else None,
            )
    axes.set_xticks(range(len(table.columns)), [f"{value:g}" for value in table.columns])
    axes.set_yticks(range(len(table.index)), [f"{value:g}" for value in table.index])
    axes.set_xlabel("streams" if across == "streams" else "lanes of the resident kernel")
    axes.set_ylabel("block (threads)")
    axes.set_title(f"{variant}\n{context}", loc="left", fontsize=10.5)
    axes.grid(visible=False)
