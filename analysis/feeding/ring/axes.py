"""Measured effect of each ring axis: a table of groups of points that differ only in one axis."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from ... import units
from ...document import NEWLINE, Table
from ..details import NAMES
from . import points as ring
from .points import BYTES, P50, P99, RATE


@dataclass(frozen=True)
class Sweep:
    """A row of the table: an axis, and the metrics shown for it, with many messages or with a lone message."""

    axis: str
    regime: Callable[[pd.DataFrame], pd.DataFrame]
    metrics: tuple[ring.Metric, ...]
    by: str | None = None  # an axis whose values have separate ladders


SWEEPS = (
    Sweep("lanes", ring.many, (RATE,)),
    Sweep("pollers", ring.many, (RATE,), "notify"),
    Sweep("pollers", ring.lone, (P50, P99), "notify"),
    Sweep("mirrors", ring.lone, (P50, P99)),
    Sweep("granularity", ring.many, (RATE,)),
    Sweep("notify", ring.many, (RATE,), "batch"),
    Sweep("batch", ring.many, (RATE, P50), "notify"),
    Sweep("results", ring.many, (RATE,), "pollers"),
    Sweep("ring_idle", ring.many, (RATE,)),
    Sweep("ring_idle", ring.lone, (P50, P99)),
    Sweep("slot_bytes", ring.many, (RATE,)),
    Sweep("capacity", ring.many, (RATE,)),
)


def ladders(points: pd.DataFrame, sweep: Sweep) -> list[pd.DataFrame]:
    """The ladders of an axis: one for each payload and each value of the `sweep.by` axis."""
    found = []
    for _, at in sweep.regime(ring.of_ring(points)).groupby("payload_bytes"):
        groups = [ring.using(at, sweep.by, value) for value in ring.used(at, sweep.by)] if sweep.by else [at]
        found += [ring.ladder(group, (sweep.axis,), sweep.metrics[0]) for group in groups]
    return [ladder for ladder in found if len(ladder)]


def table(points: pd.DataFrame) -> Table | None:
    rows = [row for sweep in SWEEPS if (row := _row(sweep, ladders(points, sweep)))]
    rows += [row] if (row := _slots(points)) else []
    return Table(["axis", "values", "measured", "at"], rows) if rows else None


def _row(sweep: Sweep, found: list[pd.DataFrame]) -> list[str] | None:
    if not found:
        return None
    values = sorted({value for ladder in found for value in ladder[sweep.axis]}, key=ring.sort_key(sweep.axis))
    alike = [ring.common(ladder["settings"]) for ladder in found]
    shared = ring.common(alike)
    measured = []
    for ladder, same in zip(found, alike):
        differs = ring.wording({axis: value for axis, value in same.items() if axis not in shared})
        figures = "; ".join(_figures(ladder, sweep.axis, values, metric) for metric in sweep.metrics)
        measured.append(f"{differs}: {figures}" if differs else figures)
    where = ring.wording(shared)
    if sweep.regime is ring.lone:
        where = f"lone messages, {where}".removesuffix(", ")
    return [name(sweep.axis), " / ".join(_value(sweep.axis, value) for value in values), NEWLINE.join(measured), where]


def _figures(ladder: pd.DataFrame, axis: str, values: list, metric: ring.Metric) -> str:
    at = {point[axis]: metric.cell(point) for _, point in ladder.iterrows()}
    return joined([at.get(value, units.NOTHING) for value in values]) + metric.suffix


def joined(figures: list[str]) -> str:
    """'174 / 226 / — M msg/s': writes the unit once if all figures share it."""
    endings = {figure.partition(" ")[2] for figure in figures if figure != units.NOTHING}
    if len(endings) != 1:
        return " / ".join(figures)
    return " / ".join(figure.partition(" ")[0] for figure in figures) + f" {endings.pop()}"


def _slots(points: pd.DataFrame) -> list[str] | None:
    """Slots pulled by the GPU against slots moved by copy engines: each at its best, as they need different windows."""
    measured, automatic = [], {}
    for payload, at in ring.many(ring.of_ring(points)).groupby("payload_bytes"):
        best = [ring.best(ring.using(at, "slots", slots), BYTES) for slots in ring.ORDER["slots"]]
        for settings in at.loc[(at["slots"] == "auto") & (at["granularity"] == "auto"), "settings"]:
            automatic.setdefault(settings["slots"], []).append(units.size(payload))
        if all(point is not None for point in best):
            measured.append(f"{units.size(payload)}: {joined([BYTES.cell(point) for point in best])}")
    if not measured:
        return None
    known = sorted(set(automatic) - ring.UNSET)
    chose = [f"{slots} at {', '.join(dict.fromkeys(automatic[slots]))}" for slots in known]
    where = "the best of each, bytes one way" + (f"; auto chose {'; '.join(chose)}" if chose else "")
    return ["slots", " / ".join(ring.ORDER["slots"]), NEWLINE.join(measured), where]


def name(axis: str) -> str:
    return "payload" if axis == "payload_bytes" else NAMES.get(axis, axis)


def _value(axis: str, value) -> str:
    if axis == "slot_bytes":
        return units.size(value)
    return f"{value:g}" if isinstance(value, (int, float)) else value.replace("_", " ")
