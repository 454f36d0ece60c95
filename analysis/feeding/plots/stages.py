"""Mean time of a lone message in each stage; the means add up to the mean of the total time."""

import pandas as pd
from matplotlib.axes import Axes

from ... import stats, units
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
LABELS = {stage: stage.replace("_", " ") for stage in LOOKS}


def draw(results: Results, measured: pd.DataFrame, styles: Styles) -> Drawing:
    alone = choose.lone(measured[measured["work"] == stats.main_work(measured)]) if len(measured) else measured
    lone = list(zip(alone["variant"], alone["members"])) if len(alone) else []
    means = {variant: found for variant, members in lone if (found := means_of(results, members))}
    if not means:
        return Drawing(
            NAME, TITLE, "", None, "No ok lone-message cell (window 1, producers 1) has stage times."
        )
    figure, (axes,) = styles.figure(10, 1.5 + 0.45 * len(means))
    bars(axes, means, {variant: range_of(results, members) for variant, members in lone})
    styles.legend(figure, [axes])
    return Drawing(
        NAME,
        TITLE,
        "One message is in flight, with the smallest payload. Each segment is the mean (not the median) of a stage "
        "over the repetitions, in the order in which a message passes them. On the right: the sum of the means and, "
        "below it, the sums for the lowest and the highest repetition.",
        figure,
    )


def bars(axes: Axes, means: dict[str, dict[str, float]], ranges: dict[str, tuple[float, float]]) -> None:
    """Draws a bar for each variant: the shares of its stages and their total time. `means`: time by stage, ns;
    `ranges`: the lowest and the highest total time of the repetitions, ns."""
    table = pd.DataFrame(means).T.fillna(0)
    table = table[[name for name in LOOKS if name in table]]
    shares = table.div(table.sum(axis=1), axis=0) * 100
    start = pd.Series(0.0, index=table.index)
    for stage in table.columns:
        fill, hatch = LOOKS[stage]
        axes.barh(
            table.index,
            shares[stage],
            left=start,
            color=fill,
            edgecolor="#333333",
            linewidth=0.5,
            height=0.6,
            hatch=hatch,
            label=LABELS[stage],
        )
        start += shares[stage]
    for place, (variant, total) in enumerate(table.sum(axis=1).items()):
        text = units.spread(units.nanoseconds, total, *ranges[variant]).replace(" (", "\n(")
        axes.annotate(text, (100, place), xytext=(5, 0), textcoords="offset points", va="center",
                      fontsize=9.5)
    axes.invert_yaxis()
    axes.set_xlim(0, 109)
    axes.set_xlabel("share of the mean time (%); total on the right")
    axes.grid(axis="y", visible=False)


def means_of(results: Results, members: list[int]) -> dict[str, float]:
    """Mean time of each stage, ns, over the repetitions that have stage times."""
    rows = _rows(results, members)
    return {name: sum(row[name]["mean"] for row in rows if name in row) / len(rows) for row in rows for name in row}


def range_of(results: Results, members: list[int]) -> tuple[float, float]:
    """The lowest and the highest repetition's sum of all stages, ns."""
    sums = [sum(stage["mean"] for stage in row.values()) for row in _rows(results, members)]
    return min(sums, default=float("nan")), max(sums, default=float("nan"))


def _rows(results: Results, members: list[int]) -> list[dict]:
    return [stages for stages in results.cells.loc[members, "stages"] if isinstance(stages, dict)]
