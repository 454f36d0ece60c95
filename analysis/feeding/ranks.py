"""Whether a short search finds what a long sweep found: `quick` against `feeding`, variant by variant."""

from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import pandas as pd

from .. import units
from ..answer import usable
from ..document import Table, markdown_table
from ..files import say
from ..load import Results, load
from ..marked import rewrite

APART = 1.5  # by so much must the sweep tell two variants apart before the search must rank them alike
ENOUGH = 0.7  # of the sweep's peak is what the search must reach


@dataclass(frozen=True)
class Measure:
    said: str
    metric: str
    formatter: object
    largest: bool  # more is better
    lone: bool = False


MEASURES = (
    Measure("peak messages", "messages_per_second", units.messages_per_second, True),
    Measure("peak bytes", "bytes_per_second", units.bytes_per_second, True),
    Measure("lone p50", "p50", units.nanoseconds, False, lone=True),
)


def write_ranks(found: str, swept: str, page: str | None, check: bool) -> int:
    """Prints how the two compare, or puts it into a page's block `ranks`. Returns the exit code: 1 where two variants
    are ranked otherwise, a peak is too low, or with `check` the block would change."""
    quick, feeding = load([found], "FOUND"), load([swept], "SWEPT")
    problems = [problem for measure in MEASURES for problem in disagreements(measure, quick, feeding)]
    code = 1 if problems else 0
    if page is None:
        say(ranks_text(quick, feeding, problems))
        return code
    source = f"{Path(found)} and {Path(swept)}"
    return max(code, rewrite(page, "--page", "ranks", lambda: ranks_text(quick, feeding, problems), check, source))


def best(measure: Measure, results: Results) -> pd.Series:
    """By variant, of the medians over repetitions."""
    points = usable(results.closed)
    if measure.lone:
        points = points[(points["window"] == 1) & (points["producers"] == 1)]
        points = points[points["payload_bytes"] == points["payload_bytes"].min()]
    by_variant = points.groupby("variant")[measure.metric]
    return by_variant.max() if measure.largest else by_variant.min()


def disagreements(measure: Measure, quick: Results, feeding: Results) -> list[str]:
    """Pairs of variants that the sweep tells apart and the search ranks the other way, and peaks that it missed."""
    found, swept = best(measure, quick), best(measure, feeding)
    shared = [variant for variant in swept.index if variant in found.index]
    problems = [f"{measure.said}: {variant} was not searched" for variant in swept.index if variant not in found.index]
    for better, worse in permutations(shared, 2):
        ratio = swept[better] / swept[worse] if measure.largest else swept[worse] / swept[better]
        ahead = found[better] > found[worse] if measure.largest else found[better] < found[worse]
        if ratio >= APART and not ahead:
            problems.append(f"{measure.said}: {better} is {ratio:.2g} × better than {worse}, and is not ranked before it")
    for variant in shared:
        share = found[variant] / swept[variant]
        if measure.largest and share < ENOUGH:
            problems.append(f"{measure.said}: {variant} reaches {share:.0%}")
    return problems


def ranks_text(quick: Results, feeding: Results, problems: list[str]) -> str:
    columns = ["queue + transfer"]
    for measure in MEASURES:
        columns += [f"{measure.said}, sweep", "search", "search / sweep"]
    values = [(measure, best(measure, quick), best(measure, feeding)) for measure in MEASURES]
    variants = values[0][2].sort_values(ascending=False).index
    rows = []
    for variant in variants:
        row = [variant]
        for measure, found, swept in values:
            figures = [swept.get(variant), found.get(variant)]
            row += [units.NOTHING if pd.isna(figure) else measure.formatter(figure) for figure in figures]
            row.append(units.NOTHING if any(map(pd.isna, figures)) else f"{figures[1] / figures[0]:.2f}")
        rows.append(row)
    verdict = (
        f"Every pair of variants that the sweep puts {APART} × apart or more is ranked alike by the search, and each peak "
        f"of the search is at least {ENOUGH:.0%} of the sweep's."
        if not problems
        else "Not as they should be: " + "; ".join(problems) + "."
    )
    where = f"Search: {quick.directories[0]}; sweep: {feeding.directories[0]}. Medians over repetitions."
    return "\n\n".join([markdown_table(Table(columns, rows, set(range(1, len(columns))))), verdict, where])
