"""Whether a point's repetitions agree. Where they do not, a median hides more than it says: the point is unstable."""

from collections.abc import Sequence

import pandas as pd

# Metric -> its column, and the factor between the least and the greatest repetition from which on it is unstable. A
# tail rests on few samples, so it may differ by more. `feedrate` writes the same rule's outcome into a point's last row.
METRICS = {"throughput": ("messages_per_second", 1.5), "p50": ("p50", 1.5), "p99": ("p99", 3.0)}
RULE = "throughput or p50 differ by 1.5 times or more between repetitions, or p99 by 3 times or more"


def judged(points: pd.DataFrame, ends: pd.DataFrame) -> pd.DataFrame:
    """The points, which have `<column>_low`, `<column>_high` and `repetitions`, with `spread` (metric -> greatest over
    least) and `unstable` (the metrics that are). `ends`: by the same index `stops` and `directories`, lists with an
    entry for each row of the point."""
    mine = ends.reindex(points.index)
    found = [judge(*one) for one in zip(points.to_dict("records"), mine["stops"], mine["directories"])]
    return points.assign(
        spread=pd.Series([spread for spread, _ in found], points.index, dtype=object),
        unstable=pd.Series([unstable for _, unstable in found], points.index, dtype=object),
    )


def judge(point, stops: Sequence[dict], directories: Sequence[str]) -> tuple[dict[str, float], list[str]]:
    """Spread and unstable metrics of one point: as its last row tells, else by the same rule. Of several runs no row
    knows all repetitions."""
    told = [stop for stop in stops if "unstable" in stop]
    if len(told) == 1 and len(set(directories)) == 1:
        return told[0].get("spread", {}), told[0]["unstable"]
    if point["repetitions"] < 2:
        return {}, []
    spread = {
        name: point[f"{column}_high"] / point[f"{column}_low"]
        for name, (column, _) in METRICS.items()
        if point[f"{column}_low"] > 0
    }
    return spread, [name for name, factor in spread.items() if factor >= METRICS[name][1]]


def mark(point, *metrics: str) -> str:
    """A further line for a table's cell that holds these metrics of a point; empty where they are stable."""
    unstable = [name for name in metrics if name in point["unstable"]]
    said = [f"{name} " * (len(metrics) > 1) + _times(point["spread"].get(name)) for name in unstable]
    return f"\nunstable: {', '.join(said)} between repetitions" if said else ""


def _times(factor: float | None) -> str:
    return "too far apart" if factor is None else f"{factor:.2g} times"


def summary(measured: pd.DataFrame) -> list[str]:
    """How many of these points are unstable; nothing where none was measured twice."""
    repeated = measured[measured["repetitions"] > 1] if len(measured) else measured
    if repeated.empty:
        return []
    count = int(repeated["unstable"].map(bool).sum())
    told = f"{count or 'None'} of {len(repeated)} points measured more than once {'are' if count > 1 else 'is'} unstable"
    return [f"{told}: {RULE}."]
