"""Advice on which queue to use: for each task and latency bound, the queue with the highest rate and its cost."""

from dataclasses import dataclass

import pandas as pd

from .. import figure_text, stability, stats, units
from ..document import Block, Heading, Link, Table, Text
from ..load import Results
from . import capacity, choose, open_load
from .columns import COST, VARIANT

TITLE = "Which should I use?"
BOUNDS_NS = (20e3, 100e3, 1e6)  # bounds on p99, used if no capacity search sets its own
COLUMNS = ["task", "bound", "use", "its rate", *(column.heading for column in COST), "runner-up", "evidence"]
NUMBERS = {3, 4, 5, 6, 7}
NOTE = (
    "This table is based on {}. The highest rate wins; the runner-up is the best variant of another queue. Costs apply "
    "at that rate and are medians over its repetitions or tries. “Cores used” is the benchmark process's CPU seconds "
    "per second."
)


@dataclass(frozen=True)
class Candidate:
    """The rate that a variant carries under a bound."""

    line: pd.Series  # the row of the variant and its setting
    rate: float
    high: float  # upper end of the interval that a search found; equals `rate` if the rate was measured
    text: str  # the rate in words
    cost: pd.Series
    row: pd.Series  # the evidence


Choices = dict[tuple[str, str], list[Candidate]]  # keyed by task and bound


def blocks(results: Results) -> list[Block]:
    """The table and a note on how it was made; empty if no load is ok."""
    for choose_from, source in (
        (_from_capacities, "capacity searches that each found an interval; variants are ranked by the median of "
         "the lower ends"),
        (_from_open_loads, "open loads: a rate counts if it and every lower rate were sustained"),
        (_from_closed_loads, "closed loads, which send a message only after an earlier one has returned: their latency "
         "omits the queueing delay that an open load would see (coordinated omission), so the rates are upper bounds"),
    ):  # fmt: skip
        if choices := choose_from(results):
            return [Heading(TITLE), _table(choices, _undecided(results)), Text(NOTE.format(source), "note")]
    return []


def _from_capacities(results: Results) -> Choices:
    found = capacity.answers(results)
    choices: Choices = {(line["task"], capacity.bound(line)): [] for _, line in found.iterrows()}
    for _, line in capacity.best_settings(found).iterrows():
        if line["variant"] in results.contest and line["low"] > 0:
            text = "\n".join(capacity.interval(*ends) for ends in line["intervals"])
            cost = capacity.spent(line, results.cells)
            candidate = Candidate(line, line["low"], line["high"], text, cost, line)
            choices[line["task"], capacity.bound(line)].append(candidate)
    return choices


def _undecided(results: Results) -> set[tuple[str, str]]:
    """The tasks and bounds for which some search has not decided whether a rate is sustained."""
    found = capacity.answers(results)
    some = found[found["undecided"] & (found["low"] == 0)] if len(found) else found
    return {(line["task"], capacity.bound(line)) for _, line in some.iterrows()}


def _from_open_loads(results: Results) -> Choices:
    measured = open_load.points(results)
    return _under_bounds(measured[measured["kept"]], "rate", results)


def _from_closed_loads(results: Results) -> Choices:
    measured = choose.main_work(stats.points(results.closed))
    return _under_bounds(open_load.describe(measured, results.closed), "messages_per_second", results)


def _under_bounds(points: pd.DataFrame, rate: str, results: Results) -> Choices:
    """For each variant, the point with the highest rate among those whose p99 is within the bound."""
    choices: Choices = {}
    # An offered rate is a setting, so it carries no mark; only a measured rate does.
    marked = ("p99",) if rate == "rate" else ("throughput", "p99")
    for task, group in points.groupby("task", sort=False):
        for bound in BOUNDS_NS:
            candidates = choices.setdefault((task, f"p99 ≤ {units.tick(units.nanoseconds)(bound)}"), [])
            kept = group[(group["p99"] <= bound) & group["variant"].isin(results.contest)]
            for _, point in stats.best(kept, "variant", rate).iterrows():
                text = f"{figure_text.bound(point, True)}{units.messages_per_second(point[rate])}"
                text += f"\np99 {units.nanoseconds(point['p99'])}{stability.mark(point, *marked)}"
                row = results.cells.loc[point["members"][0]]
                candidates.append(Candidate(point, point[rate], point[rate], text, point, row))
    return choices


def _table(choices: Choices, undecided: set[tuple[str, str]]) -> Table:
    rows, numbers = [], {}
    for (task, bound), candidates in choices.items():
        ranked = sorted(candidates, key=lambda candidate: candidate.rate, reverse=True)
        if not ranked:
            none = "undecided" if (task, bound) in undecided else "none of the measured queues"
            rows.append([task, bound, none, *[units.NOTHING] * (len(COLUMNS) - 3)])
            continue
        first = ranked[0]
        second = next((other for other in ranked if other.line["queue"] != first.line["queue"]), None)
        evidence = f"{first.row['id']}\n{first.row['directory']}"
        number = numbers.setdefault(evidence, len(numbers) + 1)
        costs = [column.cell(first.cost) for column in COST]
        link = Link(str(number), f"evidence-{number}", evidence)
        rows.append([task, bound, VARIANT.cell(first.line), first.text, *costs, _runner_up(first, second), link])
    return Table(COLUMNS, rows, NUMBERS)


def _runner_up(first: Candidate, second: Candidate | None) -> str:
    if second is None:
        return "no other measured queue"
    near = "\nno clear difference: the intervals overlap" if second.high > first.rate else ""
    return f"{second.line['variant']}\n{second.text}{near}"
