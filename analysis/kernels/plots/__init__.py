"""The figures of `kernels`, in the report's order."""

from . import by_rung, error_by_depth, roofline

ALL = (by_rung, roofline, error_by_depth)
