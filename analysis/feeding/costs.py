"""Costs of each variant's peak that the headline table leaves out: busy cores and watts."""

import pandas as pd

from .. import figure_text, stability, stats, units
from ..document import Block, Heading, Table, Text
from ..load import Results
from . import open_load
from .advice import cost_cells

TITLE = "What the peak costs"
NOTE = (
    "All figures are medians over the repetitions. “Cores used” is the benchmark process's CPU seconds per second, "
    "including threads that only spin; a Redis server is a separate process and is not included. “GPU power” is the "
    "power of the entire board as reported by NVML."
)


def blocks(results: Results, measured: pd.DataFrame) -> list[Block]:
    """The table and its note; empty if no row has cores or watts. `measured`: the points of closed loads."""
    for peaks, rate, what in (_closed(measured), _open(results)):
        if len(peaks) and peaks[["own_cores", "power_w"]].notna().any(axis=None):
            return [Heading(TITLE), _table(peaks.sort_values(rate, ascending=False), rate, what), Text(NOTE, "note")]
    return []


def _closed(measured: pd.DataFrame) -> tuple[pd.DataFrame, str, str]:
    main = measured[measured["work"] == stats.main_work(measured)] if len(measured) else measured
    return stats.best(main, "variant", "messages_per_second"), "messages_per_second", "peak verified messages"


def _open(results: Results) -> tuple[pd.DataFrame, str, str]:
    """The fallback if there are no closed loads: the highest sustained rate."""
    found = open_load.points(results)
    kept = found[found["kept"]] if len(found) else found
    return (stats.best(kept, "variant", "rate") if len(kept) else kept), "rate", "highest rate sustained"


def _table(peaks: pd.DataFrame, rate: str, what: str) -> Table:
    rows = [
        [
            point["variant"],
            figure_text.bound(point, True)
            + units.messages_per_second(point[rate])
            + (stability.mark(point, "throughput") if rate != "rate" else ""),
            units.size(point["payload_bytes"]),
            *cost_cells(point),
        ]
        for _, point in peaks.iterrows()
    ]
    columns = ["queue + transfer", what, "payload", "host threads", "cores used", "SMs", "GPU power", "delivery"]
    return Table(columns, rows, {1, 2, 3, 4, 5, 6})
