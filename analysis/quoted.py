"""A point's figure as tables print it: the median, its 95 % interval, the marks of what its rows warn of, and where it
must be seen the whole range."""

from collections.abc import Collection

from . import flags, units

NOTE = "Medians over the repetitions, in brackets the 95 % interval (of a single repetition there is none)."


def figure(formatter, point, column: str, ranged: Collection[str] = (flags.LATE,)) -> str:
    """`ranged`: the flags with which the least and the greatest repetition stand below."""
    said = units.spread(formatter, point[column], point[f"{column}_low"], point[f"{column}_high"]) + flags.mark(point)
    least, greatest = point[f"{column}_least"], point[f"{column}_greatest"]
    if least == greatest or not set(ranged) & set(point["flags"]):
        return said
    return f"{said}\n{formatter(least)} to {formatter(greatest)}"
