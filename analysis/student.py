"""Student's t, straight from scipy.special: scipy.stats gives the same numbers in thirty times as long, of which a report
asks for thousands, and takes half a second to import."""

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
