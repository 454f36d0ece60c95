"""What GPUDirect Storage would change, computed from the limits and the costs in the rows."""

import math

import pandas as pd

from .. import units
from ..document import Block, Bullets, Text
from ..load import Results
from . import limits
from . import points as storage
from .cpu import cores
from .points import BYTES, CPU, Place

GENERAL = (
    "GPUDirect Storage lets the drive write into GPU memory. It removes the copy in host memory: its CPU time, and at "
    "least two accesses to host memory for each byte, one by the drive and one by the copy engine. The rate of the "
    "drive remains: fio measures it without a GPU, so it limits both paths. The gains below are upper bounds, because "
    "part of the CPU time (submission, completion, waiting) remains with GPUDirect."
)
MISSING = (
    "The rows do not show what GPUDirect would change: this needs reads with O_DIRECT (--direct yes) and the limit "
    "that fio measures for them."
)
WITH_IT = "nvidia-fs loaded"  # in the mode of rows whose driver can use GPUDirect


def blocks(results: Results) -> list[Block]:
    """A paragraph, and one entry per task and block size that was read with O_DIRECT; a sentence on what is missing
    without such rows; empty if no row counts."""
    found = storage.places(results)
    if not found:
        return []
    entries = [_entry(results, place) for place in found if _is_known(results, place)]
    if not entries:
        return [Text(MISSING, "missing")]
    return [Text(f"{GENERAL} {_measured(results)}"), Bullets(entries)]


def _is_known(results: Results, place: Place) -> bool:
    return place.best["operation"] == "read" and not math.isnan(limits.fio(results, place.best))


def _measured(results: Results) -> str:
    modes = results.counted["path"].map(lambda path: WITH_IT in str(path.get("mode", "")))
    if not modes.any():
        return "No row used GPUDirect."
    return f"In {int(modes.sum())} rows cuFile ran with nvidia-fs loaded; its figures are in the tables above."


def _entry(results: Results, place: Place) -> str:
    best = place.best
    fio, link = limits.fio(results, best), limits.link(results, best)
    where = f"{place.task}, {units.size(place.block)}"
    parts = [_rate(best, fio), _cost(best, fio), _link(fio, link)]
    return f"{where[0].upper()}{where[1:]}: {' '.join(part for part in parts if part)}"


def _rate(best: pd.Series, fio: float) -> str:
    rate = units.bytes_per_second
    text = f"fio reaches {rate(fio)}, and {best['variant']}, the fastest engine, {rate(best[BYTES])}."
    if best[BYTES] >= fio:
        return f"{text} GPUDirect could not make it faster, because the drive is the limit."
    most = units.ratio(fio / best[BYTES])
    return f"{text} With the same depth and threads, GPUDirect could make it at most {most} times as fast."


def _cost(best: pd.Series, fio: float) -> str:
    if math.isnan(best[CPU]):
        return ""
    return (
        f"This engine costs {storage.cores_per_gb(best[CPU])} cores per GB/s. At fio's rate this would be "
        f"{units.ratio(cores(best, fio))} cores if the cost per byte did not change; GPUDirect could save at most these."
        f" It would also save at least {units.bytes_per_second(2 * fio)} of traffic in host memory."
    )


def _link(fio: float, link: float) -> str:
    if math.isnan(link):
        return "There is no limit of the copy engine, as there is no GPU."
    if link < fio:
        return f"The copy engine moves {units.bytes_per_second(link)}, so it limits the path through host memory."
    return (
        f"The copy engine moves {units.bytes_per_second(link)}; fio's rate is {units.percent(fio / link)} of this, so "
        "the copy to the GPU is not the limit."
    )
