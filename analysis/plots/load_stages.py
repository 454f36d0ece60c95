"""Where a message's time goes in an open load: the stages of all variants at one rate."""

from .. import open_load, units
from ..load import Results
from .stages import LABELS, bars, means_of
from .style import Drawing, Styles, new_figure, shared_legend

NAME, TITLE = "load_stages", "Where the time goes at one offered rate"


def draw(results: Results, styles: Styles) -> Drawing | None:
    curves = open_load.curves(open_load.points(results))
    chosen = {}
    for task, of_task in curves.groupby("task", sort=False) if len(curves) else ():
        points = open_load.comparable(of_task)
        means = {
            point.variant: found
            for point in points.sort_values("rank").itertuples()
            if (found := means_of(results, point.members))
        }
        if means:
            chosen[f"{task}: {units.messages_per_second(points['rate'].median())} due"] = means
    if not chosen:
        return None
    heights = [1 + 0.45 * len(means) for means in chosen.values()]
    figure, panels = new_figure(10, 0.5 + sum(heights), rows=len(chosen), height_ratios=heights)
    for axes, (title, means) in zip(panels, chosen.items()):
        bars(axes, means)
        axes.set_title(title, loc="left")
        axes.set_xlabel("" if axes is not panels[-1] else axes.get_xlabel())
    shared_legend(figure, panels, LABELS.values())
    return Drawing(
        NAME,
        TITLE,
        "Mean of each stage over sampled messages and repetitions, in the order of a message's way, from when it was "
        "due; “sent” is the wait until the queue took it. The rate is the highest of those that the most variants "
        "sustain.",
        figure,
    )
