"""Advice on which queue to use: for each task and latency bound, the queue with the highest rate and its cost."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .. import figure_text, stability, stats, units
from ..document import Block, Heading, Link, Table, Text
from ..load import Results
from . import capacity, open_load

TITLE = "Which should I use?"
BOUNDS_NS = (20e3, 100e3, 1e6)  # bounds on p99, used if no capacity search sets its own
COLUMNS = ["task", "bound", "use", "its rate", "host threads", "cores used", "SMs", "GPU power", "delivery"]
NUMBERS = {3, 4, 5, 6, 7}


@dataclass(frozen=True)
class Candidate:
    """The rate that a variant carries under a bound. `cost` has host_threads, own_cores, sms, power_w and delivery."""

    queue: str
    variant: str
    setting: str
    rate: float
    high: float  # upper end of the interval that a search found; equals `rate` if the rate was measured
    said: str
    cost: pd.Series
    evidence: str  # the row's id and its directory, one per line


Choices = dict[tuple[str, str], list[Candidate]]  # by task and bound


def blocks(results: Results) -> list[Block]:
    """The table and a note on how it was made; empty if no load is ok."""
    contest = results.contest
    for choose, made_of in (
        (_from_capacities, "capacity searches that each found an interval; variants are ranked by the median of "
         "the lower ends"),
        (_from_open_loads, "open loads: a rate counts if it and every lower rate were sustained"),
        (_from_closed_loads, "closed loads, which send a message only after an earlier one has returned: their latency "
         "leaves out the wait of a real load, so the rates are upper limits"),
    ):  # fmt: skip
        choices = choose(results, contest)
        if choices:
            return [Heading(TITLE), _table(choices), Text(_note(made_of), "note")]
    return []


def _note(made_of: str) -> str:
    return (
        f"This table is based on {made_of}. The highest rate wins; the runner-up is the best variant of another queue. "
        "Costs apply at that rate and are medians over its repetitions or tries. “Cores used” is the benchmark "
        "process's CPU seconds per second."
    )


def _from_capacities(results: Results, contest: set[str]) -> Choices:
    found = capacity.answers(results)
    choices: Choices = {(line["task"], capacity.bound(line)): [] for _, line in found.iterrows()}
    for _, line in capacity.best_settings(found).iterrows():
        if line["variant"] in contest and line["low"] > 0:
            said = "\n".join(capacity.interval(*one) for one in line["intervals"])
            cost = capacity.spent(line, results.cells)
            choices[line["task"], capacity.bound(line)].append(_candidate(line, line["low"], said, cost, line))
    return choices


def _from_open_loads(results: Results, contest: set[str]) -> Choices:
    measured = open_load.points(results)
    return _under_bounds(measured[measured["kept"]] if len(measured) else measured, "rate", results, contest)


def _from_closed_loads(results: Results, contest: set[str]) -> Choices:
    measured = stats.points(results.closed)
    if measured.empty:
        return {}
    main = measured[measured["work"] == stats.main_work(measured)]
    return _under_bounds(open_load.describe(main, results.closed), "messages_per_second", results, contest)


def _under_bounds(points: pd.DataFrame, rate: str, results: Results, contest: set[str]) -> Choices:
    """For each variant, the point with the highest rate among those whose p99 is within the bound."""
    choices: Choices = {}
    for task, group in points.groupby("task", sort=False) if len(points) else ():
        for bound in BOUNDS_NS:
            some = choices.setdefault((task, f"p99 ≤ {units.tick(units.nanoseconds)(bound)}"), [])
            kept = group[(group["p99"] <= bound) & group["variant"].isin(contest)]
            for _, point in stats.best(kept, "variant", rate).iterrows():
                said = f"{figure_text.bound(point, True)}{units.messages_per_second(point[rate])}"
                said += f"\np99 {units.nanoseconds(point['p99'])}"
                # An offered rate is a setting, so it carries no mark; only a measured rate does.
                said += stability.mark(point, "throughput", "p99") if rate != "rate" else stability.mark(point, "p99")
                row = results.cells.loc[point["members"][0]]
                some.append(_candidate(point, point[rate], said, point, row))
    return choices


def _candidate(line: pd.Series, rate: float, said: str, cost: pd.Series | None, row: pd.Series) -> Candidate:
    cost = pd.Series(dtype=object) if cost is None else cost
    return Candidate(
        line["queue"],
        line["variant"],
        line["setting"],
        rate,
        line.get("high", rate),
        said,
        cost,
        f"{row['id']}\n{row['directory']}",
    )


def _table(choices: Choices) -> Table:
    rows, numbers = [], {}
    for (task, bound), candidates in choices.items():
        ranked = sorted(candidates, key=lambda one: one.rate, reverse=True)
        if not ranked:
            rows.append([task, bound, "none of the measured queues", *[units.NOTHING] * (len(COLUMNS) - 1)])
            continue
        first = ranked[0]
        second = next((one for one in ranked if one.queue != first.queue), None)
        rows.append([task, bound, f"{first.variant}\n{first.setting}".strip(), first.said, *cost_cells(first.cost)])
        number = numbers.setdefault(first.evidence, len(numbers) + 1)
        rows[-1] += [_runner_up(first, second), Link(str(number), f"evidence-{number}", first.evidence)]
    return Table([*COLUMNS, "runner-up", "evidence"], rows, NUMBERS)


def _runner_up(first: Candidate, second: Candidate | None) -> str:
    if second is None:
        return "no other measured queue"
    near = "\nno clear difference: the intervals overlap" if second.high > first.rate else ""
    return f"{second.variant}\n{second.said}{near}"


def cost_cells(cost: pd.Series) -> list[str]:
    """Table cells for host threads, own cores, SMs, GPU power and delivery."""
    threads, cores, sms, watts = (cost.get(name, np.nan) for name in ("host_threads", "own_cores", "sms", "power_w"))
    power = f"{units.digits(watts)} W" if watts == watts else units.NOTHING
    spent = [units.number(threads), units.ratio(cores), units.number(sms), power]
    return [*spent, cost.get("delivery") or units.NOTHING]
