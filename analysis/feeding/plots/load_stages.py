"""Time that a message spends in each stage of an open load, for all variants at one rate."""

from ... import units
from ...load import Results
from ...plots.style import Drawing
from .. import open_load
from .stages import LABELS, bars, means_of, range_of
from .styles import Styles

NAME, TITLE = "load_stages", "Where the time goes at one offered rate"


def draw(results: Results, styles: Styles) -> Drawing | None:
    curves = open_load.curves(open_load.points(results))
    chosen = {}
    for task, of_task in curves.groupby("task", sort=False) if len(curves) else ():
        points = open_load.comparable(of_task).sort_values("rank")
        each = list(zip(points["variant"], points["members"]))
        means = {variant: found for variant, members in each if (found := means_of(results, members))}
        if means:
            ranges = {variant: range_of(results, members) for variant, members in each}
            chosen[f"{task}\n{units.messages_per_second(points['rate'].median())} due"] = means, ranges
    if not chosen:
        return None
    heights = [1.2 + 0.45 * len(means) for means, _ in chosen.values()]
    figure, panels = styles.figure(10, 0.5 + sum(heights), rows=len(chosen), height_ratios=heights)
    for axes, (title, found) in zip(panels, chosen.items()):
        bars(axes, *found)
        axes.set_title(title, loc="left", fontsize=10.5)
        axes.set_xlabel("" if axes is not panels[-1] else axes.get_xlabel())
    styles.legend(figure, panels, LABELS.values())
    return Drawing(
        NAME,
        TITLE,
        "Each segment is the mean (not the median) of a stage over sampled messages and repetitions, in the order in "
        "which a message passes them, starting when it was due; “sent” is the wait until the queue accepted it. The "
        "rate is the highest among those that most variants sustain. On the right: the sum of the means and, below it, "
        "the sums for the lowest and the highest repetition.",
        figure,
    )
