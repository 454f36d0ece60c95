"""How much starts differ in trials of `feedrate ab`, as code from which the command says what it will find."""

from collections.abc import Sequence

import numpy as np

from .ab import Margins, equal_sides, load_runs
from .compare import metrics_of


def spreads_text(folders: Sequence[str], margins: Margins) -> str:
    """C++ code with the standard deviation of the log ratio between starts: of each experiment, metric and variant, one
    line per point. Tails and members that deliver nothing are left out, because `ab` shows none."""
    runs = load_runs(folders)
    lines, machines, starts = [], {}, 0
    for name in dict.fromkeys(name for run in runs for name in run.shared):
        measured = [run for run in runs if name in run.shared]
        experiment = measured[0].shared[name][0].experiment
        for run in measured:
            machines |= dict.fromkeys([run.shared[name][0].environments[0].get("gpu") or "a CPU"])
            points = equal_sides(name, run, margins)
            starts += int(points["starts"].max())
            for metric in metrics_of(*run.shared[name]):
                for _, point in () if metric.tail else points.iterrows():
                    one = point[metric.column]
                    if np.isfinite(one.spread) and not experiment.rank(point)[0]:
                        words = f'"{name}", "{metric.key}", "{point["variant"]}"'
                        lines.append(f"    {{{words}, {np.sqrt(one.spread):.3g}}},")
    of_runs = f"{len(runs)} run{'s' * (len(runs) > 1)}"
    return "\n".join(
        [
            "// Made by `python -m analysis trials … --spreads` from runs of `feedrate ab`: experiment, figure, variant, and",
            "// the standard deviation of the log ratio of both sides between starts, a line per point.",
            "constexpr ReferenceSpread kReferenceSpreads[] = {",
            *lines,
            "};",
            f'constexpr std::string_view kReferenceTrials = "{starts} starts in {of_runs} on {" and ".join(machines)}";',
            "",
        ]
    )
