"""Gates that make a comparison fail a CI job (`--fail-on slower:5%`), and the other options with a percentage."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from . import power, units
from .errors import BadInput
from .verdict import RUN_NOISE, SLOWER, UNCLEAR, Metric, Ratio, at_least

GRAMMAR = "slower:PERCENT[:METRIC], unclear[:METRIC]"


@dataclass(frozen=True)
class Gate:
    """One `--fail-on` option."""

    verdict: str
    share: float  # SLOWER by at least this
    metric: str  # empty: any
    text: str = ""  # the option's value on the command line

    def about(self, metric: Metric) -> bool:
        return self.metric in ("", metric.name)


def parse_gate(text: str, metrics: Sequence[Metric]) -> Gate:
    """`slower:5%`, `slower:10%:p99`, `unclear`, `unclear:throughput`."""
    kind, *rest = text.split(":")
    amount = rest[:1] if kind == "slower" else []
    metric = rest[len(amount) :]
    if kind not in ("slower", "unclear") or len(metric) > 1 or (kind == "slower" and not amount):
        raise BadInput("--fail-on", text, "invalid value", GRAMMAR)
    share = parse_percent("--fail-on", text, amount[0]) if amount else 0.0
    return Gate(SLOWER if kind == "slower" else UNCLEAR, share, _metric("--fail-on", text, metric, metrics), text)


def parse_noise(texts: Sequence[str], metrics: Sequence[Metric]) -> dict[str, float]:
    """Parses values such as `2%:p99` into shares keyed by metric; the key '' applies to all metrics that are not named."""
    noise = {}
    for text in texts:
        amount, *metric = text.split(":")
        if len(metric) > 1:
            raise BadInput("--run-noise", text, "invalid value", "PERCENT[:METRIC]")
        noise[_metric("--run-noise", text, metric, metrics)] = parse_percent("--run-noise", text, amount)
    return noise


def noise_of(noise: dict[str, float], metrics: Sequence[Metric]) -> dict[str, float]:
    """The share of each metric; the default is RUN_NOISE."""
    return {metric.name: noise.get(metric.name, noise.get("", RUN_NOISE)) for metric in metrics}


def parse_margin(text: str, option: str = "--margin") -> float:
    """`--margin 2%` as 0.02."""
    share = parse_percent(option, text, text)
    if not 0 < share < 1:
        raise BadInput(option, text, "out of range", "more than 0 %, less than 100 %")
    return share


def parse_percent(option: str, text: str, amount: str) -> float:
    """`5%` or `5` as 0.05; `text` is the option's complete value, for the message."""
    try:
        share = float(amount.strip().removesuffix("%")) / 100
    except ValueError:
        share = math.nan
    if not 0 <= share < math.inf:
        raise BadInput(option, text, f"'{amount}' is not a percentage", "0 % or more: 5, 2.5%")
    return share


def _metric(option: str, text: str, named: list[str], metrics: Sequence[Metric]) -> str:
    known = {name: metric.name for metric in metrics for name in (metric.key, metric.name)}
    if named and named[0] not in known:
        names = dict.fromkeys(metric.name for metric in metrics)
        raise BadInput(option, text, f"unknown metric '{named[0]}'", ", ".join(names))
    return known[named[0]] if named else ""


def smallest_changes(gates: Sequence[Gate], metrics: Sequence[Metric]) -> dict[str, float]:
    """For each metric, the smallest change that fails a gate."""
    shares = {
        metric.name: [gate.share for gate in gates if gate.verdict == SLOWER and gate.about(metric)]
        for metric in metrics
    }
    return {name: max(min(some), power.FINEST) for name, some in shares.items() if some}


Designs = Callable[[Metric], Sequence[tuple[power.Design, Callable[[Ratio], float]]]]


def reject_powerless(gates: Sequence[Gate], matched: pd.DataFrame, metrics: Sequence[Metric], designs: Designs, margin: float) -> None:
    """Raises BadInput for a gate that cannot detect its own change and would therefore pass it: a gate for which, at
    half of the points, the change would be found in less than half of the cases. This applies to a tail only if the
    gate names it, because points of a tail that lack the power have no verdict. `designs`: the ways to collect more
    data."""
    for gate in gates:
        for metric in metrics if gate.verdict == SLOWER else ():
            if not gate.about(metric) or (metric.tail and not gate.metric):
                continue
            known = [one for one in matched[metric.column] if np.isfinite(one.error)]
            size = max(gate.share, power.FINEST)
            chance = power.typical(known, size, margin)
            if chance < power.LEAST:
                raise BadInput(
                    "--fail-on",
                    gate.text,
                    f"a change of {units.percent(size)} in {metric.name} would be found in only {units.percent(chance)} "
                    f"of the cases at half of the {len(matched)} points, so the gate would miss it",
                    _needed_counts(known, size, designs(metric), margin),
                )


def _needed_counts(
    known: list[Ratio], size: float, designs: Sequence[tuple[power.Design, Callable[[Ratio], float]]], margin: float
) -> str:
    if not known:
        return "rows with at least two repetitions per side"
    needs = []
    for design, spread in designs:
        count = design.needed([spread(one) for one in known], size, len(known), margin)
        needs.append(f"no number of {design.what} is enough" if count is None else f"{count} {design.what}")
    return f"a larger change; or, for {units.percent(power.USUAL)} of the cases, {'; or '.join(needs)}"


def failures(
    gates: Sequence[Gate],
    matched: pd.DataFrame,
    one_sided: pd.DataFrame,
    metrics: Sequence[Metric],
    name: Callable[[pd.Series], str],
) -> list[str]:
    """A line for each point that fails a gate; `name` describes a point in words."""
    lines = []
    for _, point in matched.iterrows():
        for metric in metrics:
            one = point[metric.column]
            if any(_fails(gate, one, metric) for gate in gates):
                worse = f"{units.percent(one.worse_by(metric))} worse, " if one.verdict == SLOWER else ""
                lines.append(f"{name(point)}: {metric.name} {one.verdict}, {worse}B / A {one}")
    if any(gate.verdict == UNCLEAR for gate in gates):
        # A point that is ok in A but not in B is the worst outcome, and it has no ratio.
        lines += [
            f"{name(point)}: ok in A only; in B {point['elsewhere']}"
            for _, point in one_sided.iterrows()
            if point["ok in"] == "A"
        ]
    return lines


def _fails(gate: Gate, one: Ratio, metric: Metric) -> bool:
    far = gate.verdict == UNCLEAR or at_least(one.worse_by(metric), gate.share)
    return gate.about(metric) and one.verdict == gate.verdict and far
