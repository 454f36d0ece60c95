"""Time that a message spends in each stage of an open load, for all variants at one rate."""

from ... import units
from ...load import Results
from ...plots.style import Drawing
from .. import open_load
from .stages import LABELS, bars, stage_times
from .styles import Styles

NAME, TITLE = "load_stages", "Where the time goes at one offered rate"
CAPTION = (
    "Each segment is the mean (not the median) of a stage over sampled messages and repetitions, in the order in which "
    "a message passes them, starting when it was due; “sent” is the wait until the queue accepted it. The rate is the "
    "highest among those that most variants sustain. On the right: the sum of the means and, below it, the sums for "
    "the lowest and the highest repetition."
)


def draw(results: Results, styles: Styles) -> Drawing | None:
    curves = open_load.curves(open_load.points(results))
    chosen = {}
    for task, of_task in curves.groupby("task", sort=False):
        points = open_load.comparable(of_task).sort_values("rank")
        if times := stage_times(results, points):
            chosen[f"{task}\n{units.messages_per_second(points['rate'].median())} due"] = times
    if not chosen:
        return None
    heights = [1.2 + 0.45 * len(times) for times in chosen.values()]
    figure, panels = styles.figure(10, 0.5 + sum(heights), rows=len(chosen), height_ratios=heights)
    for axes, (title, times) in zip(panels, chosen.items()):
        bars(axes, times)
        axes.set_title(title, loc="left", fontsize=10.5)
        axes.set_xlabel("" if axes is not panels[-1] else axes.get_xlabel())
    styles.legend(figure, panels, LABELS.values())
    return Drawing(NAME, TITLE, CAPTION, figure)
