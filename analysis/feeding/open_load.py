"""Open loads: messages are due at a rate that does not depend on the queue. Groups rows into points and points into
curves.

A point is sustained if every repetition was ok. A repetition with a late generator counts and is marked. Its
response times include the generator's lag; the time without the lag is also shown if the row has it.
"""

from functools import lru_cache

import numpy as np
import pandas as pd

from .. import flags, figure_text, stability, stats, tables, units
from ..document import Table
from ..load import Results
from .columns import TASK, VARIANT, number

SAME_RATE = 1.05  # rates within this ratio form one point, because repeated searches try slightly different rates
SUSTAINED, UNSUSTAINABLE = "sustained", "unsustainable"
WITHOUT_LAG = "without_own_lag"  # suffix of columns that exclude the generator's lag
TIMES = ("p50", "p99", f"p50_{WITHOUT_LAG}", f"p99_{WITHOUT_LAG}")
FIGURES = (*TIMES, "messages_per_second")
METRICS = (*FIGURES, "host_threads", "sms", "own_cores", "power_w")
# Axes that, with the rate, define the load; the other axes are settings of the queue.
_LOAD = ("payload_bytes", "arrivals", "burst_us", "pause_us", "payload_mix", "priority_mix", "trace_file")


def points(results: Results) -> pd.DataFrame:
    """One row for each variant, task, setting and rate: medians over its repetitions, with their range and 95 %
    interval. `generator`: number of rows with a late generator. `missed`: number of rows that were not sustained.
    `kept`: whether this rate and every lower rate of its curve were sustained."""
    return _points(results).copy()


@lru_cache(maxsize=8)  # as for stats.points
def _points(results: Results) -> pd.DataFrame:
    cells = results.cells[results.cells["open"] & results.cells["due_per_second"].notna()]
    cells = cells[cells["status"].isin(["ok", "unsustainable"])]
    keys = ["variant", "rank", "machine", "work", *[axis for axis in results.axes if axis != "rate"]]
    if cells.empty:
        columns = [*keys, *METRICS, "rate", "state", "generator", "curve", "task", "setting", "kept"]
        return pd.DataFrame(columns=columns).astype({"kept": bool})
    cells = cells.assign(
        curve=cells.groupby(keys, sort=False, dropna=False).ngroup(), beyond=cells["status"] == "unsustainable"
    )
    cells["near"] = cells.groupby("curve")["due_per_second"].transform(same_rates)
    groups = cells.assign(row=cells.index, rate=cells["due_per_second"]).groupby(["curve", "near"])
    found = groups[[*keys, "delivery"]].first().join(stats.ranges(groups, METRICS)).assign(
        rate=groups["rate"].median(),
        repetitions=groups.size(),
        flags=groups["flags"].agg(flags.counts),
        members=groups["row"].agg(list),
        reason=cells[cells["beyond"]].groupby(["curve", "near"])["reason"].first(),
        missed=groups["beyond"].sum(),
        state=np.where(groups["beyond"].any(), UNSUSTAINABLE, SUSTAINED),
    )  # fmt: skip
    found = stability.judged(results.experiment, found, stats.ends(groups)).reset_index()
    found = found.drop(columns="near").fillna({"reason": ""})
    # Beyond saturation, latency is as long as the phase, so its scatter says nothing about the scatter of the other
    # points.
    parts = [some for _, some in found.groupby("state", sort=False)]
    parts = [stats.with_intervals(some, cells, FIGURES, np.arange(len(some)), set(TIMES)) for some in parts]
    found = pd.concat(parts).sort_index()
    found["generator"] = [warned.get(flags.LATE, 0) for warned in found["flags"]]
    first = found["rate"].where(found["state"] == UNSUSTAINABLE).groupby(found["curve"]).transform("min").fillna(np.inf)
    return describe(found.assign(kept=(found["state"] == SUSTAINED) & (found["rate"] < first)), results)


def same_rates(rates: pd.Series) -> np.ndarray:
    """The group number of each rate. A rate above SAME_RATE times the first rate of a group starts the next group."""
    order = np.argsort(rates.to_numpy(), kind="stable")
    numbers, number, first = np.empty(len(rates), dtype=int), -1, -np.inf
    for at in order:
        if number < 0 or rates.iloc[at] > SAME_RATE * first:
            number, first = number + 1, rates.iloc[at]
        numbers[at] = number
    return numbers


