"""The figures of `storage`, in the report's order."""

from . import by_block, cpu_cost, under_load

ALL = (by_block, cpu_cost, under_load)
