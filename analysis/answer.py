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
    if found is None:
        return []
    named = pd.concat([ranked.head(2) for _, ranked in _answered(results, questions)])
    explained = [note, stats.chosen_sentence(named), absent(results), *stats.explained(results)]
    return [Heading(TITLE), found, Text(" ".join(filter(None, explained)), "note")]


def table(results: Results, questions: Sequence[Question]) -> Table | None:
    shown = tables.varying(results)
    rows = [_row(results, question, ranked, shown) for question, ranked in _answered(results, questions)]
    return Table(COLUMNS, rows, {2, 4, 5}) if rows else None


def _answered(results: Results, questions: Sequence[Question]) -> list[tuple[Question, pd.DataFrame]]:
    """The questions that some point answers, each with the best point of each variant, best first."""
    measured = usable(results)
    found = [(question, _ranked(question, measured)) for question in questions] if len(measured) else []
    return [(question, ranked) for question, ranked in found if len(ranked)]


def absent(results: Results) -> str:
    """A line that names the members in the catalogue that have no row that counts; empty if all competed."""
    names = []
    for axis in results.experiment.variant:
        members = results.experiment.members.get(axis, [])
        seen = {*results.counted.get(axis, []), *(params.get(axis) for params in results.tried)}
        idle = results.experiment.idle
        names += [one["name"] for one in members if one["name"] not in seen and one["name"] not in idle]
    return f"Did not compete: {', '.join(names)}." if names else ""


def usable(results: Results) -> pd.DataFrame:
    """The points of the competing variants with the main workload."""
    measured = stats.points(results.contending)
    return measured[measured["work"] == stats.main_work(measured)] if len(measured) else measured


def _ranked(question: Question, measured: pd.DataFrame) -> pd.DataFrame:
    """The best point of each variant, best first; empty if no point answers the question."""
    candidates = stats.counted(question.choose(measured).dropna(subset=[question.metric]))
    best = stats.best(candidates, "variant", question.metric, question.larger_is_better)
    return best.sort_values(question.metric, ascending=not question.larger_is_better, kind="stable")


def _row(results: Results, question: Question, ranked: pd.DataFrame, shown: list[str]) -> list[str]:
    """The table's row for a question."""
    metric = question.metric
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
    of = f"\n1 of {point['of']:.0f}" if point["of"] > 1 else ""
    return [f"{point['variant']}\n{where}".strip() + of, figure]
