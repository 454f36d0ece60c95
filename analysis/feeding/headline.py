"""Each queue and transfer at its best under closed loads: the headline table of the report, and the front page's."""

from collections.abc import Callable
from typing import NamedTuple

import pandas as pd

from .. import figure_text, stability, stats, units
from ..document import Table
from ..load import Results
from ..tables import place, varying
from . import choose
from .columns import Column, number, table

RATE, BYTES = "messages_per_second", "bytes_per_second"
FRONT_NOTE = (
    "Medians of n repetitions with their 95 % intervals. Lone: the latency of one message of the smallest size with no "
    "other in flight. Each figure is for the variant's best settings, so a row's figures belong to different points. "
    "Unstable: {}."
)

NOTE = (
    "Figures are medians over repetitions, with the 95 % interval in brackets. “Lone”: one message in flight, one "
    "producer, smallest payload. “Of ceiling”: the measured rate as a share of what the named hardware, or Redis "
    "alone, allows. “× floor”: lone p50 divided by the lowest possible. Bytes are payload bytes one way. Threads, SMs "
    "and delivery refer to the peak message rate."
)
NO_LONE = "The sweep has no lone-message cell: add window 1 with producers 1."


class Best(NamedTuple):
    """A variant's points with the most messages, with the most bytes, and with the lowest lone-message latency."""

    messages: pd.Series
    data: pd.Series
    lone: pd.Series | None


def fastest(points: pd.DataFrame) -> dict[str, Best]:
    """The variants, fastest first."""
    candidates = stats.counted(points)
    messages = stats.best(candidates, "variant", RATE).set_index("variant", drop=False)
    data = stats.best(candidates, "variant", BYTES).set_index("variant")
    lone = choose.lone(points).set_index("variant")
    return {
        variant: Best(messages.loc[variant], data.loc[variant], lone.loc[variant] if variant in lone.index else None)
        for variant in messages.sort_values(RATE, ascending=False).index
    }


def named(points: pd.DataFrame) -> pd.DataFrame:
    """A line for each figure of each variant's best points."""
    found = [one for best in fastest(points).values() for one in best if one is not None]
    return pd.DataFrame(found)


VARIANT = Column("queue + transfer", lambda best: best.messages["variant"])


def _lone(heading: str, cell: Callable) -> Column:
    return number(heading, lambda best: units.NOTHING if best.lone is None else cell(best.lone))


def headline(results: Results, measured: pd.DataFrame, work: str) -> Table:
    """One row per variant, fastest first: its peaks, its lone-message latency, and their cost."""
    shown = varying(results)

    def peak(point, metric: str, formatter) -> str:
        value = figure_text.figure(formatter, point, metric, True)
        return f"{value}\n{place(results, point, shown)}".strip() + stability.mark(point, "throughput")

    columns = [
        VARIANT,
        number("peak verified messages", lambda best: peak(best.messages, RATE, units.messages_per_second)),
        number("of ceiling", lambda best: of_ceiling(best.messages)),
        number("of generator's limit", lambda best: units.percent(best.messages["driver_ratio"])),
        number("peak verified bytes", lambda best: peak(best.data, BYTES, units.bytes_per_second)),
        number("of ceiling", lambda best: of_ceiling(best.data)),
        _lone("lone p50", _lone_p50),
        _lone("lone p99", _lone_p99),
        _lone("lone p99.9", lambda point: units.nanoseconds(point["p999"])),
        _lone("× floor", _lone_floor),
        number("host threads", lambda best: _threads(best.messages)),
        number("SMs", lambda best: units.number(best.messages["sms"])),
        Column("delivery", lambda best: best.messages["delivery"] or units.NOTHING),
    ]
    leading = fastest(measured[measured["work"] == work])
    found = table(columns, leading.values())
    cells = results.cells[results.cells["work"] == work]
    for variant, rows in cells.sort_values("rank").groupby("variant", sort=False):
        if variant not in leading:
            statuses = ", ".join(sorted(set(rows["status"])))
            found.rows.append([variant, f"no ok cell ({statuses})", *[units.NOTHING] * (len(columns) - 2)])
    return found


def headline_note(results: Results, measured: pd.DataFrame) -> str:
    """An explanation of the headline table."""
    lacks = [NO_LONE] if choose.lone(measured).empty else []
    chosen = stats.chosen_sentence(named(measured), shown=False)
    return " ".join(filter(None, [NOTE, *lacks, chosen, *stats.explained(results)]))


def of_ceiling(point: pd.Series) -> str:
    """The share of the limit that binds the message rate, and that limit's name."""
    ratio, name = point["messages_per_second_ratio"], point["messages_per_second_bound"]
    bound = figure_text.bound(point, True) if name else ""
    return f"{bound}{units.percent(ratio)}\n{name}".strip()


def _lone_p50(point: pd.Series) -> str:
    p50 = figure_text.figure(units.nanoseconds, point, "p50", False)
    return f"{p50}\n{units.size(point['payload_bytes'])}{stability.mark(point, 'p50')}"


def _lone_p99(point: pd.Series) -> str:
    return figure_text.bound(point, False) + units.nanoseconds(point["p99"]) + stability.mark(point, "p99")


def _lone_floor(point: pd.Series) -> str:
    return f"{units.ratio(point['latency_ns_ratio'])}\n{point['latency_ns_bound']}".strip()


def _threads(point: pd.Series) -> str:
    spinning, server = point["spinning_threads"], point["service_cores"]
    spin = f"\n{units.number(spinning)} spin" if spinning > 0 else ""
    return units.number(point["host_threads"]) + spin + (f"\nserver: {units.ratio(server)} cores" if server > 0 else "")


def _front_threads(point: pd.Series) -> str:
    server = point["service_cores"]
    return units.number(point["host_threads"]) + (f" + {units.ratio(server)} server cores" if server > 0 else "")


def front(results: Results) -> Table | None:
    """The variants that deliver, fastest first, in as few columns as the question needs; None if no row counts."""

    def figure(point, column: str, formatter, stable_if: str, larger: bool = True) -> str:
        unstable = ", unstable" if stable_if in point["unstable"] else ""
        return figure_text.figure(formatter, point, column, larger, ranged=()) + unstable

    measured = choose.main_work(stats.points(results.closed))
    delivering = measured[measured["variant"].isin(results.contest)]
    columns = [
        VARIANT,
        number("n", lambda best: units.number(best.messages["repetitions"])),
        number("peak messages", lambda best: figure(best.messages, RATE, units.messages_per_second, "throughput")),
        number("peak bytes, one way", lambda best: figure(best.data, BYTES, units.bytes_per_second, "throughput")),
        _lone("lone p50", lambda point: figure(point, "p50", units.nanoseconds, "p50", False)),
        number("host threads", lambda best: _front_threads(best.messages)),
        Column("delivery", lambda best: best.messages["delivery"]),
    ]
    return table(columns, fastest(delivering).values()) if len(measured) else None


def front_note(results: Results) -> str:
    """An explanation of the table."""
    measured = choose.main_work(stats.points(results.closed))
    chosen = stats.chosen_sentence(named(measured[measured["variant"].isin(results.contest)]), shown=False)
    rule = FRONT_NOTE.format(stability.rule(results.experiment))
    return " ".join(filter(None, [rule, chosen, *stats.explained(results)]))
