"""The front page's table: each queue and transfer at its best, in as few columns as answer the question."""

from .. import quoted, stability, stats, units
from ..document import Table
from ..load import Results
from . import choose

COLUMNS = ["queue + transfer", "n", "peak messages", "peak bytes, one way", "lone p50", "host threads", "delivery"]
NOTE = (
    "Medians of n repetitions with their 95 % intervals. Lone: the latency of one 64 B message with no other in flight. "
    "Each figure is for the variant's best settings of this sweep, so a row's figures belong to different points. Unstable: the repetitions differ by a factor of 1.5 or more."
)


def front(results: Results) -> Table:
    """The variants that deliver, the fastest first."""
    measured = stats.points(results.closed)
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
                _said(peak, "messages_per_second", units.messages_per_second, "throughput"),
                _said(data.loc[variant], "bytes_per_second", units.bytes_per_second, "throughput"),
                _said(alone.loc[variant], "p50", units.nanoseconds, "p50", larger=False),
                units.number(peak["host_threads"]),
                peak["delivery"],
            ]
        )
    return Table(COLUMNS, rows, {1, 2, 3, 4, 5})


def _said(point, column: str, formatter, metric: str, larger: bool = True) -> str:
    said = quoted.figure(formatter, point, column, larger, ranged=())
    return f"{said}, unstable" if stability.mark(point, metric) else said
