"""Questions that the report answers about queues: which is best for small, large and lone messages."""

import pandas as pd

from .. import answer, figure_text, units
from ..answer import Question
from ..document import Block
from ..load import Results
from . import choose

NOTE = (
    f"{figure_text.NOTE} Each queue and transfer is shown with its best settings. “Ratio”: how many times better the best "
    "is. “No clear difference”: the two intervals overlap, or there is only one repetition and hence no interval. The "
    "null queue delivers nothing and does not compete."
)
OWN = {"messages_per_second", "bytes_per_second", "latency_ns"}  # the figures that the questions are about


def blocks(results: Results) -> list[Block]:
    return answer.blocks(results.closed, questions(results), NOTE)


def questions(results: Results) -> list[Question]:
    """The three questions, and one for each further headline figure."""
    return [*QUESTIONS, *answer.general(results.experiment, OWN)]


def _smallest(measured: pd.DataFrame) -> pd.DataFrame:
    return measured[measured["payload_bytes"] == measured["payload_bytes"].min()]


def _largest_common(measured: pd.DataFrame) -> pd.DataFrame:
    """The points at the largest payload with which every queue was measured; empty if the queues share no payload."""
    shared = set.intersection(*(set(points["payload_bytes"]) for _, points in measured.groupby("queue")))
    return measured[measured["payload_bytes"] == max(shared, default=-1)]


def _alone(measured: pd.DataFrame) -> pd.DataFrame:
    return _smallest(choose.alone(measured))


def _with_size(text: str):
    return lambda point: text.format(units.size(point["payload_bytes"]))


QUESTIONS = (
    Question(
        _with_size("small messages ({}): most verified messages"), "messages_per_second", "throughput",
        units.messages_per_second, True, _smallest, ("payload_bytes",),
    ),
    Question(
        _with_size("large messages ({}): most verified bytes, one way"), "bytes_per_second", "throughput",
        units.bytes_per_second, True, _largest_common, ("payload_bytes",),
    ),
    Question(
        _with_size("lone messages ({}): lowest p50"), "p50", "p50", units.nanoseconds, False, _alone,
        ("payload_bytes",),
    ),
)  # fmt: skip
