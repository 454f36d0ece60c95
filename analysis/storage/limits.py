"""Limits of a point: the rate that fio reaches with the same job, and the rate of the copy engine."""

import math

import pandas as pd

from .. import units
from ..load import Results
from .points import BYTES


def fio_name(point: pd.Series) -> str:
    """The name of the limit that fio measures with a point's block, depth, threads, order and operation."""
    order = "sequential" if point["access"] == "sequential" else "random"
    job = f"{point['block_bytes']:.0f}_{point['depth']:.0f}x{point['threads']:.0f}"
    return f"fio_{order}_{point['operation']}_{job}_{BYTES}"


def link_name(point: pd.Series) -> str:
    """The name of the copy engine's limit in the direction of a point."""
    return f"copy_engine_{'h2d' if point['operation'] == 'read' else 'd2h'}_{BYTES}"


def value(results: Results, point: pd.Series, name: str) -> float:
    """A limit in the point's rows, bytes per second: the median; NaN if no row has it."""
    known = [limits[name] for limits in results.cells.loc[point["members"], "limits"] if name in limits]
    return float(pd.Series(known).median()) if known else math.nan


def fio(results: Results, point: pd.Series) -> float:
    """The rate of fio, bytes per second: the median of its rates right after the point's repetitions, or the limit; NaN
    if it was not measured or if it does not bound the point, because the page cache supplies the blocks."""
    beside = point.get("fio_bytes_per_second", math.nan)
    return beside if not math.isnan(beside) else value(results, point, fio_name(point)) if point["direct"] == "yes" else math.nan


def link(results: Results, point: pd.Series) -> float:
    """The rate of the copy engine, bytes per second; NaN if it was not measured or if blocks are in GPU memory."""
    return math.nan if point.get("in_gpu", False) else value(results, point, link_name(point))


def share(point: pd.Series, name: str, limit: float) -> float:
    """The point's rate as a share of a limit. If fio ran after each repetition, or the limit binds the point, this is
    the ratio in its rows."""
    beside = point.get("share_of_fio", math.nan)
    if name == fio_name(point) and not math.isnan(beside):
        return beside
    return point[f"{BYTES}_ratio"] if point[f"{BYTES}_ceiling"] == name else point[BYTES] / limit


def shares(results: Results, point: pd.Series) -> list[str]:
    """The shares of both limits in words: '71 % of fio'; empty if neither is known."""
    known = (("fio", fio_name(point), fio(results, point)), ("the copy engine", link_name(point), link(results, point)))
    return [
        f"{units.percent(share(point, name, limit))} of {word}" for word, name, limit in known if not math.isnan(limit)
    ]
