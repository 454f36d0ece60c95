"""Conditions compared: inputs in the cache or not, with pauses or without, and values of the inputs."""

import pandas as pd

from .. import figure_text, interval, stats, units
from ..document import Block, Table, Text
from ..load import Results
from . import points as kernels
from .fastest import rate
from .points import CONDITIONS, RATE
from .table import clock, energy

COLUMNS = ["problem", "rung", "condition", "operations per second", "ratio", "per operation", "clock"]
NOTE = (
    f"{figure_text.NOTE} “Ratio”: to the rate of the same rung with cache cold, pace sustained and inputs normal. "
    "“Cold”: the inputs rotate, and together exceed three times the device's cache; “hot”: one set of inputs. "
    "“Sustained”: without pauses, at the clock that the power limit allows; “burst”: with pauses between the samples. "
    "Inputs of zeros cost less power than random ones."
)


def blocks(results: Results) -> list[Block]:
    """The table and its note; empty if no rung was measured under two conditions that differ in one axis."""
    rows = [line for group in groups(results) for line in _lines(results, group)]
    if not rows:
        return []
    return [Table(COLUMNS, rows, {3, 4, 5}), Text(" ".join([NOTE, *stats.explained(results)]), "note")]


def groups(results: Results) -> list[pd.DataFrame]:
    """The points of each rung and problem that differ from its usual condition in one axis, after the usual one."""
    measured, axes = kernels.read(results), kernels.condition_axes(results)
    if measured.empty or not axes:
        return []
    found = []
    for _, some in measured.groupby([*kernels.problem_keys(results), "rung", "against"], sort=False, dropna=False):
        differing = sum((some[axis] != CONDITIONS[axis]).astype(int) for axis in axes)
        near = some.assign(differing=differing)[differing < 2].sort_values("differing", kind="stable")
        if len(near) > 1 and near["differing"].iloc[0] == 0:
            found.append(near)
    return found


def _lines(results: Results, group: pd.DataFrame) -> list[list[str]]:
    usual = group.iloc[0]
    return [
        [
            point["problem"],
            point["rung"],
            _words(results, point),
            rate(results, point),
            units.NOTHING
            if point["differing"] == 0
            else units.spread(units.ratio, *interval.ratio(point, usual, RATE)),
            energy(results, point),
            clock(results, point),
        ]
        for _, point in group.iterrows()
    ]


def _words(results: Results, point: pd.Series) -> str:
    """The condition, or only the axis in which it differs from the usual one."""
    axes = kernels.condition_axes(results)
    named = [axis for axis in axes if not point["differing"] or point[axis] != CONDITIONS[axis]]
    return ", ".join(f"{axis} {point[axis]}" for axis in named)
