"""What a queue's response time is made of that no queue can mend: the driver's, on the same host at the same rate, and
the GPU's with its bus, at half of what they can move."""

import pandas as pd

from .. import units
from ..document import Table
from ..load import Results, machine_letters
from .open_load import SAME_RATE, UNSUSTAINABLE, latencies

ROUND = ("round_ns", "round_p99_ns")  # the floor's median and 99th percentile
SAME = ["task", "machine", "device"]
NOTE = (
    "Each queue at the highest rate that it sustained and at which the driver alone (null) was measured, too: the tail of "
    "null is the host's, and its generator's. The GPU and its bus alone: a kernel that makes a queue's rounds with no queue "
    "and no host, at a rate of its own."
)


def table(results: Results, measured: pd.DataFrame) -> Table | None:
    """The queues beside the driver, and the floor below. `measured`: one curve for each task and variant. None where no
    rate is common."""
    if measured.empty:
        return None
    kept = measured[measured["kept"] & (measured["queue"] != "null")]
    # A late generator is the driver, too, so it leaves null's figures what they are.
    alone = measured[(measured["queue"] == "null") & (measured["state"] != UNSUSTAINABLE)]
    curves = kept.groupby(["task", "variant"], sort=False)
    pairs = [pair for _, curve in curves if (pair := _highest_common(curve, alone)) is not None]
    if not pairs:
        return None
    rows = [
        [
            point["task"],
            units.messages_per_second(point["rate"]),
            f"{point['variant']}\n{point['setting']}".strip(),
            *latencies(point),
        ]
        for pair in pairs
        for point in pair
    ]
    machines = dict.fromkeys((queue["machine"], queue["device"]) for queue, _ in pairs)
    rows += [row for machine, device in machines if (row := _floor(results, machine, device)) is not None]
    return Table(["task", "due", "queue + transfer", "p50", "p99"], rows, {1, 3, 4})


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
    said = [units.nanoseconds(limits.loc[[name], "value"].median()) for name in ROUND]
    told = limits.loc[[ROUND[0]], "method"].iloc[0]
    return [units.NOTHING, "half of the bus", f"the GPU and its bus alone{where}\n{told}", *said]
