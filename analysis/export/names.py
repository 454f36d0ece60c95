"""A point's name in other tools: the same for the same point, whatever else its directory holds."""

from ..load import missing

_FIRST = ("queue", "transfer", "workload", "device")


def point_name(cell, axes: list[str]) -> str:
    """`host_polled+pinned/echo/cuda/payload_bytes:64/…`: every axis that applies, unless it has the value that rows
    from before the axis would have, so that those rows match."""
    queue = cell["queue"] if cell["transfer"] == "none" else f"{cell['queue']}+{cell['transfer']}"
    rest = [
        f"{axis}:{cell[axis]}"
        for axis in axes
        if axis not in _FIRST and cell[axis] not in (missing(axis, cell["queue"]), "none")
    ]
    return "/".join([queue, cell["workload"], cell["device"], *rest])
