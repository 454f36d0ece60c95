"""What a lone message takes beyond its kernel, by the kernel's length: it shows when the copy of a result begins."""

import pandas as pd

from .. import units
from ..document import Table, markdown_table
from ..load import Results

WORK, STAGE = "flops_per_byte", "kernel_end"
LEAST_LENGTHS = 8
NOTE = (
    "Kernel: its mean time from start to end, by the GPU's clock. Beyond the kernel: the p50 of a message with no other in "
    "flight, less the kernel's time. Both are medians of the repetitions. If everything after a kernel began as soon as the "
    "kernel ended, this would not depend on the kernel's length."
)


def lines(results: Results) -> pd.DataFrame:
    """The points of lone messages with the columns `variant`, `kernel` and `beyond` (both in ns), of all variants that were
    measured with kernels of many lengths."""
    cells = results.closed.counted
    if WORK not in results.axes or cells.empty:
        return pd.DataFrame()
    cells = cells[(cells["window"] == 1) & cells[WORK].notna() & cells["stages"].map(lambda one: STAGE in (one or {}))]
    if cells.empty:
        return pd.DataFrame()
    timed = cells.assign(kernel=cells["stages"].map(lambda one: one[STAGE]["mean"]))
    keys = ["machine", "rank", "variant", "payload_bytes", WORK]
    found = timed.groupby(keys, dropna=False)[["kernel", "p50"]].median().reset_index()
    found["beyond"] = found["p50"] - found["kernel"]
    lengths = found.groupby(["machine", "variant", "payload_bytes"])[WORK].transform("nunique")
    return found[lengths >= LEAST_LENGTHS]


def table(found: pd.DataFrame) -> Table:
    """One row per variant."""
    rows = []
    for (_, _, variant, size), line in found.groupby(["machine", "rank", "variant", "payload_bytes"]):
        ends = [[units.nanoseconds(value) for value in (line[what].min(), line[what].max())] for what in ("kernel", "beyond")]
        rows.append([variant, units.size(size), str(len(line)), *(" to ".join(pair) for pair in ends)])
    return Table(["queue + transfer", "payload", "kernels", "their lengths", "beyond the kernel"], rows, {1, 2, 3, 4})


def text(results: Results) -> list[str]:
    """The block's parts without its picture; empty if there are no such rows."""
    found = lines(results)
    return [markdown_table(table(found)), NOTE] if len(found) else []
