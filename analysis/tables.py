"""The report's tables: what was best, what the floors are, what did not work, and what was run where."""

import re

import pandas as pd

from . import stability, stats, units
from .document import Table
from .load import RING_AXES, Results

# How an axis is said beside a number; the rest are said by name.
_SAID = {
    "payload_bytes": units.size,
    "flops_per_byte": lambda value: f"{value:g} FLOP/B",
    "slot_bytes": units.size,
    "burst_us": lambda value: f"bursts of {value:g} µs",
    "pause_us": lambda value: f"pauses of {value:g} µs",
}
NAMES = {
    "payload_bytes": "payload",
    "burst_us": "burst",
    "pause_us": "pause",
    "ring_idle": "idling",
    "slot_bytes": "slot size",
}
_DOES_NOT_APPLY = {0, "none"}
_UNSAID = {*_DOES_NOT_APPLY, "auto", "in_order", "spin"}  # what the ring does unasked
_HEADLINE = [
    "queue + transfer",
    "peak verified messages",
    "of floor",
    "of driver's limit",
    "peak verified bytes",
    "of floor",
    "lone p50",
    "lone p99",
    "lone p99.9",
    "× floor",
    "host threads",
    "SMs",
    "delivery",
]
_MAY_DIFFER = {"command"}  # as it does after every resume, which says nothing about the rows
_WHO = ("queue", "transfer", "workload", "device", "flops_per_byte")  # said by the variant and the workload already


def headline(results: Results, measured: pd.DataFrame, work: str) -> Table:
    """Per variant, the fastest first: its peaks, its lone message, and what they cost."""
    chosen = measured[measured["work"] == work]
    shown = varying(results)
    messages = stats.best(chosen, "variant", "messages_per_second").set_index("variant")
    data = stats.best(chosen, "variant", "bytes_per_second").set_index("variant")
    alone = stats.lone(chosen).set_index("variant")
    cells = results.cells[results.cells["work"] == work]
    fastest = list(messages.sort_values("messages_per_second", ascending=False).index)
    nothing_ok = [name for name in cells.sort_values("rank")["variant"].unique() if name not in fastest]
    rows = []
    for variant in [*fastest, *nothing_ok]:
        if variant in nothing_ok:
            statuses = ", ".join(sorted(set(cells.loc[cells["variant"] == variant, "status"])))
            rows.append([variant, f"no ok cell ({statuses})", *[units.NOTHING] * (len(_HEADLINE) - 2)])
            continue
        rows.append(
            [
                variant,
                *_peak(messages.loc[variant], data.loc[variant], shown),
                *_alone(alone.loc[variant] if variant in alone.index else None),
                *_cost(messages.loc[variant]),
            ]
        )
    return Table(_HEADLINE, rows, set(range(1, len(_HEADLINE) - 1)))


def _peak(messages: pd.Series, data: pd.Series, shown: list[str]) -> list[str]:
    def said(point, metric, formatter) -> str:
        value = units.spread(formatter, point[metric], point[f"{metric}_low"], point[f"{metric}_high"])
        return f"{value}\n{place(point, shown)}".strip() + stability.mark(point, "throughput")

    return [
        said(messages, "messages_per_second", units.messages_per_second),
        _of_floor(messages),
        units.percent(messages["driver_ratio"]),
        said(data, "bytes_per_second", units.bytes_per_second),
        _of_floor(data),
    ]


def _of_floor(point: pd.Series) -> str:
    return f"{units.percent(point['throughput_ratio'])}\n{units.words(point['throughput_floor'])}".strip()


def _alone(point: pd.Series | None) -> list[str]:
    if point is None:
        return [units.NOTHING] * 4
    p50 = units.spread(units.nanoseconds, point["p50"], point["p50_low"], point["p50_high"])
    return [
        f"{p50}\n{units.size(point['payload_bytes'])}{stability.mark(point, 'p50')}",
        units.nanoseconds(point["p99"]) + stability.mark(point, "p99"),
        units.nanoseconds(point["p999"]),
        f"{units.ratio(point['latency_ratio'])}\n{units.words(point['latency_floor'])}".strip(),
    ]


def _cost(point: pd.Series) -> list[str]:
    threads = units.number(point["host_threads"])
    if point["spinning_threads"] > 0:
        threads += f"\n{units.number(point['spinning_threads'])} spin"
    return [threads, units.number(point["sms"]), point["delivery"] or units.NOTHING]


def place(point, shown: list[str]) -> str:
    """Where in the sweep a point lies: only the axes asked for, and of those only the ones that apply."""
    return ", ".join(_said(axis, point[axis]) for axis in shown if point[axis] not in _UNSAID)


def _said(axis: str, value) -> str:
    if axis in _SAID:
        return ("slots of " if axis == "slot_bytes" else "") + _SAID[axis](value)
    name = NAMES.get(axis, axis)
    return f"{name} {value:g}" if isinstance(value, (int, float)) else f"{name} {value}".replace("_", " ")


