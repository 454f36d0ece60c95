"""Parts of the response time that no queue can reduce: the part of the load generator on the same host at the same
rate, and the part of the GPU and its bus at half of their maximum rate."""

import pandas as pd

from .. import units
from ..document import Table
from ..load import Results, machine_letters
from .columns import TASK, VARIANT
from .columns import table as table_of
from .open_load import DUE, P50, P99, SAME_RATE, UNSUSTAINABLE

ROUND = ("round_ns", "round_p99_ns")  # median and 99th percentile of the floor
SAME = ["task", "machine", "device"]
NOTE = (
    "Each queue is shown at the highest rate that it sustained and at which the load generator alone (null) was "
    "measured too. The tail of null is caused by the host and the generator. “The GPU and its bus alone”: a kernel "
    "makes the same round trips as a queue, but without a queue or a host thread, and at its own rate."
)


def table(results: Results, measured: pd.DataFrame) -> Table | None:
    """Each queue followed by the load generator alone, and the floors at the end. `measured`: one curve for each task
    and variant. None if no queue shares a rate with null."""
    kept = measured[measured["kept"] & (measured["queue"] != "null")]
    # A late generator does not disqualify null's rows, because they measure the generator.
    alone = measured[(measured["queue"] == "null") & (measured["state"] != UNSUSTAINABLE)]
    curves = kept.groupby(["task", "variant"], sort=False)
    pairs = [pair for _, curve in curves if (pair := _highest_common(curve, alone)) is not None]
    if not pairs:
        return None
    found = table_of((TASK, DUE, VARIANT, P50, P99), [point for pair in pairs for point in pair])
    machines = dict.fromkeys((queue["machine"], queue["device"]) for queue, _ in pairs)
    found.rows.extend(row for machine, device in machines if (row := _floor(results, machine, device)) is not None)
    return found


def _highest_common(curve: pd.DataFrame, alone: pd.DataFrame) -> tuple[pd.Series, pd.Series] | None:
    alone = alone[(alone[SAME] == curve.iloc[0][SAME]).all(axis=1)]
    for _, point in curve.sort_values("rate", ascending=False).iterrows():
        near = alone[alone["rate"].between(point["rate"] / SAME_RATE, point["rate"] * SAME_RATE)]
        if len(near):
            return point, near.loc[(near["rate"] - point["rate"]).abs().idxmin()]
    return None


def _floor(results: Results, machine: str, device: str) -> list[str] | None:
    limits = results.limits[results.limits["status"] == "ok"]
    limits = limits[(limits["machine"] == machine) & (limits["device"] == device)].set_index("name")
    if not set(ROUND) <= set(limits.index):
        return None
    letters = machine_letters(results.cells)
    where = f" @{letters[machine]}" if len(letters) > 1 else ""
    times = [units.nanoseconds(limits.loc[[name], "value"].median()) for name in ROUND]
    method = limits.loc[[ROUND[0]], "method"].iloc[0]
    return [units.NOTHING, "half of the bus", f"the GPU and its bus alone{where}\n{method}", *times]
