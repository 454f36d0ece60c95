"""What a queue's response time is made of that no queue can mend: the driver's, on the same host at the same rate, and
the GPU's with its bus, at half of what they can move."""

import pandas as pd

from . import units
from .document import Table
from .load import Results
from .open_load import SAME_RATE

ROUND = ("round_ns", "round_p99_ns")  # the floor's median and 99th percentile


def table(results: Results, measured: pd.DataFrame) -> Table | None:
    """For each queue and task the highest rate that the driver alone (null) sustained, too, with both beside the floor.
    `measured`: one curve for each task and variant. None where no rate is common."""
    kept = measured[measured["kept"]] if len(measured) else measured
    pairs = [pair for curve in _curves(kept) if (pair := _highest_common(curve, kept)) is not None]
    if not pairs:
        return None
    rows = []
    for queue, alone in pairs:
        where = [queue["task"], units.messages_per_second(queue["rate"])]
        rows.append([*where, f"{queue['variant']}\n{queue['setting']}".strip(), *_times(queue)])
        rows.append([*where, f"{alone['variant']}\n{alone['setting']}".strip(), *_times(alone)])
    floors = results.floors[results.floors["status"] == "ok"].set_index("name")
    if set(ROUND) <= set(floors.index):
        said = [units.nanoseconds(floors.loc[[name], "value"].median()) for name in ROUND]
        told = floors.loc[[ROUND[0]], "description"].iloc[0]
        rows.append([units.NOTHING, units.NOTHING, f"the GPU and its bus alone\n{told}", *said, units.NOTHING])
    return Table(["task", "due", "what", "p50", "p99", "collectors busy"], rows, {1, 3, 4, 5})


def _curves(kept: pd.DataFrame):
    others = kept[kept["queue"] != "null"] if len(kept) else kept
    return [curve for _, curve in others.groupby(["task", "variant"], sort=False)] if len(others) else []


def _highest_common(curve: pd.DataFrame, kept: pd.DataFrame) -> tuple[pd.Series, pd.Series] | None:
    null = kept[(kept["queue"] == "null") & (kept["task"] == curve["task"].iloc[0])]
    for _, point in curve.sort_values("rate", ascending=False).iterrows():
        near = null[null["rate"].between(point["rate"] / SAME_RATE, point["rate"] * SAME_RATE)]
        if len(near):
            return point, near.iloc[0]
    return None


def _times(point: pd.Series) -> list[str]:
    times = [
        units.spread(units.nanoseconds, point[name], point[f"{name}_low"], point[f"{name}_high"])
        for name in ("p50", "p99")
    ]
    return [*times, units.percent(point["collectors_busy"])]
