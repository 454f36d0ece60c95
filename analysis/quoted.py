"""A point's figure as tables print it: the median, its 95 % interval, whether it is only a bound, the marks of what its
rows warn of, and where it must be seen the whole range."""

from collections.abc import Collection

from . import flags, units

NOTE = "Medians over the repetitions, in brackets the 95 % interval (of a single repetition there is none)."


def bound(point, larger: bool) -> str:
    """'at least ' where the load generator limited a row of the point; 'at most ' of what is better when less."""
    if not point.get("limited", False):
        return ""
    return "at least " if larger else "at most "


def sign(point, larger: bool) -> str:
    """The same where there is little room: '≥' or '≤'."""
    return {"at least ": "≥", "at most ": "≤"}.get(bound(point, larger), "")


def figure(formatter, point, column: str, larger: bool, ranged: Collection[str] = (flags.LATE,)) -> str:
    """`larger`: whether more is better. `ranged`: the flags with which the least and the greatest repetition stand
    below."""
    said = units.spread(formatter, point[column], point[f"{column}_low"], point[f"{column}_high"]) + flags.mark(point)
    said = bound(point, larger) + said
    least, greatest = point[f"{column}_least"], point[f"{column}_greatest"]
    if least == greatest or not set(ranged) & set(point["flags"]):
        return said
    return f"{said}\n{formatter(least)} to {formatter(greatest)}"
