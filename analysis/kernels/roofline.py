"""The roofline: the rate of the arithmetic, and the rate of memory times the operations per byte."""

import math
from dataclasses import dataclass

import pandas as pd

from .. import units
from ..load import Results
from .ladders import ladders
from .points import RATE

# By device: the limits of memory, slowest first, and the bytes that memory moves per byte that the limit counts.
MEMORY = {
    "cuda": {"dram_copy_bytes_per_second": 2, "l2_read_bytes_per_second": 1},
    "cpu": {"host_memory_read_bytes_per_second": 1},
}


@dataclass(frozen=True)
class Roofs:
    """By limit: operations per second of the arithmetic, and bytes per second of the memory that was measured, slowest
    first."""

    arithmetic: dict[str, float]
    memory: dict[str, float]


def share_cell(point: pd.Series) -> str:
    """The share of the limit that binds a point, with the limit: '87 %', 'of tensor bf16'."""
    ratio, bound = point[f"{RATE}_ratio"], point[f"{RATE}_bound"]
    return f"{units.percent(ratio)}\nof {bound}" if bound and not math.isnan(ratio) else units.NOTHING


def roofs(results: Results, some: pd.DataFrame) -> Roofs:
    """The roofs over these points, from the limits in their rows: the arithmetic limits that bind at least one of them,
    and memory."""
    rows = results.cells.loc[[member for members in some["members"] for member in members]]
    names = dict.fromkeys(name for name in some[f"{RATE}_ceiling"] if name)
    memory = {name: times * _limit(rows, name) for name, times in MEMORY[some["device"].iloc[0]].items()}
    return Roofs({one: _limit(rows, one) for one in names}, {name: rate for name, rate in memory.items() if rate > 0})


def _limit(rows: pd.DataFrame, name: str) -> float:
    known = [limits[name] for limits in rows["limits"] if name in limits]
    return float(pd.Series(known).median()) if known else math.nan


def by_type(results: Results) -> dict[str, pd.DataFrame]:
    """The points of all ladders, by ladder and type."""
    found: dict[str, list[pd.Series]] = {}
    for ladder in ladders(results):
        for point in ladder.points:
            found.setdefault(f"{point['ladder']} {point.get('dtype', '')}".strip(), []).append(point)
    return {name: pd.DataFrame(some) for name, some in found.items()}
