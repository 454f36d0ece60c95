"""Points for tables and figures. A problem is what all rungs solve alike: ladder, sizes, type and layout. A condition is
how it was measured: with inputs in the cache or not, with pauses or without, and the values of the inputs."""

from functools import lru_cache

import pandas as pd

from .. import stats, tables
from ..load import Results

RATE, SHARE, JOULES = "operations_per_second", "share_of_best_peer", "energy_per_operation"  # columns
SIZES = ("m", "n", "k")
CONDITIONS = {"cache": "cold", "pace": "sustained", "inputs": "normal"}  # with the values that others are compared with
ALONE, POSITIVE = "alone", "positive"  # values of `against` and of `inputs`
_NO_PROBLEM = ("ladder", "rung", "device", "against", *CONDITIONS)


def read(results: Results) -> pd.DataFrame:
    """The competing points, with `step` and `problem` in words, by problem and step with peers last; empty if no row
    counts."""
    return _read(results).copy()


@lru_cache(maxsize=8)  # as for stats.points
def _read(results: Results) -> pd.DataFrame:
    found = stats.points(results)
    if found.empty or RATE not in found:
        return found.iloc[:0].assign(step=[], problem=[])
    found = found[found["variant"].isin(results.contest) & (found[RATE] > 0)]
    steps = results.cells.loc[[members[0] for members in found["members"]], "row_step"].to_numpy()
    types = [*results.experiment.axes["dtype"].values] if "dtype" in results.experiment.axes else []
    order = pd.DataFrame({axis: found[axis] for axis in problem_axes(results)}, found.index)
    if "dtype" in order:
        order["dtype"] = order["dtype"].map(lambda one: types.index(one) if one in types else len(types))
    for axis in order.columns[order.dtypes == object]:
        order[axis] = order[axis].astype(str)
    order = order.assign(ladder=found["ladder"], peer=steps == 0, step=steps)
    first = ["ladder", *(axis for axis in ("dtype",) if axis in order)]
    by = [*first, *(axis for axis in order.columns if axis not in (*first, "peer", "step")), "peer", "step"]
    found = found.assign(step=order["step"], problem=[problem(results, point) for _, point in found.iterrows()])
    return found.loc[order.sort_values(by, kind="stable").index]


def problem_axes(results: Results) -> list[str]:
    """The axes that must be equal for a comparison of rungs, without those of the condition."""
    return [axis for axis in results.axes if axis not in _NO_PROBLEM]


def problem_keys(results: Results) -> list[str]:
    return ["machine", "ladder", *problem_axes(results)]


def condition_axes(results: Results) -> list[str]:
    return [axis for axis in CONDITIONS if axis in results.axes]


def problem(results: Results, point: pd.Series, without: tuple[str, ...] = ()) -> str:
    """The problem in words, without the named axes: 'matmul bf16, 4096 × 4096 × 4096, layout nt'."""
    own = [axis for axis in problem_axes(results) if axis not in without and results.experiment.applies(axis, point)]
    sized = [axis for axis in SIZES if axis in own]
    together = " × ".join(f"{point[axis]:g}" for axis in sized)
    sizes = together if len(sized) == len(SIZES) else tables.place(results, point, sized)
    layout = f"layout {point['layout']}" if "layout" in own else ""
    rest = [axis for axis in own if axis not in (*SIZES, "dtype", "layout") and not _is_usual(results, axis, point[axis])]
    ladder = f"{point['ladder']} {point['dtype'] if 'dtype' in own else ''}".strip()
    return ", ".join(part for part in (ladder, sizes, layout, tables.place(results, point, rest)) if part)


def _is_usual(results: Results, axis: str, value: object) -> bool:
    """Whether a value needs no mention: a word's default, or a number without an effect. A size is always mentioned."""
    known = results.experiment.axes.get(axis)
    return known is not None and value == known.default and (known.kind != "number" or value in (0, 1))


def condition(results: Results, point: pd.Series) -> str:
    """The condition in words: 'cache cold, pace sustained'; usual inputs are left out."""
    named = [axis for axis in condition_axes(results) if axis != "inputs" or point[axis] != CONDITIONS[axis]]
    return ", ".join(f"{axis} {point[axis]}" for axis in named)


def row_values(results: Results, point: pd.Series, column: str) -> list:
    """The values of a column in the rows of a point."""
    return list(results.cells.loc[point["members"], column])
