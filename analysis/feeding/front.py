"""The front page's table: each queue and transfer at its best, in as few columns as answer the question."""

from .. import figure_text, stability, stats, units
from ..document import Table
from ..load import Results
from . import choose

COLUMNS = ["queue + transfer", "n", "peak messages", "peak bytes, one way", "lone p50", "host threads", "delivery"]
def front(results: Results) -> Table | None:
    """The variants that deliver, the fastest first; None if no row counts."""
    measured = stats.points(results.closed)
    if measured.empty:
        return None
    delivering = measured["variant"].isin(results.contending.cells["variant"])
    chosen = measured[delivering & (measured["work"] == stats.main_work(measured))]
    messages = stats.best(chosen, "variant", "messages_per_second").set_index("variant")
    data = stats.best(chosen, "variant", "bytes_per_second").set_index("variant")
    alone = choose.lone(chosen).set_index("variant")
    rows = []
    for variant, peak in messages.sort_values("messages_per_second", ascending=False).iterrows():
        rows.append(
            [
                str(variant),
                units.number(peak["repetitions"]),
                _rate(peak, "messages_per_second", units.messages_per_second),
                _rate(data.loc[variant], "bytes_per_second", units.bytes_per_second),
                _lone(alone.loc[variant]) if variant in alone.index else units.NOTHING,
                units.number(peak["host_threads"]),
                peak["delivery"],
            ]
        )
    return Table(COLUMNS, rows, {1, 2, 3, 4, 5})


def front_note(results: Results) -> str:
    """How to read the table."""
    said = [
        "Medians of n repetitions with their 95 % intervals. Lone: the latency of one message of the smallest size with no "
        "other in flight. Each figure is for the variant's best settings, so a row's figures belong to different points.",
        f"Unstable: {stability.rule(results.experiment)}.",
    ]
    return " ".join([*said, *stats.explained(results)])


def _rate(point, column: str, formatter) -> str:
    return figure_text.figure(formatter, point, column, True, ranged=()) + _unstable(point, "throughput")


def _lone(point) -> str:
    return figure_text.figure(units.nanoseconds, point, "p50", False, ranged=()) + _unstable(point, "p50")


def _unstable(point, metric: str) -> str:
    return ", unstable" if metric in point["unstable"] else ""
