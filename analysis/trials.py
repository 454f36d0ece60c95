"""Trials of `feedrate ab` with known truth: equal sides, or a side that is worse by a known dose.

With equal sides every FASTER and SLOWER is false. With a dose, the share of SLOWER is compared with the power that was
stated for each point before: the mean of these probabilities. Each folder is one run; its points are judged alone, as a
user would see them, so that runs on several machines are independent trials.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from . import power, units
from .aa import share_text, upper_bound
from .ab import Margins, Run, match
from .compare import metrics_of
from .document import Table, markdown_table
from .errors import BadInput
from .verdict import FASTER, SAME, SLOWER, UNCLEAR, VERDICTS, Metric

STARTS = (16, 24, 36)  # for the smallest change that is found
POINTS = 10


def trials_text(folders: Sequence[str], margins: Margins, dose: float = 0.0) -> str:
    """The table of verdicts by metric and variant, with the goals' figures. `dose`: the share by which B is worse; 0 if
    the sides are equal."""
    runs = [Run(folder) for folder in folders]
    names = {name for run in runs for name in run.shared}
    if len(names) != 1:
        raise BadInput("OUT", ", ".join(folders), f"has {len(names)} experiments", "folders of one experiment")
    (name,) = names
    judged = pd.concat([match(name, [run], margins)[0] for run in runs], ignore_index=True)
    metrics = [metric for metric in metrics_of(*runs[0].shared[name]) if any(one.verdict for one in judged[metric.column])]
    what = runs[0].shared[name][0].experiment.what
    lines = []
    for metric in metrics:
        all_found = power.share_found(list(judged[metric.column]), dose, margins.changed)
        for variant, some in judged.groupby("variant", sort=False):
            lines.append([_name(metric), variant, *_line(list(some[metric.column]), margins, dose, all_found)])
    columns = ["metric", what, "verdicts", *VERDICTS, "starts differ by", *(f"finds with {n} starts" for n in STARTS)]
    if dose:
        columns += ["found", "stated power"]
    environments = dict.fromkeys(_machine(run.shared[name][0].environments[0]) for run in runs)
    fewest, most = int(judged["starts"].min()), int(judged["starts"].max())
    starts = f"{most}" if fewest == most else f"{fewest} to {most}"
    note = (
        f"{len(runs)} run{'s' * (len(runs) > 1)} with {starts} starts of both sides. {_truth(dose)} "
        f"{' '.join(_outcome(metric, judged, margins, dose) for metric in metrics)} “Starts differ "
        "by”: the standard deviation of the log ratio between starts, at the median point. “Finds”: the smallest change of "
        f"one point among {POINTS} that is found in {units.percent(power.USUAL)} of the cases to be more than "
        f"{units.percent(margins.changed)}, at the median point. {'; '.join(environments)}"
    )
    return f"{markdown_table(Table(columns, lines, set(range(2, len(columns)))))}\n\n{note}"


def spreads_text(folders: Sequence[str], margins: Margins) -> str:
    """C++ code that tells `feedrate ab` how much starts differed in these runs: the deviation of each experiment, metric
    and variant at its median point, which says before a comparison what it will find. Tails are left out, because
    `ab` shows none."""
    runs = [Run(folder) for folder in folders]
    lines, machines, starts = [], {}, 0
    for name in dict.fromkeys(name for run in runs for name in run.shared):
        measured = [run for run in runs if name in run.shared]
        judged = [match(name, [run], margins)[0] for run in measured]
        starts += sum(int(one["starts"].max()) for one in judged)
        experiment = measured[0].shared[name][0].experiment
        machines |= dict.fromkeys(run.shared[name][0].environments[0].get("gpu") or "a CPU" for run in measured)
        for metric in metrics_of(*measured[0].shared[name]):
            for variant, some in pd.concat(judged, ignore_index=True).groupby("variant", sort=False):
                deviations = [np.sqrt(one.spread) for one in some[metric.column] if np.isfinite(one.spread)]
                idle = experiment.rank(some.iloc[0])[0]
                if deviations and not metric.tail and not idle:
                    lines.append(f'    {{"{name}", "{metric.key}", "{variant}", {float(np.median(deviations)):.3g}}},')
    runs_of = f"{len(runs)} run{'s' * (len(runs) > 1)}"
    return "\n".join(
        [
            "// Made by `python -m analysis trials … --spreads` from runs of `feedrate ab`: experiment, figure, variant, and",
            "// the standard deviation of the log ratio of both sides between starts.",
            "constexpr ReferenceSpread kReferenceSpreads[] = {",
            *lines,
            "};",
            f'constexpr std::string_view kReferenceTrials = "as {starts} starts in {runs_of} on {" and ".join(machines)}";',
            "",
        ]
    )


def _truth(dose: float) -> str:
    return f"Side B is worse by {units.percent(dose)}." if dose else "The sides are equal."


def _name(metric: Metric) -> str:
    return metric.name.replace("_", " ")


def _machine(environment: dict) -> str:
    return f"{environment.get('gpu') or environment.get('cpu')}, revision {environment.get('revision')}"


def _line(ratios: list, margins: Margins, dose: float, all_found: float) -> list[str]:
    words = [one.verdict for one in ratios if one.verdict]
    deviations = [np.sqrt(one.spread) for one in ratios if np.isfinite(one.spread)]
    typical = float(np.median(deviations)) if deviations else np.nan
    cells = [str(len(words)), *(str(words.count(word)) for word in VERDICTS), units.percent(typical)]
    for count in STARTS:
        change = power.change(*power.STARTS.error(typical**2, count), POINTS, margins.changed)
        cells.append(units.percent(change) if change <= 1 else "over 100 %")
    if dose:
        stated = power.of(ratios, dose, margins.changed, 1 / max(all_found, 1e-6))
        cells += [share_text(words.count(SLOWER), len(words)), units.percent(float(np.mean(stated or [0.0])))]
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
