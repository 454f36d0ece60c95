"""Additions of an experiment to the general report: one module per experiment with its name, which defines SECTION. An
experiment without a module gets the general report."""

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache


def _nothing(*_) -> list:
    return []


def wrong_results(reason: str) -> Callable[[dict], tuple[str, str] | None]:
    """A section's `doubt` for experiments whose rows count wrong results in `details.verified`."""

    def doubt(row: dict) -> tuple[str, str] | None:
        wrong = (row.get("details") or {}).get("verified", {}).get("wrong", 0)
        return ("wrong_results", reason) if wrong else None

    return doubt


@dataclass(frozen=True)
class Section:
    # Loading. `columns`: additional columns of a cell, from its row; `numbers`: the columns with medians; `doubt`:
    # cause and reason why a row with status ok must not count, or None; `contradictions`: codes of contradictions within
    # a row, which counts but is marked.
    columns: Callable[[dict], dict] = lambda row: {}
    numbers: tuple[str, ...] = ()
    doubt: Callable[[dict], tuple[str, str] | None] = lambda row: None
    contradictions: Callable[[dict], list[str]] = _nothing
    # Whether the section explains rows that exceed a limit; otherwise such a limit is taken back (withdrawn.py).
    explains_limits: bool = False
    # Figures that may be 0 or negative; their intervals are not computed on logarithms.
    linear: tuple[str, ...] = ()
    # Comparing. The judged percentiles by figure ('' for a number), if they differ from the default.
    compared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Wording. `names`: names for axes whose own name is unclear; `value_labels`: functions that write a value of an
    # axis in words, with the axis.
    names: Mapping[str, str] = field(default_factory=dict)
    value_labels: Mapping[str, Callable] = field(default_factory=dict)
    # The report. Each function takes the results; `body` also takes the drawings for wide and for phone screens.
    draw: Callable = _nothing  # drawings; also takes `narrow`
    headline: str = ""  # the name of the drawing that the report shows first
    warnings: Callable = _nothing  # sentences to show before any number
    answer: Callable | None = None  # blocks; None: the best variant of each headline figure
    summary: Callable = _nothing  # sentences
    quality: Callable = _nothing  # sentences on figures to doubt
    body: Callable = _nothing  # blocks


@cache
def of(experiment: str) -> Section:
    """The section of an experiment. It is imported on use, because sections import modules that import this one."""
    name = f"{__name__}.{experiment}"
    if not experiment.isidentifier() or importlib.util.find_spec(name) is None:
        return Section()
    return importlib.import_module(name).SECTION
