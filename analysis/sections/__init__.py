"""What an experiment adds to the report that every experiment gets: one module here, by the experiment's name, whose
SECTION says it. An experiment without one has the general report."""

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache


def _nothing(*_) -> list:
    return []


@dataclass(frozen=True)
class Section:
    # Loading. `columns`: what a cell has besides, of its row; `numbers`: which of these have medians; `doubt`: why a
    # row that says ok must not count all the same (cause and reason), or nothing.
    columns: Callable[[dict], dict] = lambda row: {}
    numbers: tuple[str, ...] = ()
    doubt: Callable[[dict], tuple[str, str] | None] = lambda row: None
    # The figures that may be 0 or less: their intervals are not taken on logarithms.
    linear: tuple[str, ...] = ()
    # Comparing. By figure the percentiles that are judged ('' of a number), where not those that every experiment has.
    compared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Words. `names`: of axes whose own name says too little; `said`: how an axis is said with its value.
    names: Mapping[str, str] = field(default_factory=dict)
    said: Mapping[str, Callable] = field(default_factory=dict)
    # The report. Each takes the results; `body` also the drawings, and the same for a phone's screen.
    draw: Callable = _nothing  # drawings; takes `narrow`, too
    warnings: Callable = _nothing  # sentences that must stand before any number
    answer: Callable | None = None  # blocks; None: the best of each headline figure
    summary: Callable = _nothing  # sentences
    body: Callable = _nothing  # blocks


@cache
def of(experiment: str) -> Section:
    """The section of an experiment. Looked up late, for a section may import what imports this."""
    name = f"{__name__}.{experiment}"
    if not experiment.isidentifier() or importlib.util.find_spec(name) is None:
        return Section()
    return importlib.import_module(name).SECTION
