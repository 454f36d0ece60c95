"""Agreement between a point's repetitions. If they disagree, the median is misleading and the point is unstable."""

from collections.abc import Sequence

import pandas as pd

from .catalogue import Experiment


def rule(experiment: Experiment) -> str:
    """The rule for unstable points in words, from the catalogue's `unstable_from`; `feedrate` applies the same rule in
    a point's last row."""
    by_factor: dict[float, list[str]] = {}
    for metric in experiment.judged:
        by_factor.setdefault(metric.unstable_from, []).append(metric.name.replace("_", " "))
    parts = []
    for factor, names in sorted(by_factor.items()):
        between = "" if parts else " between repetitions"
        often = f"by {factor:g} times or more{between}"
        parts.append(f"{' or '.join(names)} differ {often}" if not parts else f"{' or '.join(names)} {often}")
    return ", or ".join(parts)


def judged(experiment: Experiment, points: pd.DataFrame, ends: pd.DataFrame) -> pd.DataFrame:
    """Adds `spread` (metric -> greatest / least) and `unstable` (the unstable metrics) to points that have
    `<column>_least`, `<column>_greatest` and `repetitions`. `ends` has the same index; its columns `stops` and
    `directories` are lists with one entry for each row of the point."""
    mine = ends.reindex(points.index)
    limits = [f"{metric.column}_{end}" for metric in experiment.judged for end in ("greatest", "least")]
    needed = points[[*dict.fromkeys(limits), "repetitions"]].to_dict("records")
    found = [judge(experiment, *one) for one in zip(needed, mine["stops"], mine["directories"])]
    return points.assign(
        spread=pd.Series([spread for spread, _ in found], points.index, dtype=object),
        unstable=pd.Series([unstable for _, unstable in found], points.index, dtype=object),
    )


def judge(
    experiment: Experiment, point, stops: Sequence[dict], directories: Sequence[str]
) -> tuple[dict[str, float], list[str]]:
    """Spread and unstable metrics of one point: taken from its last row if there is one run, otherwise computed by the
    same rule, because with several runs no row covers all repetitions."""
    names = {metric.key: metric.name for metric in experiment.judged}
    last = [stop for stop in stops if "unstable" in stop]
    if len(last) == 1 and len(set(directories)) == 1:
        spread = {names.get(key, key): factor for key, factor in last[0].get("spread", {}).items()}
        return spread, [names.get(key, key) for key in last[0]["unstable"]]
    if point["repetitions"] < 2:
        return {}, []
    spread = {
        metric.name: point[f"{metric.column}_greatest"] / point[f"{metric.column}_least"]
        for metric in experiment.judged
        if point[f"{metric.column}_least"] > 0
    }
    factors = {metric.name: metric.unstable_from for metric in experiment.judged}
    return spread, [name for name, factor in spread.items() if factor >= factors[name]]


def mark(point, *metrics: str) -> str:
    """An additional line for the table cell with these metrics of a point; empty if they are stable."""
    unstable = [name for name in metrics if name in point["unstable"]]
    factors = [f"{name} " * (len(metrics) > 1) + _times(point["spread"].get(name)) for name in unstable]
    return f"\nunstable: {', '.join(factors)} between repetitions" if factors else ""


def _times(factor: float | None) -> str:
    if factor is None:
        return "too far apart"
    return f"{factor:.2g} times" if factor < 99.5 else f"{factor:.0f} times"


def summary(experiment: Experiment, measured: pd.DataFrame) -> list[str]:
    """The number of unstable points; empty if no point was measured more than once."""
    repeated = measured[measured["repetitions"] > 1] if len(measured) else measured
    if repeated.empty or not experiment.judged:
        return []
    count = int(repeated["unstable"].map(bool).sum())
    of = f"{count or 'None'} of {len(repeated)} points measured more than once"
    return [f"{of} {'are' if count > 1 else 'is'} unstable: {rule(experiment)}."]
