"""The fastest strategy of each pipeline; rates of different pipelines, items or costs are not comparable."""

import pandas as pd

from .. import answer, tables
from ..answer import Question
from ..document import Block
from ..load import Results
from . import points as overlap


def blocks(results: Results) -> list[Block]:
    return answer.blocks(results, questions(results))


def questions(results: Results) -> list[Question]:
    measured = overlap.read(results)
    return [
        _fastest(results, measured[measured["pipeline"] == pipeline]) for pipeline in overlap.pipelines(measured)
    ]


def _fastest(results: Results, some: pd.DataFrame) -> Question:
    experiment = results.experiment
    shared = overlap.compared(results, some).iloc[0]
    keys = ["pipeline", "machine", *overlap.setting_axes(results)]
    at = [shared[key] for key in keys]
    told = tables.place(results, shared, [axis for axis in keys[2:] if axis != "device"])
    metric = experiment.metric(experiment.figures[experiment.rate])
    return Question(
        lambda point: f"{point['pipeline']}: most items per second\n{told}",
        metric.column,
        metric.name,
        experiment.formatter(experiment.rate),
        True,
        lambda measured: measured[(measured[keys] == at).all(axis=1)],
        tuple(keys),
    )
