"""The figures of `handoff`, in the report's order."""

from . import by_size, several

ALL = (*by_size.ALL, several)
