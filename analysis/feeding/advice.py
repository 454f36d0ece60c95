"""Which queue to use: for each task and bound on latency the one that carries the highest rate, and what that costs."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .. import quoted, stability, stats, units
from ..document import Block, Heading, Link, Table, Text
from ..load import Results
from . import capacity, open_load

TITLE = "Which should I use?"
BOUNDS_NS = (20e3, 100e3, 1e6)  # on p99, where no search says which bounds matter
COLUMNS = ["task", "bound", "use", "its rate", "host threads", "cores used", "SMs", "GPU power", "delivery"]
NUMBERS = {3, 4, 5, 6, 7}


@dataclass(frozen=True)
class Candidate:
    """What one variant carries under a bound. `cost`: host_threads, own_cores, sms, power_w and delivery."""

    queue: str
    variant: str
    setting: str
    rate: float
    high: float  # the rate is known up to here; `rate` itself where it was measured, not searched
    said: str
    cost: pd.Series
    evidence: str  # the row's id and its directory, a line each


Choices = dict[tuple[str, str], list[Candidate]]  # by task and bound


def blocks(results: Results) -> list[Block]:
    """The table and how it was made; nothing where no load is ok."""
    contest = results.contest
    for choose, made_of in (
        (_from_capacities, "the searches for a capacity, an interval each: by the median of their lower ends"),
        (_from_open_loads, "the rates of open loads that were sustained, as was every lower rate"),
        (_from_closed_loads, "closed loads, which send a message only when one came back: their latency leaves out the "
         "wait that a real load would have, so the rates are what a queue carries at best"),
    ):  # fmt: skip
        choices = choose(results, contest)
        if choices:
            return [Heading(TITLE), _table(choices), Text(_note(made_of), "note")]
    return []


def _note(made_of: str) -> str:
    return (
        f"Made of {made_of}. The highest rate wins; the runner-up is the best of another queue. Cost is that at the "
        "rate, the median over its repetitions or tries; “cores used” are CPU seconds a second of the benchmark's own "
        "process."
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
    """For each variant its point of the highest rate whose p99 keeps the bound."""
    choices: Choices = {}
    for task, group in points.groupby("task", sort=False) if len(points) else ():
        for bound in BOUNDS_NS:
            some = choices.setdefault((task, f"p99 ≤ {units.tick(units.nanoseconds)(bound)}"), [])
            kept = group[(group["p99"] <= bound) & group["variant"].isin(contest)]
            for _, point in stats.best(kept, "variant", rate).iterrows():
                said = f"{quoted.bound(point, True)}{units.messages_per_second(point[rate])}"
                said += f"\np99 {units.nanoseconds(point['p99'])}"
                # A rate that was asked for is no figure of the queue's.
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
            rows.append([task, bound, "none of those measured", *[units.NOTHING] * (len(COLUMNS) - 1)])
            continue
        first = ranked[0]
        second = next((one for one in ranked if one.queue != first.queue), None)
        rows.append([task, bound, f"{first.variant}\n{first.setting}".strip(), first.said, *cost_cells(first.cost)])
        number = numbers.setdefault(first.evidence, len(numbers) + 1)
        rows[-1] += [_runner_up(first, second), Link(str(number), f"evidence-{number}", first.evidence)]
    return Table([*COLUMNS, "runner-up", "evidence"], rows, NUMBERS)


def _runner_up(first: Candidate, second: Candidate | None) -> str:
    if second is None:
        return "none of those measured"
    near = "\nnot told apart: their intervals overlap" if second.high > first.rate else ""
    return f"{second.variant}\n{second.said}{near}"


def cost_cells(cost: pd.Series) -> list[str]:
    """Host threads, own cores, SMs, GPU power and delivery, in words."""
    threads, cores, sms, watts = (cost.get(name, np.nan) for name in ("host_threads", "own_cores", "sms", "power_w"))
    power = f"{units.digits(watts)} W" if watts == watts else units.NOTHING
    spent = [units.number(threads), units.ratio(cores), units.number(sms), power]
    return [*spent, cost.get("delivery") or units.NOTHING]
