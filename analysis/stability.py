"""Whether a point's repetitions agree. Where they do not, a median hides more than it says: the point is unstable."""

from collections.abc import Sequence

import pandas as pd

from .catalogue import Experiment


def rule(experiment: Experiment) -> str:
    """When a point is unstable, in words: by the catalogue's `unstable_from`, as `feedrate` writes it into a point's
    last row."""
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
    """The points, which have `<column>_least`, `<column>_greatest` and `repetitions`, with `spread` (metric -> greatest
    over least) and `unstable` (the metrics that are). `ends`: by the same index `stops` and `directories`, lists with
    an entry for each row of the point."""
    mine = ends.reindex(points.index)
    found = [judge(experiment, *one) for one in zip(points.to_dict("records"), mine["stops"], mine["directories"])]
    return points.assign(
        spread=pd.Series([spread for spread, _ in found], points.index, dtype=object),
        unstable=pd.Series([unstable for _, unstable in found], points.index, dtype=object),
    )


def judge(
    experiment: Experiment, point, stops: Sequence[dict], directories: Sequence[str]
) -> tuple[dict[str, float], list[str]]:
    """Spread and unstable metrics of one point: as its last row tells, else by the same rule. Of several runs no row
    knows all repetitions."""
    names = {metric.key: metric.name for metric in experiment.judged}
    told = [stop for stop in stops if "unstable" in stop]
    if len(told) == 1 and len(set(directories)) == 1:
        spread = {names.get(key, key): factor for key, factor in told[0].get("spread", {}).items()}
        return spread, [names.get(key, key) for key in told[0]["unstable"]]
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
    """A further line for a table's cell that holds these metrics of a point; empty where they are stable."""
    unstable = [name for name in metrics if name in point["unstable"]]
    said = [f"{name} " * (len(metrics) > 1) + _times(point["spread"].get(name)) for name in unstable]
    return f"\nunstable: {', '.join(said)} between repetitions" if said else ""


def _times(factor: float | None) -> str:
    return "too far apart" if factor is None else f"{factor:.2g} times"


def summary(experiment: Experiment, measured: pd.DataFrame) -> list[str]:
    """How many of these points are unstable; nothing where none was measured twice."""
    repeated = measured[measured["repetitions"] > 1] if len(measured) else measured
    if repeated.empty or not experiment.judged:
        return []
    count = int(repeated["unstable"].map(bool).sum())
    told = f"{count or 'None'} of {len(repeated)} points measured more than once {'are' if count > 1 else 'is'} unstable"
    return [f"{told}: {rule(experiment)}."]
