"""When a comparison fails a CI job: `--fail-on slower:5%`, and the other options that hold a percentage."""

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
    """One `--fail-on`."""

    verdict: str
    share: float  # SLOWER by at least this
    metric: str  # empty: any
    text: str = ""  # as the command line says it

    def about(self, metric: Metric) -> bool:
        return self.metric in ("", metric.name)


def parse_gate(text: str, metrics: Sequence[Metric]) -> Gate:
    """`slower:5%`, `slower:10%:p99`, `unclear`, `unclear:throughput`."""
    kind, *rest = text.split(":")
    amount = rest[:1] if kind == "slower" else []
    metric = rest[len(amount) :]
    if kind not in ("slower", "unclear") or len(metric) > 1 or (kind == "slower" and not amount):
        raise BadInput("--fail-on", text, "not understood", GRAMMAR)
    share = parse_percent("--fail-on", text, amount[0]) if amount else 0.0
    return Gate(SLOWER if kind == "slower" else UNCLEAR, share, _metric("--fail-on", text, metric, metrics), text)


def parse_noise(texts: Sequence[str], metrics: Sequence[Metric]) -> dict[str, float]:
    """`--run-noise 2%:p99` as a share for each metric that is named; '' for the others."""
    noise = {}
    for text in texts:
        amount, *metric = text.split(":")
        if len(metric) > 1:
            raise BadInput("--run-noise", text, "not understood", "PERCENT[:METRIC]")
        noise[_metric("--run-noise", text, metric, metrics)] = parse_percent("--run-noise", text, amount)
    return noise


def noise_of(noise: dict[str, float], metrics: Sequence[Metric]) -> dict[str, float]:
    """The share of each metric. What nothing is said of has RUN_NOISE."""
    return {metric.name: noise.get(metric.name, noise.get("", RUN_NOISE)) for metric in metrics}


def parse_margin(text: str, option: str = "--margin") -> float:
    """`--margin 2%` as 0.02."""
    share = parse_percent(option, text, text)
    if not 0 < share < 1:
        raise BadInput(option, text, "is no margin around 1", "more than 0 %, less than 100 %")
    return share


def parse_percent(option: str, text: str, amount: str) -> float:
    """`5%` or `5` as 0.05; `text` is the option's whole value, for the message."""
    try:
        share = float(amount.strip().removesuffix("%")) / 100
    except ValueError:
        share = math.nan
    if not 0 <= share < math.inf:
        raise BadInput(option, text, f"'{amount}' is no percentage", "0 % or more: 5, 2.5%")
    return share


def _metric(option: str, text: str, named: list[str], metrics: Sequence[Metric]) -> str:
    known = {name: metric.name for metric in metrics for name in (metric.key, metric.name)}
    if named and named[0] not in known:
        names = dict.fromkeys(metric.name for metric in metrics)
        raise BadInput(option, text, f"no such metric '{named[0]}'", ", ".join(names))
    return known[named[0]] if named else ""


def looked_for(gates: Sequence[Gate], metrics: Sequence[Metric]) -> dict[str, float]:
    """The smallest change of each metric that some gate stops."""
    shares = {
        metric.name: [gate.share for gate in gates if gate.verdict == SLOWER and gate.about(metric)]
        for metric in metrics
    }
    return {name: max(min(some), power.FINEST) for name, some in shares.items() if some}


Designs = Callable[[Metric], Sequence[tuple[power.Design, Callable[[Ratio], float]]]]


def refuse_blind(gates: Sequence[Gate], matched: pd.DataFrame, metrics: Sequence[Metric], designs: Designs) -> None:
    """A gate that could not see what it is to stop would pass it, so it is bad input: where at half of the points such
    a change would be found in less than half of the cases. Of a tail only a gate that names it is held to that:
    unnamed, it has no verdict where it cannot see. `designs`: the ways to measure more."""
    for gate in gates:
        for metric in metrics if gate.verdict == SLOWER else ():
            if not gate.about(metric) or (metric.tail and not gate.metric):
                continue
            known = [one for one in matched[metric.column] if np.isfinite(one.error)]
            size = max(gate.share, power.FINEST)
            chance = power.typical(known, size)
            if chance < power.LEAST:
                raise BadInput(
                    "--fail-on",
                    gate.text,
                    f"a change of {units.percent(size)} in {metric.name} would be found in {units.percent(chance)} of the "
                    f"cases at half of the {len(matched)} points, so the gate would pass what it is to stop",
                    _enough(known, size, designs(metric)),
                )


def _enough(known: list[Ratio], size: float, designs: Sequence[tuple[power.Design, Callable[[Ratio], float]]]) -> str:
    if not known:
        return "rows of two or more repetitions a side"
    said = []
    for design, spread in designs:
        count = design.needed([spread(one) for one in known], size, len(known))
        said.append(f"no number of {design.what} is enough" if count is None else f"{count} {design.what}")
    return f"a larger change, or for {units.percent(power.USUAL)} of the cases: " + "; or ".join(said)


def failures(
    gates: Sequence[Gate],
    matched: pd.DataFrame,
    lonely: pd.DataFrame,
    metrics: Sequence[Metric],
    name: Callable[[pd.Series], str],
) -> list[str]:
    """A line for each point that some gate stops; `name` says a point in words."""
    said = []
    for _, point in matched.iterrows():
        for metric in metrics:
            one = point[metric.column]
            if any(_stops(gate, one, metric) for gate in gates):
                worse = f"{units.percent(one.worse_by(metric))} worse, " if one.verdict == SLOWER else ""
                said.append(f"{name(point)}: {metric.name} {one.verdict}, {worse}B / A {one}")
    if any(gate.verdict == UNCLEAR for gate in gates):
        # A point that A measured and B could not is the worst that can become of it, and has no ratio.
        said += [
            f"{name(point)}: ok in A only; in B {point['elsewhere']}"
            for _, point in lonely.iterrows()
            if point["ok in"] == "A"
        ]
    return said


def _stops(gate: Gate, one: Ratio, metric: Metric) -> bool:
    far = gate.verdict == UNCLEAR or at_least(one.worse_by(metric), gate.share)
    return gate.about(metric) and one.verdict == gate.verdict and far
