"""Student's t from scipy.special. scipy.stats gives the same numbers, but is far slower for each of the thousands of
values in a report and takes half a second to import."""

from scipy.special import stdtr, stdtrit


def ppf(share: float, freedom):
    """The value below which `share` of the distribution lies; `freedom` may be an array and may be infinite."""
    return stdtrit(freedom, share)


def sf(value: float, freedom):
    """The share of the distribution above `value`."""
    return stdtr(freedom, -value)


def isf(share: float, freedom):
    """The value above which `share` of the distribution lies."""
    return -stdtrit(freedom, share)
