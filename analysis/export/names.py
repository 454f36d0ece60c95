"""Names of points in other tools; a name depends only on the point, not on the rest of its directory."""

from ..load import Results


def point_name(cell, results: Results) -> str:
    """`host_polled+pinned/echo/cuda/payload_bytes:64/…`: includes every axis that applies, unless it has the value that
    rows without the axis are given, so that older rows match."""
    experiment = results.experiment
    variant = "+".join(value for axis in experiment.variant if (value := str(cell[axis])) != "none")
    first = [variant or experiment.name, *(str(cell[axis]) for axis in ("workload", "device") if axis in results.axes)]
    rest = [
        f"{axis}:{cell[axis]}"
        for axis in results.axes
        if axis not in (*experiment.variant, "workload", "device") and _is_set(experiment, axis, cell)
    ]
    return "/".join([*first, *rest])


def _is_set(experiment, axis: str, cell) -> bool:
    known = experiment.axes.get(axis)
    default = known.default if known and known.kind == "word" else 0
    return cell[axis] not in (default, 0, "none")
