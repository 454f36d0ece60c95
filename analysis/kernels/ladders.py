"""Ladders: the rungs and peers that were measured on one problem under one condition, by step."""

from dataclasses import dataclass
from functools import lru_cache

import pandas as pd

from ..load import Results
from ..ranking import Ranking
from . import points as kernels
from . import rungs
from .points import ALONE, POSITIVE, RATE


@dataclass(frozen=True)
class Ladder(Ranking):
    """`rungs` by step and `peers`: one point each, if possible timed in turn with the peers. `alone`: by name, the
    points that were timed alone, whose energy is known. `ranked`: the rungs, fastest first."""

    problem: str
    condition: str
    known: dict[str, rungs.Rung]
    rungs: list[pd.Series]
    peers: list[pd.Series]
    alone: dict[str, pd.Series]

    @property
    def ranked(self) -> list[pd.Series]:
        return sorted(self.rungs, key=lambda point: -point[RATE])

    @property
    def points(self) -> list[pd.Series]:
        return [*self.rungs, *self.peers]

    def rung(self, point: pd.Series) -> rungs.Rung:
        return self.known.get(point["rung"], rungs.Rung(point["rung"], point["step"]))


@lru_cache(maxsize=8)  # as for stats.points
def ladders(results: Results) -> list[Ladder]:
    """One ladder per problem with at least one rung, under the condition with the most rungs and peers. Positive inputs
    show the error, so they count only if a ladder has no others."""
    measured = kernels.read(results)
    if measured.empty:
        return []
    if "inputs" in measured:
        usual = measured[measured["inputs"] != POSITIVE]
        measured = usual if len(usual) else measured
    found = []
    for _, some in measured.groupby(kernels.problem_keys(results), sort=False, dropna=False):
        fullest = _fullest(some, kernels.condition_axes(results))
        if (fullest["step"] > 0).any():
            found.append(_ladder(results, fullest))
    return found


def _fullest(some: pd.DataFrame, axes: list[str]) -> pd.DataFrame:
    """The points under the condition with the most rungs and peers; among equals, the usual condition."""

    def rank(group: pd.DataFrame) -> tuple[int, int]:
        usual = sum(group[axis].iloc[0] == kernels.CONDITIONS[axis] for axis in axes)
        return group["rung"].nunique(), usual

    groups = [group for _, group in some.groupby(axes, sort=False, dropna=False)] if axes else [some]
    return max(groups, key=rank)


def _ladder(results: Results, some: pd.DataFrame) -> Ladder:
    first = some.iloc[0]
    alone = some["against"] == ALONE
    # Of several points of a rung, one that was timed in turn with the peers, because it has a share of them.
    ones = some.assign(alone=alone).sort_values("alone", kind="stable").drop_duplicates("rung")
    by_step = [point for _, point in ones.sort_values("step", kind="stable").iterrows()]
    return Ladder(
        first["problem"],
        kernels.condition(results, first),
        rungs.of_ladder(results, first["ladder"]),
        [point for point in by_step if point["step"] > 0],
        [point for point in by_step if point["step"] == 0],
        {point["rung"]: point for _, point in some[alone].iterrows()},
    )
