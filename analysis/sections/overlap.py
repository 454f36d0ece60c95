"""The section of the `overlap` experiment: the fastest strategy of each pipeline, a table per pipeline, the figures."""

import math
from functools import partial

import pandas as pd

from .. import answer, tables
from ..document import Block
from ..load import Results
from ..overlap import plots, strategies
from ..overlap import points as overlap
from ..plots.draw_all import draw_all
from ..report import pictures
from . import Section, wrong_results


def _columns(row: dict) -> dict:
    """The stages, and whether there is nothing to save."""
    details = row.get("details") or {}
    serial = details.get("serial_ns") or {}
    return {
        "stage_times": details.get("stages") or [],
        "no_saving": details.get("no_saving") or {},
        "serial_ns": serial.get("p50", math.nan),
    }


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
    columns=_columns,
    doubt=wrong_results("items were wrong"),
    linear=("overlap_efficiency", "overlap_efficiency_alone"),
    compared={"overlap_efficiency": ()},  # ratios of efficiencies near 0 are meaningless; the speedup is judged
    value_labels={
        "stages": "{:g} stages".format,
        "items": "{:g} items".format,
        "cost_us": "{:g} µs per kernel".format,
        "stage_blocks": "{:g} blocks per stage".format,
        "balance": lambda value: f"cost {value}" if value == "even" else f"cost by {value}",
    },
    draw=partial(draw_all, plots.ALL),
    headline=plots.by_strategy.NAME,
    answer=_answer,
    body=lambda results, *shapes: [*strategies.blocks(results), *pictures(*shapes)],
)
