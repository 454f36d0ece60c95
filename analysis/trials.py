"""Trials of `feedrate ab` with known truth: equal sides, or a side that is worse by a known dose.

With equal sides every FASTER and SLOWER is false. With a dose, the share of SLOWER is compared with the share that each
run's own errors predict. Each folder is one run; its points are judged alone, as a user would see them, so that runs on several
machines are independent trials.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from . import power, tables, units
from .aa import share_text, upper_bound
from .ab import Margins, equal_sides, load_runs, match
from .compare import metrics_of
from .document import Table, markdown_table
from .errors import BadInput
from .verdict import FASTER, SAME, SLOWER, UNCLEAR, VERDICTS, Metric

STARTS = (16, 24, 36)  # for the smallest change that is found
POINTS = 10


def trials_text(folders: Sequence[str], margins: Margins, dose: float = 0.0, by_point: bool = False) -> str:
    """The table of verdicts by metric and variant, or by point, with the goals' figures. `dose`: the share by which B is
    worse; 0 if the sides are equal."""
    runs = load_runs(folders)
    names = {name for run in runs for name in run.shared}
    if len(names) != 1:
        raise BadInput("OUT", ", ".join(folders), f"has {len(names)} experiments", "folders of one experiment")
    (name,) = names
    each = [match(name, [run], margins)[0] if dose else equal_sides(name, run, margins) for run in runs]
    judged = pd.concat([points.assign(run=n) for n, points in enumerate(each)], ignore_index=True)
    metrics = [metric for metric in metrics_of(*runs[0].shared[name]) if any(one.verdict for one in judged[metric.column])]
    results = runs[0].shared[name][0]
    what = results.experiment.what
    if by_point:
        shown = [axis for axis in tables.varying(*(side for run in runs for side in run.shared[name])) if axis in judged]
        judged["point"] = [tables.place(results, point, shown) for _, point in judged.iterrows()]
    judged["expected"] = [{} for _ in range(len(judged))]
    for metric in metrics if dose else []:
        for _, run in judged.groupby("run"):
            _expect(run, metric, dose, margins)
    lines = []
    for metric in metrics:
        for label, some in _groups(judged, by_point and not metric.tail):
            lines.append([_name(metric), *label, *_line(some, metric, margins, dose)])
    columns = ["metric", what, *(["point"] if by_point else []), "verdicts", *VERDICTS, "starts differ by"]
    columns += [f"finds with {n} starts" for n in STARTS]
    if dose:
        columns += ["found", "expected"]
    environments = dict.fromkeys(_machine(run.shared[name][0].environments[0]) for run in runs)
    fewest, most = int(judged["starts"].min()), int(judged["starts"].max())
    starts = f"{most}" if fewest == most else f"{fewest} to {most}"
    note = (
        f"{len(runs)} run{'s' * (len(runs) > 1)} with {starts} starts of both sides. {_truth(dose)} "
        f"{' '.join(_outcome(metric, judged, margins, dose) for metric in metrics)} “Starts differ "
        "by”: the standard deviation of the log ratio between starts, at the median point. “Finds”: the smallest change of "
        f"one point among {POINTS} that is found in {units.percent(power.USUAL)} of the cases to be more than "
        f"{units.percent(margins.changed)}, at the median point. {_expectation(dose)}{'; '.join(environments)}"
    )
    return f"{markdown_table(Table(columns, lines, set(range(2, len(columns)))))}\n\n{note}"


def _truth(dose: float) -> str:
    return f"Side B is worse by {units.percent(dose)}." if dose else "The sides are equal."


def _name(metric: Metric) -> str:
    return metric.name.replace("_", " ")


def _machine(environment: dict) -> str:
    return f"{environment.get('gpu') or environment.get('cpu')}, revision {environment.get('revision')}"


def _groups(judged: pd.DataFrame, by_point: bool) -> Iterable[tuple[list[str], pd.DataFrame]]:
    """The points with their labels: by variant, with an empty label for the point if the table has that column, or by point."""
    if not by_point:
        columns = [""] if "point" in judged else []
        return [([variant, *columns], some) for variant, some in judged.groupby("variant", sort=False)]
    return [(list(label), some) for label, some in judged.groupby(["variant", "point"], sort=False)]


def _expect(run: pd.DataFrame, metric: Metric, dose: float, margins: Margins) -> None:
    """Enters the probability that the dose, which all points of a run have, is found at each."""
    every = list(run[metric.column])
    risk = 1 / max(power.share_found(every, dose, margins.changed), 1e-6)
    for place, one in zip(run["expected"], every):
        place[metric.column] = next(iter(power.of([one], dose, margins.changed, risk)), 0.0)


def _expectation(dose: float) -> str:
    if not dose:
        return ""
    return (
        "“Found”: the share of SLOWER, with its 95 % interval (Clopper and Pearson). “Expected”: the mean probability to "
        "find the dose, from the errors of each run, if all of its points have it. "
    )


def _line(some: pd.DataFrame, metric: Metric, margins: Margins, dose: float) -> list[str]:
    ratios = list(some[metric.column])
    words = [one.verdict for one in ratios if one.verdict]
    deviations = [np.sqrt(one.spread) for one in ratios if np.isfinite(one.spread)]
    typical = float(np.median(deviations)) if deviations else np.nan
    cells = [str(len(words)), *(str(words.count(word)) for word in VERDICTS), units.percent(typical)]
    for count in STARTS:
        change = power.change(*power.STARTS.error(typical**2, count), POINTS, margins.changed)
        cells.append(units.percent(change) if change <= 1 else "over 100 %")
    if dose:
        expected = [one[metric.column] for one in some["expected"]]
        cells += [share_text(words.count(SLOWER), len(words)), units.percent(float(np.mean(expected)))]
    return cells


def _outcome(metric: Metric, judged: pd.DataFrame, margins: Margins, dose: float) -> str:
    """A sentence for one metric; the verdicts on several metrics of one point are not independent trials."""
    words = [one.verdict for one in judged[metric.column] if one.verdict]
    same, counted = words.count(SAME), f"{_name(metric)}: of {len(words)} verdicts"
    if dose:
        false = words.count(FASTER) + (same if dose > margins.same else 0)
        return f"{counted} {words.count(SLOWER)} say SLOWER, {same} SAME, {words.count(UNCLEAR)} UNCLEAR, and {false} are false."
    false = words.count(FASTER) + words.count(SLOWER)
    return (
        f"{counted} {false} are FASTER or SLOWER, and false ({units.percent(false / len(words))}; at most "
        f"{units.percent(upper_bound(false, len(words)))} with 95 % confidence), and {same} are SAME "
        f"({units.percent(same / len(words))})."
    )
