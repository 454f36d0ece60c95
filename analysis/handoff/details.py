"""Columns that a cell of `handoff` has besides its figures: the memory held, and the lowest possible time."""

import math

from .. import units

NUMBERS = ("device_bytes", "host_bytes", "least_ns")
NAMES = {"bytes": "size"}
_GPU = {"same": "on the same device", "other": "on another GPU"}
_REACH = {"map": "read in place", "copy": "copied first"}


def _several(value: float, what: str) -> str:
    return f"{value:g} {what}{'' if value == 1 else 's'}"


VALUE_LABELS = {
    "bytes": units.size,
    "tensors": lambda value: _several(value, "tensor"),
    "readers": lambda value: _several(value, "reader"),
    "to": lambda value: _GPU.get(value, str(value)),
    "reach": lambda value: _REACH.get(value, str(value)),
}


def columns(row: dict) -> dict:
    cost, bound = row.get("cost") or {}, (row.get("bounds") or {}).get("handoff_ns") or {}
    return {
        "device_bytes": cost.get("device_bytes", math.nan),
        "host_bytes": cost.get("host_bytes", math.nan),
        "least_ns": bound.get("value", math.nan),
    }


def doubt(row: dict) -> tuple[str, str] | None:
    if (row.get("details") or {}).get("verified", {}).get("wrong", 0):
        return "wrong_results", "tensors were read incorrectly"
    return None
