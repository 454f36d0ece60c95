"""Student's t, straight from scipy.special. scipy.stats gives the same numbers, but takes far longer for each of the
thousands that a report asks for, and half a second to be imported."""

from scipy.special import stdtr, stdtrit


def ppf(share: float, freedom):
    """The value below which `share` lies; `freedom` may be an array, and infinite."""
    return stdtrit(freedom, share)


def sf(value: float, freedom):
    """The share above `value`."""
    return stdtr(freedom, -value)


def isf(share: float, freedom):
    """The value above which `share` lies."""
    return -stdtrit(freedom, share)
