"""Exports result rows to the formats of other tools."""

from pathlib import Path

import pandas as pd

from ..catalogue import Experiment
from ..errors import BadInput
from ..load import Results, load_all
from . import google_benchmark, hdr

Points = tuple[dict[str, pd.DataFrame], Results]

# Writer and kind of output by format.
FORMATS = {"google-benchmark": (google_benchmark.write, "file"), "hdr": (hdr.write, "directory")}


def export(directory: str, form: str, out: str) -> list[Path]:
    """Writes the ok rows of a directory in one of `FORMATS`; returns the files' paths."""
    write, kind = FORMATS[form]
    target = Path(out)
    if target.exists() and target.is_dir() != (kind == "directory"):
        raise BadInput("--out", out, f"is not a {kind}", f"for {form}, a {kind} or a new name")
    found = load_all([directory])
    if not any((results.cells["status"] == "ok").any() for results in found.values()):
        raise BadInput("DIR", directory, "no row is ok", "a directory in which a sweep measured at least one cell")
    return write([_points(results, len(found) > 1) for results in found.values()], target)


def _points(results: Results, several: bool) -> Points:
    """The points by name; if a folder has several experiments, names start with the experiment's name."""
    cells = results.cells[results.cells["status"] == "ok"]
    first = f"{results.experiment.name}/" if several else ""
    names = pd.Series([first + _point_name(cell, results) for _, cell in cells.iterrows()], cells.index, dtype=object)
    return {name: group.sort_values("repetition") for name, group in cells.groupby(names, sort=False)}, results


def _point_name(cell: pd.Series, results: Results) -> str:
    """`host_polled+pinned/echo/cuda/payload_bytes:64/…`: includes every axis that applies, unless it has the value that
    rows without the axis get, so that names match those of older rows. The name does not depend on other points."""
    experiment = results.experiment
    variant = "+".join(value for axis in experiment.variant if (value := str(cell[axis])) != "none")
    first = [variant or experiment.name, *(str(cell[axis]) for axis in ("workload", "device") if axis in results.axes)]
    rest = [
        f"{axis}:{cell[axis]}"
        for axis in results.axes
        if axis not in (*experiment.variant, "workload", "device") and _is_set(experiment, axis, cell)
    ]
    return "/".join([*first, *rest])


def _is_set(experiment: Experiment, axis: str, cell: pd.Series) -> bool:
    known = experiment.axes.get(axis)
    default = known.default if known and known.kind == "word" else 0
    return cell[axis] not in (default, 0, "none")
