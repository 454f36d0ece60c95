"""The answer in three lines: what to use for small messages, for large ones, and for one message alone."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.stats import t as student

from . import stability, stats, tables, units
from .document import Block, Heading, Table, Text
from .load import Results

TITLE = "The answer"
CONFIDENCE = 0.95
ROUNDING = {"p50": 1 / 256}  # a percentile is the middle of a bucket, which is up to 1/128 of its value wide
DRIVER_BOUND = "driver-bound"  # how the reason of such a row begins
COLUMNS = ["for", "best", "figure", "runner-up", "runner-up's figure", "ratio"]
NOTE = (
    "Means over the repetitions, ± half of their 95 % interval (Student's t); the tables and figures below show "
    "medians. Each queue and transfer stands with its best settings. Ratio: how many times better the best is. No clear "
    "difference: the two intervals overlap, or a single repetition has none. At least, at most: the load generator was "
    "the limit, not the queue. The null queue delivers nothing and does not compete."
)


@dataclass(frozen=True)
class Question:
    """What is asked of the points that `choose` picks."""

    said: str
    metric: str
    stable_if: str  # the metric's name in a point's `unstable`
    formatter: Callable
    larger_is_better: bool
    choose: Callable[[pd.DataFrame], pd.DataFrame]


def blocks(results: Results) -> list[Block]:
    """The table and how to read it; nothing where no closed load counts."""
    found = table(results)
    return [Heading(TITLE), found, Text(NOTE, "note")] if found else []


def table(results: Results) -> Table | None:
    measured = usable(results)
    if measured.empty:
        return None
    shown = [axis for axis in tables.varying(results.closed) if axis != "payload_bytes"]
    rows = [_row(question, measured, shown) for question in QUESTIONS]
    return Table(COLUMNS, [row for row in rows if row], {2, 4, 5})


def usable(results: Results) -> pd.DataFrame:
    """The contestants' points of the main workload, those that the load generator limited among them."""
    cells = results.closed.cells
    limited = (cells["status"] == "invalid") & cells["reason"].str.startswith(DRIVER_BOUND)
    counted = cells[(limited | (cells["status"] == "ok")) & cells["variant"].isin(results.contest)]
    if counted.empty:
        return counted
    measured = stats.points(replace(results, cells=counted.assign(status="ok")))
    measured["limited"] = [bool(limited[members].any()) for members in measured["members"]]
    for metric in dict.fromkeys(question.metric for question in QUESTIONS):
        samples = [cells.loc[members, metric].to_numpy() for members in measured["members"]]
        finest = ROUNDING.get(metric, 0)
        measured[f"{metric}_mean"] = [values.mean() for values in samples]
        measured[f"{metric}_half"] = [max(half_width(values), finest * values.mean()) for values in samples]
    return measured[measured["work"] == stats.main_work(measured)]


def half_width(values: np.ndarray) -> float:
    """Of the mean's 95 % interval; NaN of a single value, which says nothing of its spread."""
    if len(values) < 2:
        return float("nan")
    return float(student.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))


def _smallest(measured: pd.DataFrame) -> pd.DataFrame:
    return measured[measured["payload_bytes"] == measured["payload_bytes"].min()]


def _largest_common(measured: pd.DataFrame) -> pd.DataFrame:
    """At the largest payload that every queue was measured with; none where they share none."""
    shared = set.intersection(*(set(points["payload_bytes"]) for _, points in measured.groupby("queue")))
    return measured[measured["payload_bytes"] == max(shared, default=-1)]


def _alone(measured: pd.DataFrame) -> pd.DataFrame:
    return _smallest(measured[(measured["window"] == 1) & (measured["producers"] == 1)])


QUESTIONS = (
    Question(
        "small messages ({}): most verified messages", "messages_per_second", "throughput",
        units.messages_per_second, True, _smallest,
    ),
    Question(
        "large messages ({}): most verified bytes, one way", "bytes_per_second", "throughput",
        units.bytes_per_second, True, _largest_common,
    ),
    Question("lone messages ({}): lowest p50", "p50", "p50", units.nanoseconds, False, _alone),
)  # fmt: skip


def _row(question: Question, measured: pd.DataFrame, shown: list[str]) -> list[str] | None:
    """None where no point answers the question."""
    mean = f"{question.metric}_mean"
    chosen = question.choose(measured).dropna(subset=[mean])
    if chosen.empty:
        return None
    ranked = chosen.sort_values(mean, ascending=not question.larger_is_better, kind="stable").drop_duplicates("variant")
    first = ranked.iloc[0]
    line = [question.said.format(units.size(first["payload_bytes"])), *_said(question, first, shown)]
    if len(ranked) == 1:
        return [*line, "nothing else was measured", units.NOTHING, units.NOTHING]
    second = ranked.iloc[1]
    ratio = first[mean] / second[mean] if question.larger_is_better else second[mean] / first[mean]
    doubt = "" if told_apart(question, first, second) else "\nno clear difference"
    return [*line, *_said(question, second, shown), f"{units.ratio(ratio)}{doubt}"]


def _said(question: Question, point: pd.Series, shown: list[str]) -> list[str]:
    """Who, and its figure."""
    bound = ("at least " if question.larger_is_better else "at most ") if point["limited"] else ""
    mean, half = point[f"{question.metric}_mean"], point[f"{question.metric}_half"]
    figure = bound + units.plus_minus(question.formatter, mean, half)
    alone = "\none repetition" if np.isnan(half) else ""
    where = tables.place(point, shown)
    return [f"{point['variant']}\n{where}".strip(), f"{figure}{alone}{stability.mark(point, question.stable_if)}"]


def told_apart(question: Question, first: pd.Series, second: pd.Series) -> bool:
    """Whether the intervals leave room between them. What only bounds the second's figure may hide a better one."""
    mean, half = f"{question.metric}_mean", f"{question.metric}_half"
    apart = abs(first[mean] - second[mean]) > first[half] + second[half]  # never, where an end is NaN
    return bool(apart and not second["limited"])
