"""A point's figure as tables print it: the median, its 95 % interval, a prefix if it is only a bound, the marks of its
rows and, for marked figures, the range of the repetitions."""

from collections.abc import Collection

from . import flags, units

NOTE = (
    "Figures are medians over the repetitions, with the 95 % interval in brackets (a single repetition has none)."
)


def bound(point, larger: bool) -> str:
    """'at least ' if the load generator limited a row of the point; 'at most ' if lower is better for the metric."""
    if not point.get("limited", False):
        return ""
    return "at least " if larger else "at most "


def sign(point, larger: bool) -> str:
    """The short form of `bound`: '≥' or '≤'."""
    return {"at least ": "≥", "at most ": "≤"}.get(bound(point, larger), "")


def figure(formatter, point, column: str, larger: bool, ranged: Collection[str] = (flags.LATE,)) -> str:
    """The figure in words. `larger`: whether higher is better. `ranged`: flags that add a line with the lowest and the
    highest repetition."""
    value = units.spread(formatter, point[column], point[f"{column}_low"], point[f"{column}_high"]) + flags.mark(point)
    value = bound(point, larger) + value
    least, greatest = point[f"{column}_least"], point[f"{column}_greatest"]
    if least == greatest or not set(ranged) & set(point["flags"]):
        return value
    return f"{value}\n{formatter(least)} to {formatter(greatest)}"
