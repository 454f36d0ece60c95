"""The answer in a few lines: for each question, the best variant, the runner-up, and whether they clearly differ."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from . import figure_text, sections, stats, tables, units
from .catalogue import Experiment
from .document import Block, Heading, Table, Text
from .load import Results
from .ranking import clearly_better, ranked_figure

TITLE = "The answer"
COLUMNS = ["for", "best", "figure", "runner-up", "runner-up's figure", "ratio"]
NOTE = (
    f"{figure_text.NOTE} Each variant is shown with its best settings. “Ratio”: how many times better the best is. “No "
    "clear difference”: the two intervals overlap, or there is only one repetition and hence no interval."
)


@dataclass(frozen=True)
class Question:
    """A question about the points that `choose` selects. `worded_axes`: the axes that `wording` includes."""

    wording: Callable[[pd.Series], str]
    metric: str
    stable_if: str  # the metric's name in a point's `unstable`
    formatter: Callable
    larger_is_better: bool
    choose: Callable[[pd.DataFrame], pd.DataFrame] = lambda measured: measured
    worded_axes: tuple[str, ...] = ()


def of(results: Results) -> list[Block]:
    """The blocks from the experiment's section or, if it defines none, the best variant by each headline figure."""
    own = sections.of(results.experiment.name).answer
    return own(results) if own else blocks(results, general(results.experiment))


def general(experiment: Experiment, without: set[str] = frozenset()) -> list[Question]:
    """One question for each headline figure; for a distribution, its median."""
    return [
        _best(experiment, figure, "p50" if figure.distribution else "")
        for figure in experiment.figures.values()
        if figure.headline and figure.name not in without
    ]


def _best(experiment: Experiment, figure, percentile: str) -> Question:
    metric = experiment.metric(figure, percentile)
    text = f"{'highest' if figure.higher else 'lowest'} {tables.figure_name(figure, percentile)}"
    return Question(lambda _: text, metric.column, metric.name, experiment.formatter(figure.name), figure.higher)


def blocks(results: Results, questions: Sequence[Question], note: str = NOTE) -> list[Block]:
    """The table and its explanation; empty if no row counts."""
    found = table(results, questions)
    return [Heading(TITLE), found, Text(" ".join([note, *stats.explained(results)]), "note")] if found else []


def table(results: Results, questions: Sequence[Question]) -> Table | None:
    measured = usable(results)
    if measured.empty:
        return None
    shown = tables.varying(results)
    rows = [_row(results, question, measured, shown) for question in questions]
    rows = [row for row in rows if row]
    return Table(COLUMNS, rows, {2, 4, 5}) if rows else None


def usable(results: Results) -> pd.DataFrame:
    """The points of the competing variants with the main workload."""
    measured = stats.points(results.contending)
    return measured[measured["work"] == stats.main_work(measured)] if len(measured) else measured


def _row(results: Results, question: Question, measured: pd.DataFrame, shown: list[str]) -> list[str] | None:
    """The table's row for a question; None if no point answers it."""
    metric = question.metric
    chosen = question.choose(measured).dropna(subset=[metric])
    if chosen.empty:
        return None
    in_order = chosen.sort_values(metric, ascending=not question.larger_is_better, kind="stable")
    ranked = in_order.drop_duplicates("variant")
    first = ranked.iloc[0]
    shown = [axis for axis in shown if axis not in question.worded_axes]
    line = [question.wording(first), *_variant_cells(results, question, first, shown)]
    if len(ranked) == 1:
        return [*line, "no other was measured", units.NOTHING, units.NOTHING]
    second = ranked.iloc[1]
    ratio = first[metric] / second[metric] if question.larger_is_better else second[metric] / first[metric]
    doubt = "" if clearly_better(first, second, metric, question.larger_is_better) else "\nno clear difference"
    return [*line, *_variant_cells(results, question, second, shown), f"{units.ratio(ratio)}{doubt}"]


def _variant_cells(results: Results, question: Question, point: pd.Series, shown: list[str]) -> list[str]:
    """The variant with its settings, and its figure."""
    where = tables.place(results, point, shown)
    metric, larger = question.metric, question.larger_is_better
    figure = ranked_figure(question.formatter, point, metric, larger, question.stable_if)
    return [f"{point['variant']}\n{where}".strip(), figure]
