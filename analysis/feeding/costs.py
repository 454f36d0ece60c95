"""Costs of each variant's peak that the headline table leaves out: busy cores and watts."""

import pandas as pd

from .. import figure_text, stability, stats, units
from ..document import Block, Heading, Text
from ..load import Results
from . import choose, open_load
from .columns import COST, Column, number, table

TITLE = "What the peak costs"
NOTE = (
    "All figures are medians over the repetitions. “Cores used” is the benchmark process's CPU seconds per second, "
    "including threads that only spin. “Server's cores” is the same for the Redis server, a separate process. “GPU "
    "power” is the power of the entire board as reported by NVML."
)


def blocks(results: Results, measured: pd.DataFrame) -> list[Block]:
    """The table and its note; empty if no row has cores or watts. `measured`: the points of closed loads. Without
    them, the table shows the highest rates sustained in open loads."""
    loads = open_load.points(results)
    for points, rate, heading in (
        (choose.main_work(measured), "messages_per_second", "peak verified messages"),
        (loads[loads["kept"]], "rate", "highest rate sustained"),
    ):
        best = stats.best(points, "variant", rate).sort_values(rate, ascending=False)
        if best[["own_cores", "power_w"]].notna().any(axis=None):
            return [Heading(TITLE), table(_columns(rate, heading), best.to_dict("records")), Text(NOTE, "note")]
    return []


def _columns(rate: str, heading: str) -> list[Column]:
    def rate_cell(point: dict) -> str:
        mark = stability.mark(point, "throughput") if rate != "rate" else ""
        return figure_text.bound(point, True) + units.messages_per_second(point[rate]) + mark

    payload = number("payload", lambda point: units.size(point["payload_bytes"]))
    return [Column("queue + transfer", lambda point: point["variant"]), number(heading, rate_cell), payload, *COST]
