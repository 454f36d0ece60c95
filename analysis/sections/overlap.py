"""The section of the experiment `overlap`: the fastest strategy of each pipeline, a table per pipeline, the figures."""

from functools import partial

import pandas as pd

from .. import answer, tables
from ..document import Block
from ..load import Results
from ..overlap import details, plots, strategies
from ..overlap import points as overlap
from ..plots.draw_all import draw_all
from ..report import pictures
from . import Section


def questions(results: Results) -> list[answer.Question]:
    """One question per pipeline, because rates of different pipelines, items or costs are not comparable."""
    measured = overlap.read(results)
    return [
        _fastest(results, measured[measured["pipeline"] == pipeline]) for pipeline in overlap.pipelines(measured)
    ]


def _fastest(results: Results, some: pd.DataFrame) -> answer.Question:
    experiment = results.experiment
    shared = overlap.compared(results, some).iloc[0]
    keys = ["pipeline", "machine", *overlap.setting_axes(results)]
    at = [shared[key] for key in keys]
    setting = tables.place(results, shared, overlap.named_axes(results))
    metric = experiment.metric(experiment.figures[experiment.rate])
    return answer.Question(
        lambda point: f"{point['pipeline']}: most items per second\n{setting}",
        metric.column,
        metric.name,
        experiment.formatter(experiment.rate),
        True,
        lambda measured: measured[(measured[keys] == at).all(axis=1)],
        tuple(keys),
    )


def _answer(results: Results) -> list[Block]:
    return answer.blocks(results, questions(results))


SECTION = Section(
    columns=details.columns,
    doubt=details.doubt,
    linear=details.LINEAR,
    compared=details.COMPARED,
    value_labels=details.VALUE_LABELS,
    draw=partial(draw_all, plots.ALL),
    headline=plots.by_strategy.NAME,
    answer=_answer,
    body=lambda results, *shapes: [*strategies.blocks(results), *pictures(*shapes)],
)
