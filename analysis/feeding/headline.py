"""The headline table: the peaks and lone-message latency of each queue, and their cost."""

import pandas as pd

from .. import figure_text, stability, stats, units
from ..document import Table
from ..load import Results
from ..tables import place, varying
from . import choose

_HEADLINE = [
    "queue + transfer",
    "peak verified messages",
    "of ceiling",
    "of generator's limit",
    "peak verified bytes",
    "of ceiling",
    "lone p50",
    "lone p99",
    "lone p99.9",
    "× floor",
    "host threads",
    "SMs",
    "delivery",
]


def headline(results: Results, measured: pd.DataFrame, work: str) -> Table:
    """One line per variant, fastest first: its peaks, its lone-message latency, and their cost."""
    chosen = measured[measured["work"] == work]
    shown = varying(results)
    messages = stats.best(chosen, "variant", "messages_per_second").set_index("variant")
    data = stats.best(chosen, "variant", "bytes_per_second").set_index("variant")
    alone = choose.lone(chosen).set_index("variant")
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
                *_peak(results, messages.loc[variant], data.loc[variant], shown),
                *_alone(alone.loc[variant] if variant in alone.index else None),
                *_cost(messages.loc[variant]),
            ]
        )
    return Table(_HEADLINE, rows, set(range(1, len(_HEADLINE) - 1)))


def _peak(results: Results, messages: pd.Series, data: pd.Series, shown: list[str]) -> list[str]:
    def said(point, metric, formatter) -> str:
        value = figure_text.figure(formatter, point, metric, True)
        return f"{value}\n{place(results, point, shown)}".strip() + stability.mark(point, "throughput")

    return [
        said(messages, "messages_per_second", units.messages_per_second),
        _of_ceiling(messages),
        units.percent(messages["driver_ratio"]),
        said(data, "bytes_per_second", units.bytes_per_second),
        _of_ceiling(data),
    ]


def _of_ceiling(point: pd.Series) -> str:
    ratio, name = point["messages_per_second_ratio"], point["messages_per_second_bound"]
    bound = figure_text.bound(point, True) if name else ""
    return f"{bound}{units.percent(ratio)}\n{name}".strip()


def _alone(point: pd.Series | None) -> list[str]:
    if point is None:
        return [units.NOTHING] * 4
    p50 = figure_text.figure(units.nanoseconds, point, "p50", False)
    return [
        f"{p50}\n{units.size(point['payload_bytes'])}{stability.mark(point, 'p50')}",
        figure_text.bound(point, False) + units.nanoseconds(point["p99"]) + stability.mark(point, "p99"),
        units.nanoseconds(point["p999"]),
        f"{units.ratio(point['latency_ns_ratio'])}\n{point['latency_ns_bound']}".strip(),
    ]


def _cost(point: pd.Series) -> list[str]:
    threads = units.number(point["host_threads"])
    if point["spinning_threads"] > 0:
        threads += f"\n{units.number(point['spinning_threads'])} spin"
    return [threads, units.number(point["sms"]), point["delivery"] or units.NOTHING]
