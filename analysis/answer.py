"""The answer in a few lines: for each question the best variant, the next, and whether they can be told apart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from . import quoted, stability, stats, tables, units
from .catalogue import Experiment
from .document import Block, Heading, Table, Text
from .load import Results

TITLE = "The answer"
COLUMNS = ["for", "best", "figure", "runner-up", "runner-up's figure", "ratio"]
NOTE = (
    f"{quoted.NOTE} Each variant stands with its best settings. Ratio: how many times better the best is. No clear "
    "difference: the two intervals overlap, or a single repetition has none."
)


@dataclass(frozen=True)
class Question:
    """What is asked of the points that `choose` picks. `told`: the axes that `said` tells of the best point."""

    said: Callable[[pd.Series], str]
    metric: str
    stable_if: str  # the metric's name in a point's `unstable`
    formatter: Callable
    larger_is_better: bool
    choose: Callable[[pd.DataFrame], pd.DataFrame] = lambda measured: measured
    told: tuple[str, ...] = ()


def general(experiment: Experiment, without: set[str] = frozenset()) -> list[Question]:
    """The best of each headline figure; of a distribution its median."""
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
    """The table and how to read it; nothing where no row counts."""
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
    """The contestants' points of the main workload."""
    measured = stats.points(results.contending)
    return measured[measured["work"] == stats.main_work(measured)] if len(measured) else measured


def _row(results: Results, question: Question, measured: pd.DataFrame, shown: list[str]) -> list[str] | None:
    """None where no point answers the question."""
    metric = question.metric
    chosen = question.choose(measured).dropna(subset=[metric])
    if chosen.empty:
        return None
    ranked = chosen.sort_values(metric, ascending=not question.larger_is_better, kind="stable").drop_duplicates("variant")
    first = ranked.iloc[0]
    shown = [axis for axis in shown if axis not in question.told]
    line = [question.said(first), *_said(results, question, first, shown)]
    if len(ranked) == 1:
        return [*line, "nothing else was measured", units.NOTHING, units.NOTHING]
    second = ranked.iloc[1]
    ratio = first[metric] / second[metric] if question.larger_is_better else second[metric] / first[metric]
    doubt = "" if told_apart(question, first, second) else "\nno clear difference"
    return [*line, *_said(results, question, second, shown), f"{units.ratio(ratio)}{doubt}"]


def _said(results: Results, question: Question, point: pd.Series, shown: list[str]) -> list[str]:
    """Who, and its figure."""
    figure = quoted.figure(question.formatter, point, question.metric, question.larger_is_better)
    alone = "\none repetition" if point["repetitions"] == 1 else ""
    where = tables.place(results, point, shown)
    return [f"{point['variant']}\n{where}".strip(), f"{figure}{alone}{stability.mark(point, question.stable_if)}"]


def told_apart(question: Question, first: pd.Series, second: pd.Series) -> bool:
    """Whether the intervals leave room between them. What only bounds the second's figure may hide a better one."""
    better, worse = (first, second) if question.larger_is_better else (second, first)
    # Never, where an end is NaN.
    return bool(better[f"{question.metric}_low"] > worse[f"{question.metric}_high"] and not second["limited"])
