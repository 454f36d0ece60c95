"""What each variant's peak costs beyond what the headline says: cores that were busy, and watts."""

import pandas as pd

from . import open_load, stats, units
from .advice import cost_cells
from .document import Block, Heading, Table, Text
from .load import Results

TITLE = "What the peak costs"


def blocks(results: Results, measured: pd.DataFrame) -> list[Block]:
    """Nothing where no row tells of cores or watts. `measured`: the points of closed loads; without any, the highest
    rate counts that was sustained of an open load."""
    peaks, rate, what = _peaks(results, measured)
    if peaks.empty or peaks[["own_cores", "power_w"]].isna().all(axis=None):
        return []
    rows = [
        [point["variant"], units.messages_per_second(point[rate]), units.size(point["payload_bytes"]), *cost_cells(point)]
        for _, point in peaks.sort_values(rate, ascending=False).iterrows()
    ]
    columns = ["queue + transfer", what, "payload", "host threads", "cores used", "SMs", "GPU power", "delivery"]
    note = (
        "Medians over the repetitions. Cores used: CPU seconds a second of the benchmark's own process, whatever its "
        "threads do; a Redis server is a process of its own. GPU power: the whole board's, as NVML counts it."
    )
    return [Heading(TITLE), Table(columns, rows, {1, 2, 3, 4, 5, 6}), Text(note, "note")]


def _peaks(results: Results, measured: pd.DataFrame) -> tuple[pd.DataFrame, str, str]:
    if len(measured):
        main = measured[measured["work"] == stats.main_work(measured)]
        return stats.best(main, "variant", "messages_per_second"), "messages_per_second", "peak verified messages"
    found = open_load.points(results)
    kept = found[found["kept"]] if len(found) else found
    return (stats.best(kept, "variant", "rate") if len(kept) else kept), "rate", "highest rate sustained"