def varying(*several: Results) -> list[str]:
    """The axes that tell points of a variant apart: those with more than one value where they apply at all."""
    cells = pd.concat([results.cells for results in several])
    ring = cells[cells["queue"] == "gpu_ring"]

    def varies(axis: str) -> bool:
        if axis in RING_AXES:  # where 0 and auto are values: the queue chose
            return ring[axis].nunique() > 1
        return len(set(cells[axis]) - _DOES_NOT_APPLY) > 1

    known = dict.fromkeys(axis for results in several for axis in results.axes)
    return [axis for axis in known if axis not in _WHO and varies(axis)]


def axes(results: Results) -> Table:
    """Every axis of the sweep with the values it took in any row."""
    return Table(
        ["axis", "values"], [[NAMES.get(axis, axis), _values(axis, results.cells[axis])] for axis in results.axes]
    )


def _values(axis: str, column: pd.Series) -> str:
    """The values where the axis applies, ascending."""
    formatter = _SAID.get(axis, lambda value: _plain(value) if isinstance(value, (int, float)) else str(value))
    values = sorted(set(column) - _DOES_NOT_APPLY, key=lambda value: (isinstance(value, str), value))
    return ", ".join(map(formatter, values)) or "does not apply"


def _plain(value: float) -> str:
    return f"{value:g}" if value < 100_000 else units.tick(units.number)(value)


def floors(results: Results) -> Table:
    """The floors, by machine and device where there are several; the median where one was measured several times."""
    found = results.floors
    several = found[["machine", "device"]].drop_duplicates().shape[0] > 1
    rows = []
    for (name, machine, device), group in found.groupby(["name", "machine", "device"], sort=False):
        ok = group[group["status"] == "ok"]
        formatter = units.unit_of(name)
        value = (
            units.spread(formatter, ok["value"].median(), ok["value"].min(), ok["value"].max())
            if len(ok)
            else f"{group['status'].iloc[-1]}: {group['reason'].iloc[-1]}"
        )
        percentiles = [formatter(ok[which].dropna().median()) for which in ("p50", "p99")]
        rows.append(
            [
                units.words(name),
                value,
                *percentiles,
                group["description"].iloc[0],
                *([device, machine] if several else []),
            ]
        )
    return Table(
        ["floor", "value", "p50", "p99", "what it is", *(["device", "machine"] if several else [])], rows, {1, 2, 3}
    )


def not_ok(results: Results) -> Table:
    """Every cell that is not ok. Reasons that differ only in their numbers stand together, as the first of them."""
    bad = results.cells[results.cells["status"] != "ok"]
    bad = bad.assign(pattern=bad["reason"].str.replace(r"\d+(\.\d+)?", "#", regex=True))
    order = {"failed": 0, "invalid": 1, "unsustainable": 2, "skipped": 3}
    groups = sorted(bad.groupby(["status", "pattern", "variant"], sort=False), key=lambda item: order[item[0][0]])
    rows = []
    for (status, _, variant), group in groups:
        others = group["reason"].nunique() - 1
        reason = group["reason"].iloc[0] + (f"\n(and {others} like it, with other numbers)" if others else "")
        where = "; ".join(
            f"{NAMES.get(axis, axis)} {_values(axis, group[axis])}"
            for axis in varying(results)
            if set(group[axis]) - _UNSAID
        )
        rows.append([status, reason, variant, str(len(group)), where or "the only point"])
    return Table(["status", "reason", "queue + transfer", "rows", "parameters"], rows, {3})


def environment(results: Results) -> tuple[Table, list[str]]:
    """What ran where, and the names of the facts that should be the same in every row that tells them, and are not."""
    flat = [flatten(one) for one in results.environments]
    rows, differing = [], []
    for name in dict.fromkeys(name for one in flat for name in one):
        values = list(dict.fromkeys(_fact(name, one[name]) for one in flat if name in one))
        if len(values) > 1 and name not in _MAY_DIFFER:
            differing.append(name)
        if len(values) > 1:
            values = values if len(values) <= 6 else [*values[:6], f"and {len(values) - 6} more"]
        rows.append([name, "\n".join(values), "differs" if len(values) > 1 else ""])
    return Table(["fact", "value", ""], rows), differing


def flatten(nested: dict, prefix: str = "") -> dict:
    """{"redis": {"version": 7}} as {"redis.version": 7}. Rows before the first that needs Redis have "redis": null,
    which is no fact; "gpu": null is one."""
    flat = {}
    for name, value in nested.items():
        if name == "redis" and value is None:
            continue
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def _fact(name: str, value) -> str:
    if value is None:
        return units.NOTHING
    if name.endswith("_bytes"):
        return units.size(value)
    text = f"{value}"
    return re.sub(r"\s+", " ", text) if text else '""'
