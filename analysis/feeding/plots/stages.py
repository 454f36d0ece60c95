"""Mean time of a lone message in each stage; the means add up to the mean of the total time."""

import pandas as pd
from matplotlib.axes import Axes

from ... import units
from ...load import Results
from ...plots.style import Drawing
from .. import choose
from .styles import Styles

NAME, TITLE = "stages", "Where a lone message's time goes"
# Stages in the order in which a message passes them; a stage has the same style in every figure. The colours are Okabe
# and Ito's eight, light next to dark. Hatches distinguish neighbours in black and white, and distinguish the stages
# that only brokers or only resident kernels have from the other stages.
LOOKS = {
    "sent": ("#999999", "xx"),
    "brokered": ("#56B4E9", "oo"),
    "dequeued": ("#0072B2", ""),
    "claimed": ("#0072B2", "--"),
    "copied_in": ("#E69F00", "//"),
    "kernel_start": ("#009E73", ""),
    "kernel_end": ("#F0E442", ".."),
    "copied_out": ("#D55E00", ""),
    "returned": ("#56B4E9", "\\\\"),
    "collected": ("#CC79A7", ""),
}
CAPTION = (
    "One message is in flight, with the smallest payload. Each segment is the mean (not the median) of a stage over "
    "the repetitions, in the order in which a message passes them. On the right: the sum of the means and, below it, "
    "the sums for the lowest and the highest repetition."
)
MISSING = "No ok lone-message cell (window 1, producers 1) has stage times."
LABELS = {stage: stage.replace("_", " ") for stage in LOOKS}


def draw(results: Results, measured: pd.DataFrame, styles: Styles) -> Drawing:
    alone = choose.lone(choose.main_work(measured))
    times = stage_times(results, alone)
    if not times:
        return Drawing(NAME, TITLE, "", None, MISSING)
    figure, (axes,) = styles.figure(10, 1.5 + 0.45 * len(times))
    bars(axes, times)
    styles.legend(figure, [axes])
    return Drawing(NAME, TITLE, CAPTION, figure)


def stage_times(results: Results, points: pd.DataFrame) -> dict[str, list[dict[str, float]]]:
    """By variant, the mean time of each stage, ns, in each repetition that has stage times."""
    found = {}
    for variant, members in zip(points["variant"], points["members"]):
        rows = [row for row in results.cells.loc[members, "stages"] if isinstance(row, dict)]
        found[variant] = [{name: stage["mean"] for name, stage in row.items()} for row in rows]
    return {variant: rows for variant, rows in found.items() if any(rows)}


def bars(axes: Axes, times: dict[str, list[dict[str, float]]]) -> None:
    """Draws a bar for each variant: the shares of its stages, and their total time with the range of the
    repetitions."""
    table = pd.DataFrame({variant: pd.DataFrame(rows).fillna(0).mean() for variant, rows in times.items()}).T.fillna(0)
    table = table[[name for name in LOOKS if name in table]]
    shares = table.div(table.sum(axis=1), axis=0) * 100
    start = pd.Series(0.0, index=table.index)
    for stage in table.columns:
        fill, hatch = LOOKS[stage]
        edge = {"edgecolor": "#333333", "linewidth": 0.5, "hatch": hatch}
        axes.barh(table.index, shares[stage], 0.6, left=start, color=fill, label=LABELS[stage], **edge)
        start += shares[stage]
    for place, (variant, total) in enumerate(table.sum(axis=1).items()):
        sums = [sum(row.values()) for row in times[variant]]
        text = units.spread(units.nanoseconds, total, min(sums), max(sums)).replace(" (", "\n(")
        axes.annotate(text, (100, place), xytext=(5, 0), textcoords="offset points", va="center", fontsize=9.5)
    axes.invert_yaxis()
    axes.set_xlim(0, 109)
    axes.set_xlabel("share of the mean time (%); total on the right")
    axes.grid(axis="y", visible=False)
