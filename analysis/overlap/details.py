"""Columns that a cell of `overlap` has besides its figures: its stages, and whether there is nothing to save."""

import math

LINEAR = ("overlap_efficiency", "overlap_efficiency_alone")
# Not judged: ratios of efficiencies near 0 are meaningless. The speedup is judged.
COMPARED = {"overlap_efficiency": ()}
VALUE_LABELS = {
    "stages": lambda value: f"{value:g} stages",
    "items": lambda value: f"{value:g} items",
    "cost_us": lambda value: f"{value:g} µs per kernel",
    "stage_blocks": lambda value: f"{value:g} blocks per stage",
    "balance": lambda value: f"cost {value}" if value == "even" else f"cost by {value}",
}


def columns(row: dict) -> dict:
    details = row.get("details") or {}
    serial = details.get("serial_ns") or {}
    return {
        "stage_times": details.get("stages") or [],
        "no_saving": details.get("no_saving") or {},
        "serial_ns": serial.get("p50", math.nan),
    }


def doubt(row: dict) -> tuple[str, str] | None:
    if (row.get("details") or {}).get("verified", {}).get("wrong", 0):
        return "wrong_results", "items were wrong"
    return None
