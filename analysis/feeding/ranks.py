"""Comparison of a short search with a long sweep: `quick` against `feeding`, queue by queue, each with its best
transfer."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from pathlib import Path

import pandas as pd

from .. import flags, figure_text, stats, units
from ..answer import usable
from ..document import markdown_table
from ..load import Results, load
from ..marked import publish
from . import choose
from .columns import Column, number, table

APART = 1.5  # if two queues differ by this ratio in the sweep, the search must rank them in the same order
ENOUGH = 0.8  # share of the sweep's peak that the search must reach


@dataclass(frozen=True)
class Measure:
    name: str
    metric: str
    formatter: Callable
    largest: bool  # higher is better
    payload: Callable[[set[int]], int]  # picks one of the payloads that both have
    lone: bool = False


MEASURES = (
    Measure("peak messages", "messages_per_second", units.messages_per_second, True, min),
    Measure("peak bytes", "bytes_per_second", units.bytes_per_second, True, max),
    Measure("lone p50", "p50", units.nanoseconds, False, min, lone=True),
)


def write_ranks(found: str, swept: str, page: str | None, check: bool) -> int:
    """Prints the comparison, or writes it into a page's `ranks` block. Returns the exit code: 1 if two variants
    are ranked in a different order, if a peak is too low, or if, with `check`, the block would change."""
    quick, feeding = load([found], "FOUND"), load([swept], "SWEPT")
    problems = [problem for measure in MEASURES for problem in disagreements(measure, quick, feeding)]
    code = 1 if problems else 0
    source = f"{Path(found)} and {Path(swept)}"
    return max(code, publish(lambda: ranks_text(quick, feeding, problems), page, "--page", "ranks", check, source))


def best(measure: Measure, *several: Results) -> tuple[int, list[pd.DataFrame]]:
    """The payload and, for each of the results, the best point of each queue with that payload. Rates with
    different payloads are not comparable, so the payload is one that all results have."""
    every = [usable(results.closed) for results in several]
    every = [choose.alone(points) if measure.lone else points for points in every]
    shared = set.intersection(*(set(points["payload_bytes"]) for points in every))
    payload = measure.payload(shared) if shared else 0
    found = []
    for points in every:
        some = stats.best(points[points["payload_bytes"] == payload], "queue", measure.metric, measure.largest)
        found.append(some.sort_values(measure.metric, ascending=not measure.largest, kind="stable").set_index("queue"))
    return payload, found


def disagreements(measure: Measure, quick: Results, feeding: Results) -> list[str]:
    """Pairs of queues that clearly differ in the sweep but are ranked in another order by the search, and peaks that
    the search missed."""
    _, points = best(measure, quick, feeding)
    found, swept = (some[measure.metric] ** (1 if measure.largest else -1) for some in points)
    shared = [queue for queue in swept.index if queue in found.index]
    problems = [f"{measure.name}: {queue} was not searched" for queue in swept.index if queue not in found.index]
    for better, worse in permutations(shared, 2):
        ratio = swept[better] / swept[worse]
        if ratio >= APART and not found[better] > found[worse]:
            problems.append(f"{measure.name}: {better} is {ratio:.2g} × better than {worse} but not ranked above it")
    if measure.largest:
        shares = {queue: found[queue] / swept[queue] for queue in shared}
        problems += [f"{measure.name}: {name} reaches {share:.1%}" for name, share in shares.items() if share < ENOUGH]
    return problems


def ranks_text(quick: Results, feeding: Results, problems: list[str]) -> str:
    columns = [column for measure in MEASURES for column in _columns(measure, quick, feeding)]
    queues = best(MEASURES[0], quick, feeding)[1][1].index
    verdict = (
        f"The search ranks every pair of queues that are at least {APART} × apart in the sweep in the same order, "
        f"and each peak of the search is at least {ENOUGH:.0%} of the sweep's."
        if not problems
        else "Disagreements: " + "; ".join(problems) + "."
    )
    where = f"Search: {quick.directories[0]}; sweep: {feeding.directories[0]}. Figures are medians over repetitions."
    note = " ".join(filter(None, [where, _legend("search", quick), _legend("sweep", feeding)]))
    return "\n\n".join([markdown_table(table([Column("queue, with its best transfer", str), *columns], queues)), verdict, note])


def _columns(measure: Measure, quick: Results, feeding: Results) -> list[Column]:
    payload, (found, swept) = best(measure, quick, feeding)

    def figure(points: pd.DataFrame, queue: str) -> str:
        if queue not in points.index:
            return units.NOTHING
        point = points.loc[queue]
        return figure_text.bound(point, measure.largest) + measure.formatter(point[measure.metric]) + flags.mark(point)

    def ratio(queue: str) -> str:
        if queue not in found.index or queue not in swept.index:
            return units.NOTHING
        search, sweep = found.loc[queue], swept.loc[queue]
        if sweep["limited"] and search["limited"]:
            return "unknown"
        bound = figure_text.bound(search, measure.largest) or figure_text.bound(sweep, not measure.largest)
        return f"{bound}{search[measure.metric] / sweep[measure.metric]:.2f}"

    heading = f"{measure.name}, {units.size(payload)}, sweep"
    figures = number(heading, partial(figure, swept)), number("search", partial(figure, found))
    return [*figures, number("search / sweep", ratio)]


def _legend(name: str, results: Results) -> str:
    """The meaning of the marks, and the number of rows with each mark."""
    cells = results.closed.cells
    legend = " ".join(filter(None, (flags.legend(cells), flags.limited_sentence(cells))))
    return f"In the {name}: {legend}" if legend else ""