def describe(lines: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Adds `task` (the load, in words) and `setting` (the queue's settings on the axes that vary, in words), and sorts
    the rows by task: the main workload first, then by payload."""
    if lines.empty:
        return lines.assign(task=[], setting=[])
    lines = lines if "arrivals" in lines else lines.assign(arrivals="closed")
    main = stats.main_work(lines)
    several = lines["work"].nunique() > 1
    shown = [axis for axis in tables.varying(results) if axis not in (*_LOAD, "rate")]
    order = pd.DataFrame(
        {"other": lines["work"] != main, "work": lines["work"], "arrivals": lines["arrivals"] != "poisson"}
        | {axis: lines[axis] for axis in ("payload_bytes", "rank")}
    ).sort_values(["other", "work", "arrivals", "payload_bytes", "rank"], kind="stable")
    return lines.assign(
        task=[_task(results, line, several) for _, line in lines.iterrows()],
        setting=[tables.place(results, line, shown) for _, line in lines.iterrows()],
    ).loc[order.index]


def _task(results: Results, line: pd.Series, several_works: bool) -> str:
    """The load in words: '64 B', 'fma_chain, 4 KiB, bursts of 100 µs, pauses of 900 µs'."""
    # A burst length implies bursts.
    implied = ("poisson", "closed", *(("bursts",) if line.get("burst_us", 0) else ()))
    arrivals = "" if line["arrivals"] in implied else line["arrivals"]
    rest = [axis for axis in _LOAD[2:] if line.get(axis, 0) not in (0, "none")]
    parts = [line["work"] if several_works else "", units.size(line["payload_bytes"]), arrivals]
    return ", ".join(part for part in [*parts, tables.place(results, line, rest)] if part)


def curves(measured: pd.DataFrame) -> pd.DataFrame:
    """For each task and variant, the points of the setting that sustained the highest rate."""
    best = measured.assign(top=measured["rate"].where(measured["kept"], 0)).sort_values(
        ["top", "p99"], ascending=[False, True], kind="stable"
    )
    return measured[measured["curve"].isin(best.drop_duplicates(["task", "variant"])["curve"])]


def comparable(task: pd.DataFrame) -> pd.DataFrame:
    """The points of one task at the rate that most variants sustain; if several rates qualify, the highest of them."""
    kept = task[task["kept"]]
    if kept.empty:
        return kept
    kept = kept.assign(group=same_rates(kept["rate"]))
    groups = [group.drop_duplicates("variant") for _, group in kept.groupby("group")]
    return max(groups, key=lambda group: (len(group), group["rate"].median()))


def plateau(curve: pd.DataFrame) -> pd.Series | None:
    """The curve's point at the lowest rate that was not sustained: the rate of results there is the maximum."""
    beyond = curve[curve["state"] == UNSUSTAINABLE]
    return beyond.loc[beyond["rate"].idxmin()] if len(beyond) else None


def saturation(measured: pd.DataFrame) -> Table:
    """For each curve, the highest sustained rate, and the outcome at the lowest rate that was not sustained."""
    rows = []
    for _, curve in measured.groupby(["task", "variant"], sort=False):
        first = plateau(curve)
        top = curve.loc[curve["rate"].where(curve["kept"]).idxmax()] if curve["kept"].any() else None
        line = [column.cell(curve.iloc[0]) for column in (TASK, VARIANT)]
        line += [units.NOTHING] * 3 if top is None else [column.cell(top) for column in (DUE, P50, P99)]
        line += [units.NOTHING] * 3 if first is None else _first_failure_cells(first)
        rows.append([*line, units.number(int(curve["generator"].sum()))])
    columns = ["task", "queue + transfer", "sustained up to", "its p50", "its p99", "first rate not sustained"]
    columns += ["results returned at it", "why", "rows with a late generator"]
    return Table(columns, rows, {2, 3, 4, 5, 6, 8})


def note(results: Results) -> str:
    """An explanation of the tables of open loads."""
    note = f"{figure_text.NOTE} A point with a late generator also shows its lowest and its highest repetition."
    return f"{note} {flags.legend(results.cells[results.cells['open']])}".strip()


def _latency(point: pd.Series, name: str) -> str:
    """The latency with its interval, and also without the generator's lag if that makes it clearly shorter."""
    text = figure_text.figure(units.nanoseconds, point, name, False) + stability.mark(point, name)
    without = f"{name}_{WITHOUT_LAG}"
    shorter = point[without] < 0.95 * point[name] or point[f"{without}_greatest"] < 0.95 * point[f"{name}_greatest"]
    if not shorter:
        return text
    ends = [units.nanoseconds(point[f"{without}_{end}"]) for end in ("least", "greatest")]
    extent = f", {ends[0]} to {ends[1]}" if point["generator"] and ends[0] != ends[1] else ""
    return f"{text}\nwithout the generator's lag {units.nanoseconds(point[without])}{extent}"


def _first_failure_cells(point: pd.Series) -> list[str]:
    missed, every = point["missed"], point["repetitions"]
    some = f"in {missed} of {every} repetitions: " if missed < every else ""
    return [DUE.cell(point), RETURNED.cell(point), some + point["reason"]]


def _returned(point: pd.Series) -> str:
    returned = figure_text.figure(units.messages_per_second, point, "messages_per_second", True)
    return returned + stability.mark(point, "throughput")


DUE = number("due", lambda point: units.messages_per_second(point["rate"]))
P50 = number("p50", lambda point: _latency(point, "p50"))
P99 = number("p99", lambda point: _latency(point, "p99"))
RETURNED = number("results returned", _returned)
