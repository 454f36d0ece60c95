"""Columns that a cell of `feeding` has in addition to its figures: counts and stages."""

from .. import units

NAN = float("nan")
COUNTS = ("sent", "received", "lost", "duplicated", "corrupted", "reordered")
WRONG = ("lost", "duplicated", "corrupted")
NUMBERS = ("driver_ratio",)
# Bytes are messages times their size, so judging messages suffices. The service time is no headline figure, but its
# tail separates the queue's own delay from the delay that the load causes.
COMPARED = {"bytes_per_second": (), "service_ns": ("p99",)}
NAMES = {"burst_us": "burst", "pause_us": "pause", "ring_idle": "idling", "slot_bytes": "slot size"}
# Wording of axis values; other axes are written as their name and value.
SAID = {
    "payload_bytes": units.size,
    "flops_per_byte": lambda value: f"{value:g} FLOP/B",
    "slot_bytes": lambda value: f"slots of {units.size(value)}",
    "burst_us": lambda value: f"bursts of {value:g} µs",
    "pause_us": lambda value: f"pauses of {value:g} µs",
}


def columns(row: dict) -> dict:
    details = row.get("details") or {}
    counts = details.get("counts") or {}
    flat = {name: counts.get(name, 0) for name in COUNTS}
    flat["stages"] = details.get("stages_ns") or None
    flat["driver_ratio"] = details.get("driver", {}).get("ratio", NAN)
    return flat


def doubt(row: dict) -> tuple[str, str] | None:
    counts = row.get("details", {}).get("counts", {})
    if any(counts.get(name, 0) for name in WRONG):
        return "wrong_results", "messages were lost, duplicated or corrupted"
    return None
