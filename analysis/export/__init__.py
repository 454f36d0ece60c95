"""Result rows in the formats of other tools."""

from pathlib import Path

import pandas as pd

from ..errors import BadInput
from ..load import load
from . import google_benchmark, hdr
from .names import point_name

FORMATS = {"google-benchmark": (google_benchmark.write, "file"), "hdr": (hdr.write, "directory")}  # what each writes


def export(directory: str, form: str, out: str) -> list[Path]:
    """Writes the ok rows of a directory in one of `FORMATS`; returns the files' paths."""
    write, kind = FORMATS[form]
    target = Path(out)
    if target.exists() and target.is_dir() != (kind == "directory"):
        raise BadInput("--out", out, f"is not a {kind}", f"for {form} a {kind}, or a new name")
    results = load([directory])
    cells = results.cells[results.cells["status"] == "ok"]
    if cells.empty:
        raise BadInput("DIR", directory, "no row is ok", "a directory in which a sweep measured at least one cell")
    names = pd.Series([point_name(cell, results.axes) for _, cell in cells.iterrows()], cells.index)
    points = {name: group.sort_values("repetition") for name, group in cells.groupby(names, sort=False)}
    return write(points, results, target)
