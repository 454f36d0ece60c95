"""The figures of `overlap`, in the report's order."""

from . import by_axis, by_strategy

ALL = (by_strategy, *by_axis.ALL)
