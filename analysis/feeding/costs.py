"""What each variant's peak costs beyond what the headline says: cores that were busy, and watts."""

import pandas as pd

from .. import quoted, stability, stats, units
from ..document import Block, Heading, Table, Text
from ..load import Results
from . import open_load
from .advice import cost_cells

TITLE = "What the peak costs"
NOTE = (
    "Medians over the repetitions. Cores used: CPU seconds a second of the benchmark's own process, whatever its "
    "threads do; a Redis server is a process of its own. GPU power: the whole board's, as NVML counts it."
)


def blocks(results: Results, measured: pd.DataFrame) -> list[Block]:
    """Nothing where no row tells of cores or watts. `measured`: the points of closed loads."""
    for peaks, rate, what in (_closed(measured), _open(results)):
        if len(peaks) and peaks[["own_cores", "power_w"]].notna().any(axis=None):
            return [Heading(TITLE), _table(peaks.sort_values(rate, ascending=False), rate, what), Text(NOTE, "note")]
    return []


def _closed(measured: pd.DataFrame) -> tuple[pd.DataFrame, str, str]:
    main = measured[measured["work"] == stats.main_work(measured)] if len(measured) else measured
    return stats.best(main, "variant", "messages_per_second"), "messages_per_second", "peak verified messages"


def _open(results: Results) -> tuple[pd.DataFrame, str, str]:
    """Where closed loads say nothing: the highest rate that was sustained."""
    found = open_load.points(results)
    kept = found[found["kept"]] if len(found) else found
    return (stats.best(kept, "variant", "rate") if len(kept) else kept), "rate", "highest rate sustained"


def _table(peaks: pd.DataFrame, rate: str, what: str) -> Table:
    rows = [
        [
            point["variant"],
            quoted.bound(point, True)
            + units.messages_per_second(point[rate])
            + (stability.mark(point, "throughput") if rate != "rate" else ""),
            units.size(point["payload_bytes"]),
            *cost_cells(point),
        ]
        for _, point in peaks.iterrows()
    ]
    columns = ["queue + transfer", what, "payload", "host threads", "cores used", "SMs", "GPU power", "delivery"]
    return Table(columns, rows, {1, 2, 3, 4, 5, 6})
