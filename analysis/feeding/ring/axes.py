"""Measured effect of each ring axis: a table of groups of points that differ only in one axis."""

from dataclasses import dataclass

import pandas as pd

from ... import figure_text, units
from ...document import NEWLINE, Table
from ..details import NAMES
from . import points as ring

RATE = ("messages_per_second", units.messages_per_second, "")
RATES = (RATE[0], "bytes_per_second")
P50, P99 = ("p50", units.nanoseconds, " p50"), ("p99", units.nanoseconds, " p99")


@dataclass(frozen=True)
class Sweep:
    """A row of the table: an axis, and the metrics shown for it, with many messages or with a lone message."""

    axis: str
    regime: object
    metrics: tuple
    by: str | None = None  # an axis whose values have separate lines

    @property
    def largest(self) -> bool:
        return self.metrics[0] is RATE


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


def lines(points: pd.DataFrame, sweep: Sweep) -> list[pd.DataFrame]:
    """The ladders of an axis: one for each payload and each value of the axis `sweep.by`."""
    found = sweep.regime(ring.of_ring(points))
    ladders = []
    for payload in sorted(set(found.get("payload_bytes", ()))):
        at = found[found["payload_bytes"] == payload]
        values = {ring.used(point, sweep.by) for _, point in at.iterrows()} if sweep.by else {None}
        for value in sorted(values, key=ring.sort_key(sweep.by)) if sweep.by else values:
            some = ring.using(at, sweep.by, value) if sweep.by else at
            ladder = ring.ladder(some, sweep.axis, sweep.metrics[0][0], sweep.largest)
            ladders += [ladder] if len(ladder) else []
    return ladders


def table(points: pd.DataFrame) -> Table | None:
    rows = [row for sweep in SWEEPS if (row := _row(sweep, lines(points, sweep)))]
    rows += [row] if (row := _slots(points)) else []
    return Table(["axis", "values", "measured", "at"], rows) if rows else None


def _row(sweep: Sweep, ladders: list[pd.DataFrame]) -> list[str] | None:
    if not ladders:
        return None
    values = sorted({value for ladder in ladders for value in ladder[sweep.axis]}, key=ring.sort_key(sweep.axis))
    alike = [_common(ladder, sweep.axis) for ladder in ladders]
    shared = {axis: value for axis, value in alike[0].items() if all(one.get(axis) == value for one in alike)}
    measured = []
    for ladder, same in zip(ladders, alike):
        differs = ring.said({axis: value for axis, value in same.items() if axis not in shared})
        told = "; ".join(_series(ladder, sweep.axis, values, *metric) for metric in sweep.metrics)
        measured.append(f"{differs}: {told}" if differs else told)
    where = ring.said(shared)
    if sweep.regime is ring.lone:
        where = f"lone messages, {where}".removesuffix(", ")
    return [name(sweep.axis), " / ".join(_value(sweep.axis, value) for value in values), NEWLINE.join(measured), where]


def _common(ladder: pd.DataFrame, axis: str) -> dict:
    """The axis values that all points of a ladder share."""
    told = [ring.told(point) for _, point in ladder.iterrows()]
    return {
        name: value for name, value in told[0].items() if name != axis and all(one[name] == value for one in told)
    }


def _series(ladder: pd.DataFrame, axis: str, values: list, metric: str, formatter, suffix: str) -> str:
    at = {point[axis]: said(formatter, point, metric) for _, point in ladder.iterrows()}
    return series([at.get(value, units.NOTHING) for value in values]) + suffix


def said(formatter, point, metric: str) -> str:
    """'226 M msg/s', or '≥226 M msg/s' if the load generator was the limit."""
    return figure_text.sign(point, metric in RATES) + formatter(point[metric])


def series(texts: list[str]) -> str:
    """'174 / 226 / — M msg/s': writes the unit once if all texts share it."""
    endings = {text.partition(" ")[2] for text in texts if text != units.NOTHING}
    if len(endings) != 1:
        return " / ".join(texts)
    return " / ".join(text.partition(" ")[0] for text in texts) + f" {endings.pop()}"


def _slots(points: pd.DataFrame) -> list[str] | None:
    """Slots pulled by the GPU against slots moved by copy engines: each at its best, as they need different windows."""
    found = ring.many(ring.of_ring(points))
    measured, automatic = [], {}
    for payload in sorted(set(found.get("payload_bytes", ()))):
        at = found[found["payload_bytes"] == payload]
        best = [ring.best(ring.using(at, "slots", slots), "bytes_per_second") for slots in ring.ORDER["slots"]]
        for _, point in at[(at["slots"] == "auto") & (at["granularity"] == "auto")].iterrows():
            automatic.setdefault(ring.used(point, "slots"), []).append(units.size(payload))
        if all(point is not None for point in best):
            told = series([said(units.bytes_per_second, point, "bytes_per_second") for point in best])
            measured.append(f"{units.size(payload)}: {told}")
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
