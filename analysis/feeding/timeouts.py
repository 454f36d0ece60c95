"""Cost and benefit of holding back batches under open load, for each batch timeout."""

from dataclasses import replace

import pandas as pd

from .. import tables, units
from ..document import Table, markdown_table
from ..load import Results
from . import open_load
from .columns import TASK, Column, number
from .columns import table as table_of

AXIS = "batch_timeout_us"
NOTE = (
    "A producer holds back a partial batch for up to this time; 0 sends a partial batch at once. Response times start "
    "when a message was due, so they include this wait. Not sustained: the backlog grew in at least one repetition, "
    "and the latency only reflects how long the phase was."
)


def lines(results: Results) -> pd.DataFrame:
    """The points of open loads that were measured with several timeouts and are otherwise equal. `line` numbers each
    set of points that differ only in the timeout. If several settings share a task, queue, transfer and rate, the one
    with the most timeouts is kept."""
    if AXIS not in results.axes or "rate" not in results.axes:
        return pd.DataFrame()
    # Group by the requested rate: in a short phase, the rate actually due varies more than the rates of one search.
    cells = results.cells[results.cells["rate"] > 0]
    measured = open_load.points(replace(results, cells=cells.assign(due_per_second=cells["rate"].astype(float))))
    keys = ["machine", "task", "variant", *(axis for axis in results.axes if axis not in ("rate", AXIS)), "rate"]
    measured["line"] = measured.groupby(keys, sort=False, dropna=False).ngroup()
    measured["timeouts"] = measured.groupby("line")[AXIS].transform("nunique")
    measured = measured[measured["timeouts"] > 1]
    ranked = measured.sort_values("timeouts", ascending=False, kind="stable")
    return measured[measured["line"].isin(ranked.drop_duplicates(["task", "variant", "rate"])["line"])]


def in_order(found: pd.DataFrame) -> list[pd.DataFrame]:
    """One frame per line, sorted by task, variant and rate; each frame is sorted by timeout."""
    groups = found.groupby(["task", "rank", "rate", "line"], sort=False)
    tasks = list(found["task"].unique())
    order = sorted(groups, key=lambda group: (tasks.index(group[0][0]), *group[0][1:]))
    return [line.sort_values(AXIS) for _, line in order]


def table(results: Results, found: pd.DataFrame) -> Table:
    """One row per point."""
    shown = [axis for axis in tables.varying(results) if axis not in (AXIS, "rate", "payload_bytes", "arrivals")]
    columns = (
        TASK,
        Column("queue + transfer", lambda point: f"{point['variant']}\n{tables.place(results, point, shown)}".strip()),
        open_load.DUE,
        number("held back for", lambda point: _timeout(point[AXIS])),
        open_load.P50,
        open_load.P99,
        open_load.RETURNED,
        Column("sustained", lambda point: "yes" if point["state"] == open_load.SUSTAINED else "no"),
    )
    return table_of(columns, [point for line in in_order(found) for _, point in line.iterrows()])


def _timeout(microseconds: float) -> str:
    return units.tick(units.nanoseconds)(1e3 * microseconds) if microseconds else "0"


def note(results: Results) -> str:
    return f"{open_load.note(results)} {NOTE}"


def text(results: Results) -> list[str]:
    """The block's parts without its pictures; empty if there are no such rows."""
    found = lines(results)
    return [markdown_table(table(results, found)), note(results)] if len(found) else []
