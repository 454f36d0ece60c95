"""The error of the results by the depth of the sums (k)."""

import pandas as pd

from .. import units
from ..document import Block, Heading, Table, Text
from ..load import Results
from . import points as kernels
from .details import ERROR, TOLERANCE

DEPTH = "k"
NOTE = (
    "Root of the mean squared error of the checked elements, relative to that of their values: medians over the "
    "repetitions, and below them the largest ratio of an error to the allowed one. The expected values are sums in "
    "double precision. With positive inputs sums grow with the depth, so accumulators with few bits show."
)


def blocks(results: Results) -> list[Block]:
    """A table per problem, and the note; empty if no rung was measured at two depths."""
    found: list[Block] = []
    for words, some in curves(results).items():
        found += [Heading(f"Error, {words}"), table(some)]
    return [*found, Text(NOTE, "note")] if found else []


def curves(results: Results) -> dict[str, pd.DataFrame]:
    """By problem and inputs, the points with a known error that differ only in rung and depth, one for each."""
    measured = kernels.read(results)
    if measured.empty or DEPTH not in measured:
        return {}
    measured = measured.dropna(subset=[ERROR])
    keys = [axis for axis in kernels.problem_keys(results) if axis != DEPTH]
    keys += ["inputs"] if "inputs" in measured else []
    found = {}
    for _, some in measured.groupby(keys, sort=False, dropna=False):
        one_each = some.drop_duplicates(["rung", DEPTH])
        several = one_each.groupby("rung")[DEPTH].transform("nunique") > 1
        if several.any():
            first = one_each.iloc[0]
            inputs = f", inputs {first['inputs']}" if "inputs" in some else ""
            words = kernels.problem(results, first, (DEPTH,)) + inputs
            found[words] = one_each[several]
    return found


def table(some: pd.DataFrame) -> Table:
    """One row per depth and one column per rung, by step with libraries last."""
    names = list(dict.fromkeys(some["rung"]))
    by_place = {(point[DEPTH], point["rung"]): point for _, point in some.iterrows()}
    depths = sorted(some[DEPTH].unique())
    rows = [[f"{depth:g}", *(_cell(by_place.get((depth, name))) for name in names)] for depth in depths]
    return Table([DEPTH, *names], rows, set(range(len(names) + 1)))


def _cell(point: pd.Series | None) -> str:
    if point is None:
        return units.NOTHING
    return f"{point[ERROR]:.2g}\n{units.percent(point[TOLERANCE])} of the allowed"
