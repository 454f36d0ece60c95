"""Comparison of PyTorch's own way to share a GPU tensor with ways of the experiment, from the output of
experiments/handoff/torch_shared.py."""

from pathlib import Path
from statistics import median

from .. import units
from ..document import Table, markdown_table
from ..files import json_lines
from . import points

FIELDS = ("way", "bytes", "use", "handoff_ns", "to_start_ns", "device", "torch", "feedrate")
ALLOWED = "a file that experiments/handoff/torch_shared.py wrote"


def beside_torch_text(file: str) -> str:
    """One row per size and use, two columns per way."""
    lines = json_lines(Path(file), lambda line: {field: line[field] for field in FIELDS}, ALLOWED)
    ways = list(dict.fromkeys(line["way"] for line in lines))
    places = sorted({(points.use_place(line["use"]), line["bytes"]) for line in lines})
    rows = []
    for use, size in places:
        row = [use[1], units.size(size)]
        for way in ways:
            some = [line for line in lines if (line["way"], line["use"], line["bytes"]) == (way, use[1], size)]
            row += [_range_cell([line[figure] for line in some]) for figure in ("handoff_ns", "to_start_ns")]
        rows.append(row)
    columns = ["use", "size", *(f"{way}{part}" for way in ways for part in ("", ", time to start"))]
    where = " · ".join(dict.fromkeys(line[field] for field in ("device", "torch", "feedrate") for line in lines))
    note = (
        "Figures are medians of the repetitions' medians, with the lowest and the highest of them in brackets. All "
        f"ways took turns in one run. {where.replace(' · ', ' · PyTorch ', 1)}"
    )
    return f"{markdown_table(Table(columns, rows, set(range(1, len(columns)))))}\n\n{note}"


def _range_cell(values: list[float]) -> str:
    if not values:
        return units.NOTHING
    return units.spread(units.nanoseconds, median(values), min(values), max(values))
