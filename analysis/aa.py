"""A/A: compares two runs of the same code, so every FASTER and SLOWER is a false verdict."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import betaincinv

from . import units
from .compare import Rules, explanation, in_both, match_some, measured_metrics, metrics_of, pairs
from .document import Table, markdown_table
from .gate import noise_of, parse_noise
from .load import Results, load_all
from .marked import publish
from .verdict import CONFIDENCE, FASTER, SLOWER, VERDICTS, Metric, ratio

NOISES = [0.0, *(float(f"{noise:.2g}") for noise in np.geomspace(0.001, 1, 61))]  # candidates, in steps of 12 %


def write_aa(before: str, after: str, margin: float, noises: list[str], readme: str | None, check: bool) -> int:
    """Prints the table of false verdicts, or writes it into the `aa` block of `readme`. Returns the exit code."""
    shared = in_both(load_all([before], "A"), load_all([after], "B"))
    noise = parse_noise(noises, [metric for sides in shared.values() for metric in metrics_of(*sides)])
    texts = []
    for name, (a, b) in shared.items():
        rules = Rules(margin, noise_of(noise, metrics_of(a, b)))
        matched, _ = match_some(a, b, rules)
        warning = _warning(a, b)
        if warning:
            print(f"warning: {warning}", file=sys.stderr)
        texts.append((f"Experiment {name}:\n\n" if len(shared) > 1 else "") + aa_text(a, b, matched, rules))
    text = "\n\n".join(texts)
    return publish(lambda: text, readme, "--readme", "aa", check, f"{Path(before)} and {Path(after)}")


def aa_text(a: Results, b: Results, matched: pd.DataFrame, rules: Rules) -> str:
    """The table and a note on its origin, as Markdown."""
    warning = _warning(a, b)
    repetitions = sorted({count for counts in matched["repetitions"] for count in counts})
    parts = [
        f"The table compares two runs of the same code ({a.directories[0]} and {b.directories[0]}) with {len(matched)} "
        f"points and {_range(repetitions)} repetitions per side. Every FASTER or SLOWER between them is false. “At "
        "most”: the 95 % upper bound of the rate of false verdicts (Clopper and Pearson). “Run noise”: the standard "
        "deviation between runs, beyond the spread of the repetitions, at which 95 % of the intervals contain 1; pass "
        "it to `compare` as `--run-noise`.",
        markdown_table(_table(a, b, matched, rules)),
        *_without_noise(a, b, rules),
        explanation(rules),
    ]
    return "\n\n".join([f"**{warning}**", *parts] if warning else parts)


def _without_noise(a: Results, b: Results, rules: Rules) -> list[str]:
    """A sentence on the false verdicts without any assumed noise between runs."""
    if not any(rules.run_noise.values()):
        return []
    matched, _ = match_some(a, b, Rules(rules.margin))
    metrics = measured_metrics(a, b, matched)
    verdicts = [one.verdict for metric in metrics for one in matched[metric.column] if one.verdict]
    false = sum(verdict in (FASTER, SLOWER) for verdict in verdicts)
    share = units.percent(false / len(verdicts))
    return [f"With `--run-noise 0`, {false} of the {len(verdicts)} verdicts would be false ({share})."]


def _table(a: Results, b: Results, matched: pd.DataFrame, rules: Rules) -> Table:
    metrics = measured_metrics(a, b, matched)
    verdicts = {metric: [one.verdict for one in matched[metric.column] if one.verdict] for metric in metrics}
    paired = [sides for _, sides in pairs(a, b) if all(sides)]
    rows = [_row(metric.name.replace("_", " "), found, run_noise(paired, metric)) for metric, found in verdicts.items()]
    rows.append(_row("all", [verdict for found in verdicts.values() for verdict in found], np.inf))
    return Table(["metric", "points", *VERDICTS, "false", "at most", "run noise"], rows, set(range(1, 9)))


def _row(name: str, verdicts: list[str], noise: float) -> list[str]:
    counts = {verdict: verdicts.count(verdict) for verdict in VERDICTS}
    false = counts[FASTER] + counts[SLOWER]
    return [
        name,
        str(len(verdicts)),
        *map(str, counts.values()),
        units.percent(false / len(verdicts)),
        units.percent(upper_bound(false, len(verdicts))),
        units.percent(noise),
    ]


def upper_bound(hits: int, trials: int) -> float:
    """The upper 95 % confidence bound of the rate, given this number of hits."""
    return float(betaincinv(hits + 1, trials - hits, CONFIDENCE)) if hits < trials else 1.0


def share_text(hits: int, trials: int) -> str:
    """A share with its 95 % interval (Clopper and Pearson)."""
    tail = (1 - CONFIDENCE) / 2
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    return f"{units.percent(hits / trials)} ({units.percent(low)} to {units.percent(high)})"


def run_noise(pairs: list[dict[str, np.ndarray]], metric: Metric) -> float:
    """The smallest `--run-noise` with which 95 % of the points' intervals contain 1, as they should between runs of the
    same code; infinite if none of NOISES is large enough."""
    sides = [[one[metric.column] for one in pair] for pair in pairs]

    def covered(noise: float) -> bool:
        common = float(np.hypot(noise, metric.resolution))
        ratios = [one for one in (ratio(*pair, common) for pair in sides) if not np.isnan(one.low)]
        return bool(ratios) and np.mean([one.low <= 1 <= one.high for one in ratios]) >= CONFIDENCE

    return next((noise for noise in NOISES if covered(noise)), np.inf)


def _warning(a: Results, b: Results) -> str:
    """A warning if the runs record different revisions; empty otherwise."""
    revisions = [sorted({str(one.get("revision")) for one in side.environments}) for side in (a, b)]
    if revisions[0] == revisions[1]:
        return ""
    return f"A and B record different revisions ({', '.join(revisions[0])}; {', '.join(revisions[1])})."


def _range(counts: list[int]) -> str:
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
