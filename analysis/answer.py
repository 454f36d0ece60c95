"""The answer in a few lines: for each question the best variant, the next, and whether they can be told apart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.stats import t as student

from . import stability, stats, tables, units
from .catalogue import Experiment
from .document import Block, Heading, Table, Text
from .load import Results

TITLE = "The answer"
CONFIDENCE = 0.95
ROUNDING = 1 / 256  # a percentile is the middle of a bucket, which is up to 1/128 of its value wide
LIMITED = "driver_bound"  # the cause of a row that says how much there is at least
COLUMNS = ["for", "best", "figure", "runner-up", "runner-up's figure", "ratio"]
NOTE = (
    "Means over the repetitions, ± half of their 95 % interval (Student's t); the tables below show medians. Each "
    "variant stands with its best settings. Ratio: how many times better the best is. No clear difference: the two "
    "intervals overlap, or a single repetition has none. At least, at most: the load generator was the limit."
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
    return [Heading(TITLE), found, Text(note, "note")] if found else []


def table(results: Results, questions: Sequence[Question]) -> Table | None:
    measured = usable(results)
    if measured.empty:
        return None
    shown = tables.varying(results)
    rows = [_row(results, question, measured, shown) for question in questions]
    rows = [row for row in rows if row]
    return Table(COLUMNS, rows, {2, 4, 5}) if rows else None


def usable(results: Results) -> pd.DataFrame:
    """The contestants' points of the main workload, those that the load generator limited among them."""
    cells = results.cells
    limited = (cells["status"] == "invalid") & (cells["cause"] == LIMITED)
    counted = cells[(limited | (cells["status"] == "ok")) & cells["variant"].isin(results.contest)]
    if counted.empty:
        return counted
    measured = stats.points(replace(results, cells=counted.assign(status="ok")))
    measured["limited"] = [bool(limited[members].any()) for members in measured["members"]]
    experiment, found = results.experiment, {}
    for figure in experiment.figures.values():
        metric = experiment.metric(figure, "p50" if figure.distribution else "").column
        samples = [cells.loc[members, metric].to_numpy(dtype=float) for members in measured["members"]]
        finest = ROUNDING if figure.distribution else 0
        found[f"{metric}_mean"] = [values.mean() for values in samples]
        found[f"{metric}_half"] = [max(half_width(values), finest * values.mean()) for values in samples]
    measured = measured.assign(**found)
    return measured[measured["work"] == stats.main_work(measured)]


def half_width(values: np.ndarray) -> float:
    """Of the mean's 95 % interval; NaN of a single value, which says nothing of its spread."""
    if len(values) < 2:
        return float("nan")
    return float(student.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))


def _row(results: Results, question: Question, measured: pd.DataFrame, shown: list[str]) -> list[str] | None:
    """None where no point answers the question."""
    mean = f"{question.metric}_mean"
    chosen = question.choose(measured).dropna(subset=[mean])
    if chosen.empty:
        return None
    ranked = chosen.sort_values(mean, ascending=not question.larger_is_better, kind="stable").drop_duplicates("variant")
    first = ranked.iloc[0]
    shown = [axis for axis in shown if axis not in question.told]
    line = [question.said(first), *_said(results, question, first, shown)]
    if len(ranked) == 1:
        return [*line, "nothing else was measured", units.NOTHING, units.NOTHING]
    second = ranked.iloc[1]
    ratio = first[mean] / second[mean] if question.larger_is_better else second[mean] / first[mean]
    doubt = "" if told_apart(question, first, second) else "\nno clear difference"
    return [*line, *_said(results, question, second, shown), f"{units.ratio(ratio)}{doubt}"]


def _said(results: Results, question: Question, point: pd.Series, shown: list[str]) -> list[str]:
    """Who, and its figure."""
    bound = ("at least " if question.larger_is_better else "at most ") if point["limited"] else ""
    mean, half = point[f"{question.metric}_mean"], point[f"{question.metric}_half"]
    figure = bound + units.plus_minus(question.formatter, mean, half)
    alone = "\none repetition" if np.isnan(half) else ""
    where = tables.place(results, point, shown)
    return [f"{point['variant']}\n{where}".strip(), f"{figure}{alone}{stability.mark(point, question.stable_if)}"]


def told_apart(question: Question, first: pd.Series, second: pd.Series) -> bool:
    """Whether the intervals leave room between them. What only bounds the second's figure may hide a better one."""
    mean, half = f"{question.metric}_mean", f"{question.metric}_half"
    apart = abs(first[mean] - second[mean]) > first[half] + second[half]  # never, where an end is NaN
    return bool(apart and not second["limited"])
