"""What holding back a batch costs and brings: open loads against the time for which a producer waits for a full batch."""

from dataclasses import replace

import pandas as pd

from .. import quoted, stability, tables, units
from ..document import Table, markdown_table
from ..load import Results
from . import open_load

AXIS = "batch_timeout_us"
NOTE = (
    "A producer holds back a batch that is not full for so long; 0 sends at once what there is. Response times are from "
    "when a message was due, so the holding back is in them. Not sustained: the backlog grew in some repetition, and "
    "the latency there only says how long the phase was."
)


def lines(results: Results) -> pd.DataFrame:
    """The points of open loads of which several timeouts were measured, equal in all else. `line` numbers what is
    compared. Of several settings of a task, queue, transfer and rate: the one of most timeouts."""
    if AXIS not in results.axes or "rate" not in results.axes:
        return pd.DataFrame()
    # By the rate that was asked for: what was due in a short phase differs more than the rates of one search do.
    cells = results.cells[results.cells["rate"] > 0]
    measured = open_load.points(replace(results, cells=cells.assign(due_per_second=cells["rate"].astype(float))))
    if measured.empty:
        return measured
    keys = ["machine", "task", "variant", *(axis for axis in results.axes if axis not in ("rate", AXIS)), "rate"]
    measured["line"] = measured.groupby(keys, sort=False, dropna=False).ngroup()
    measured["timeouts"] = measured.groupby("line")[AXIS].transform("nunique")
    measured = measured[measured["timeouts"] > 1]
    fullest = measured.sort_values("timeouts", ascending=False, kind="stable").drop_duplicates(["task", "variant", "rate"])
    return measured[measured["line"].isin(fullest["line"])]


def in_order(found: pd.DataFrame) -> list[pd.DataFrame]:
    """A frame a line: by task, variant and rate; each by its timeouts."""
    groups = found.groupby(["task", "rank", "rate", "line"], sort=False)
    tasks = list(found["task"].unique())
    order = sorted(groups, key=lambda group: (tasks.index(group[0][0]), *group[0][1:]))
    return [line.sort_values(AXIS) for _, line in order]


def table(results: Results, found: pd.DataFrame) -> Table:
    """A line a point."""
    shown = [axis for axis in tables.varying(results) if axis not in (AXIS, "rate", "payload_bytes", "arrivals")]
    rows = []
    for line in in_order(found):
        for _, point in line.iterrows():
            back = quoted.figure(units.messages_per_second, point, "messages_per_second", True)
            rows.append(
                [
                    point["task"],
                    f"{point['variant']}\n{tables.place(results, point, shown)}".strip(),
                    units.messages_per_second(point["rate"]),
                    said(point[AXIS]),
                    *open_load.latencies(point),
                    back + stability.mark(point, "throughput"),
                    "yes" if point["state"] == open_load.SUSTAINED else "no",
                ]
            )
    columns = ["task", "queue + transfer", "due", "held back for", "p50", "p99", "came back", "sustained"]
    return Table(columns, rows, {2, 3, 4, 5, 6})


def said(timeout_us: float) -> str:
    return units.tick(units.nanoseconds)(1e3 * timeout_us) if timeout_us else "0"


def note(results: Results) -> str:
    return f"{open_load.note(results)} {NOTE}"


def text(results: Results) -> list[str]:
    """The block's parts, but for its pictures; nothing where there are no such rows."""
    found = lines(results)
    return [markdown_table(table(results, found)), note(results)] if len(found) else []
