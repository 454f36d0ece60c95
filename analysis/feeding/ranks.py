"""Comparison of a short search with a long sweep: `quick` against `feeding`, variant by variant."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import pandas as pd

from .. import flags, figure_text, units
from ..answer import usable
from ..document import Table, markdown_table
from ..load import Results, load
from ..marked import publish

APART = 1.5  # if two variants differ by this ratio in the sweep, the search must rank them in the same order
ENOUGH = 0.7  # share of the sweep's peak that the search must reach


@dataclass(frozen=True)
class Measure:
    said: str
    metric: str
    formatter: object
    largest: bool  # higher is better
    payload: Callable[[set[int]], int]  # picks one of the payloads that both have
    lone: bool = False


MEASURES = (
    Measure("peak messages", "messages_per_second", units.messages_per_second, True, min),
    Measure("peak bytes", "bytes_per_second", units.bytes_per_second, True, max),
    Measure("lone p50", "p50", units.nanoseconds, False, min, lone=True),
)


def write_ranks(found: str, swept: str, page: str | None, check: bool) -> int:
    """Prints the comparison, or writes it into the block `ranks` of a page. Returns the exit code: 1 if two variants
    are ranked in a different order, if a peak is too low, or if, with `check`, the block would change."""
    quick, feeding = load([found], "FOUND"), load([swept], "SWEPT")
    problems = [problem for measure in MEASURES for problem in disagreements(measure, quick, feeding)]
    code = 1 if problems else 0
    source = f"{Path(found)} and {Path(swept)}"
    return max(code, publish(lambda: ranks_text(quick, feeding, problems), page, "--page", "ranks", check, source))


def best(measure: Measure, *several: Results) -> tuple[int, list[pd.DataFrame]]:
    """The payload and, for each of the results, the best point of each variant with that payload. Rates with
    different payloads are not comparable, so the payload is one that all results have."""
    every = [_chosen(measure, usable(results.closed)) for results in several]
    shared = set.intersection(*(set(points["payload_bytes"]) for points in every))
    payload = measure.payload(shared) if shared else 0
    found = []
    for points in every:
        ranked = points[points["payload_bytes"] == payload].dropna(subset=[measure.metric])
        ranked = ranked.sort_values(measure.metric, ascending=not measure.largest, kind="stable")
        found.append(ranked.drop_duplicates("variant").set_index("variant"))
    return payload, found


def _chosen(measure: Measure, points: pd.DataFrame) -> pd.DataFrame:
    return points[(points["window"] == 1) & (points["producers"] == 1)] if measure.lone else points


def disagreements(measure: Measure, quick: Results, feeding: Results) -> list[str]:
    """Pairs of variants that clearly differ in the sweep but are ranked in another order by the search, and peaks that
    the search missed."""
    _, points = best(measure, quick, feeding)
    found, swept = (some[measure.metric] for some in points)
    shared = [variant for variant in swept.index if variant in found.index]
    problems = [f"{measure.said}: {variant} was not searched" for variant in swept.index if variant not in found.index]
    for better, worse in permutations(shared, 2):
        ratio = swept[better] / swept[worse] if measure.largest else swept[worse] / swept[better]
        ahead = found[better] > found[worse] if measure.largest else found[better] < found[worse]
        if ratio >= APART and not ahead:
            problems.append(f"{measure.said}: {better} is {ratio:.2g} × better than {worse} but not ranked above it")
    for variant in shared:
        share = found[variant] / swept[variant]
        if measure.largest and share < ENOUGH:
            problems.append(f"{measure.said}: {variant} reaches {share:.0%}")
    return problems


def ranks_text(quick: Results, feeding: Results, problems: list[str]) -> str:
    columns = ["queue + transfer"]
    values = [(measure, *best(measure, quick, feeding)) for measure in MEASURES]
    for measure, payload, _ in values:
        columns += [f"{measure.said}, {units.size(payload)}, sweep", "search", "search / sweep"]
    variants = values[0][2][1].index
    rows = []
    for variant in variants:
        row = [variant]
        for measure, _, (found, swept) in values:
            points = [some.loc[variant] if variant in some.index else None for some in (swept, found)]
            row += [units.NOTHING if point is None else _figure_cell(measure, point) for point in points]
            row.append(units.NOTHING if any(point is None for point in points) else _ratio_cell(measure, *points))
        rows.append(row)
    verdict = (
        f"The search ranks every pair of variants that are at least {APART} × apart in the sweep in the same order, and "
        f"each peak of the search is at least {ENOUGH:.0%} of the sweep's."
        if not problems
        else "Disagreements: " + "; ".join(problems) + "."
    )
    where = f"Search: {quick.directories[0]}; sweep: {feeding.directories[0]}. Figures are medians over repetitions."
    marks = [_mark_sentence(name, results) for name, results in (("search", quick), ("sweep", feeding))]
    note = " ".join([where, *(said for said in marks if said)])
    return "\n\n".join([markdown_table(Table(columns, rows, set(range(1, len(columns))))), verdict, note])


def _figure_cell(measure: Measure, point: pd.Series) -> str:
    return figure_text.bound(point, measure.largest) + measure.formatter(point[measure.metric]) + flags.mark(point)


def _ratio_cell(measure: Measure, swept: pd.Series, found: pd.Series) -> str:
    """Search / sweep."""
    if swept["limited"] and found["limited"]:
        return "unknown"
    bound = figure_text.bound(found, measure.largest) or figure_text.bound(swept, not measure.largest)
    return f"{bound}{found[measure.metric] / swept[measure.metric]:.2f}"


def _mark_sentence(name: str, results: Results) -> str:
    """What the marks mean, and how many rows of these results have them."""
    cells = results.closed.cells
    told = " ".join(one for one in (flags.legend(cells), flags.limited_sentence(cells)) if one)
    return f"In the {name}: {told}" if told else ""
