"""Result directories in, tables out. An interrupted run is read as far as it got, and what was left out is said."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from .errors import BadInput

SCHEMA_VERSION = 1
STATUSES = ("ok", "invalid", "unsustainable", "failed", "skipped")
COUNTS = ("sent", "received", "lost", "duplicated", "corrupted", "reordered")
LATENCIES = ("min", "mean", "p50", "p90", "p99", "p999", "max")
# A row's histogram summaries. In an open load `latency_ns` is the response time, which counts from when a message was
# due; it is the send lag and the service time together, and only such rows have those two.
DISTRIBUTIONS = ("latency_ns", "service_ns", "send_lag_ns")
# The axes in the order people name them; others that a sweep adds follow.
AXES = (
    "queue",
    "transfer",
    "workload",
    "device",
    "payload_bytes",
    "batch",
    "window",
    "producers",
    "workers",
    "streams",
    "block",
    "pack",
    "lanes",
    "flops_per_byte",
)
# The GPU ring's own axes, and what it does unasked: rows from before an axis existed ran that. Other queues lack them.
RING_AXES = {
    "pollers": 0,
    "mirrors": 0,
    "granularity": "auto",
    "notify": "auto",
    "slots": "auto",
    "results": "in_order",
    "ring_idle": "spin",
    "slot_bytes": 0,
    "capacity": 0,
}
# The load's own axes, likewise: rows from before them kept the window full.
LOAD_AXES = {
    "arrivals": "closed",
    "rate": 0,
    "burst_us": 0,
    "pause_us": 0,
    "payload_mix": "none",
    "priority_mix": "none",
    "trace_file": "none",
}
# Queues from the nearest to the GPU outwards; the driver's own limit comes last.
QUEUE_ORDER = ("gpu_ring", "host_polled", "redis_list", "redis_stream")


@dataclass(frozen=True)
class Results:
    """Everything read from one or more result directories."""

    directories: list[Path]
    cells: pd.DataFrame  # one line a repetition; see `_cell`
    capacities: pd.DataFrame  # one line a search for a capacity; see `_capacity`
    tries: list[float]  # the seconds that each try of a search for the best settings took
    floors: pd.DataFrame  # one line a floor row: name, value, p50, p99, status, reason, description, device, machine
    environments: list[dict]  # the distinct ones, in order of appearance
    runs: list[dict]  # the distinct run settings
    axes: list[str]
    notes: list[str]  # what was not as it should be in the files

    @property
    def devices(self) -> list[str]:
        return sorted(self.cells["device"].unique())

    @property
    def contest(self) -> set[str]:
        """The variants that compete: the null queue delivers nothing, and a CPU device is no match for a GPU."""
        known = pd.concat([lines[["variant", "queue", "device"]] for lines in (self.cells, self.capacities)])
        device = "cuda" if "cuda" in self.devices else "cpu"
        return set(known.loc[(known["queue"] != "null") & (known["device"] == device), "variant"])

    @property
    def closed(self) -> "Results":
        """Only the cells that kept their window full. What a queue does at most, and how long a lone message takes,
        are theirs alone to tell: in an open load the rate is what was asked for."""
        return replace(self, cells=self.cells[~self.cells["open"]])


def load(directories: Iterable[str | Path], argument: str = "DIR") -> Results:
    """Reads `rows.jsonl` of every directory; `argument` is the command line's name for them, for messages."""
    paths = [Path(directory) for directory in directories]
    notes: list[str] = []
    rows = [(path, row) for path in paths for row in _read(path, argument, notes)]
    # A try is measured briefly, to choose settings; what was chosen is measured afresh, in rows of its own.
    tries = [row for _, row in rows if row["kind"] == "cell" and "search" in row]
    measured = [(path, row) for path, row in rows if row["kind"] == "cell" and "search" not in row]
    cells = [(path, row) for path, row in measured if not row.get("run", {}).get("traced")]
    traced = len(measured) - len(cells)
    if traced:
        notes.append(f"{traced} row(s) were measured under a recorder of activities (--trace): left out")
    if not cells:
        raise BadInput(
            argument,
            ", ".join(map(str, paths)),
            f"rows.jsonl holds no cell row{' but tries of a search' if tries else ''}",
            "a directory in which a sweep measured at least one cell",
        )
    searches = [(path, row) for path, row in rows if row["kind"] == "capacity"]
    extra = {name for _, row in cells + searches for name in row["params"]} - set(AXES)
    known = [axis for axis in (*RING_AXES, *LOAD_AXES) if axis in extra]
    axes = [*AXES, *known, *sorted(extra - set(known))]
    frame = pd.DataFrame([_cell(path, row, axes) for path, row in cells])
    floors = pd.DataFrame(
        [_floor(row) for _, row in rows if row["kind"] == "floor"],
        columns=["name", "value", "p50", "p99", "status", "reason", "description", "device", "machine"],
    )
    capacities = pd.DataFrame([_capacity(path, row, axes) for path, row in searches], columns=_capacity_columns(axes))
    distrusted = int(frame.pop("distrusted").sum())
    if distrusted:
        notes.append(
            f"{distrusted} row(s) say ok though messages were lost, duplicated or corrupted: counted as invalid"
        )
    return Results(
        paths,
        *_name_variants(frame, capacities),
        [row.get("time", {}).get("duration_seconds", 0.0) for row in tries],
        floors,
        _distinct(row.get("environment", {}) for _, row in rows),
        _distinct(row["run"] for _, row in cells if row.get("run")),
        axes,
        notes,
    )


def _read(directory: Path, argument: str, notes: list[str]) -> list[dict]:
    """The rows of one directory; of rows with the same id the last, because a resumed sweep measures it again."""
    file = directory / "rows.jsonl"
    if not directory.is_dir():
        raise BadInput(argument, directory, "no such directory", "a results directory that holds rows.jsonl")
    if not file.is_file():
        raise BadInput(argument, directory, "has no rows.jsonl", "a results directory that holds rows.jsonl")
    rows: dict[str, dict] = {}
    repeated = 0
    lines = file.read_bytes().split(b"\n")
    for line_number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            cut = line_number == len(lines)
            notes.append(
                f"{file}:{line_number}: "
                + ("the last line is cut off (an interrupted run); left out" if cut else "not JSON; left out")
            )
            continue
        _check(row, f"{file}:{line_number}", argument, directory)
        key = row.get("id", f"line {line_number}")
        repeated += key in rows
        rows[key] = row
    if not rows:
        raise BadInput(argument, directory, "rows.jsonl holds no complete row", "a directory in which a sweep ran")
    if repeated:
        notes.append(f"{file}: {repeated} row(s) repeat an id; the last of each counts")
    return list(rows.values())


def _check(row: object, place: str, argument: str, directory: Path) -> None:
    """Only what reading needs; `feedrate validate` holds rows to the whole schema."""
    version = row.get("schema") if isinstance(row, dict) else None
    if version != SCHEMA_VERSION:
        raise BadInput(argument, directory, f"{place} has schema version {version!r}", str(SCHEMA_VERSION))
    kind = row.get("kind")
    needed = {"cell": "params", "floor": "floor", "capacity": "params"}.get(kind)
    if needed is None:
        raise BadInput(argument, directory, f"{place} has kind {kind!r}", "cell, floor, capacity")
    if not isinstance(row.get(needed), dict):
        raise BadInput(argument, directory, f"{place} has no {needed}", f"a {kind} row with an object '{needed}'")
    if row.get("status") not in STATUSES:
        raise BadInput(argument, directory, f"{place} has status {row.get('status')!r}", ", ".join(STATUSES))


def _cell(directory: Path, row: dict, axes: list[str]) -> dict:
    """One row, flat. Missing numbers are NaN; latencies are ns, rates per second."""
    counts, latency, cost, bound = (row.get(name) or {} for name in ("counts", "latency_ns", "cost", "bound"))
    throughput = row.get("throughput") or {}
    status, reason = row["status"], row.get("reason", "")
    wrong = any(counts.get(name, 0) for name in ("lost", "duplicated", "corrupted"))
    distrusted = status == "ok" and wrong
    if distrusted:
        status, reason = "invalid", "messages were lost, duplicated or corrupted"
    flat = _who(directory, row, axes) | {"status": status, "reason": reason, "distrusted": distrusted}
    flat |= {name: counts.get(name, 0) for name in COUNTS}
    flat |= {name: throughput.get(name, float("nan")) for name in ("messages_per_second", "bytes_per_second")}
    flat |= {name: latency.get(name, float("nan")) for name in LATENCIES}
    flat |= {
        "histogram": latency.get("histogram"),
        "sampled_every": latency.get("sampled_every", 1),
        "stages": row.get("stages_ns") or None,
    }
    flat |= {name: cost.get(name, float("nan")) for name in ("host_threads", "spinning_threads", "sms")}
    flat |= {name: cost.get(name, "") for name in ("delivery", "order")}
    for side in ("throughput", "latency", "driver"):
        flat[f"{side}_floor"] = bound.get(side, {}).get("floor", "")
        flat[f"{side}_ratio"] = bound.get(side, {}).get("ratio", float("nan"))
    flat["floors"] = row.get("floors") or {}
    flat["chosen"] = row.get("chosen") or {}
    flat["distributions"] = {name: row[name] for name in DISTRIBUTIONS if row.get(name)}
    flat["service_p99"] = flat["distributions"].get("service_ns", {}).get("p99", float("nan"))
    flat["time"] = row.get("time") or {}
    state = row.get("machine") or {}
    flat["open"] = row["params"].get("arrivals", "closed") != "closed"
    open_load = row.get("load") or {}
    flat["due_per_second"] = open_load.get("due_per_second", float("nan"))
    # Rows older than this have none.
    flat["p99_without_own_lag"] = open_load.get("without_own_lag_ns", {}).get("p99", float("nan"))
    flat["own_cores"] = state.get("host", {}).get("own_cores", float("nan"))
    flat["power_w"] = state.get("gpu", {}).get("power_w", float("nan"))
    flat["disturbances"] = state.get("disturbances") or []
    flat["stop"] = row.get("stop") or {}
    return flat


def _who(directory: Path, row: dict, axes: list[str]) -> dict:
    """Where a row stands, and the point it is of."""
    params = {axis: row["params"].get(axis, missing(axis, row["params"].get("queue"))) for axis in axes}
    return {
        "directory": str(directory),
        "id": row.get("id", ""),
        "repetition": row.get("repetition", 0),
        "machine": _machine(row.get("environment", {})),
        **params,
    }


def _capacity(directory: Path, row: dict, axes: list[str]) -> dict:
    """One search, flat. `low` 0: not even the least rate was sustained; `high` infinite: the most was, too."""
    found, slo = row.get("capacity") or {}, row.get("slo") or {}
    return _who(directory, row, axes) | {
        "status": row["status"],
        "reason": row.get("reason", ""),
        "slo": slo.get("text", "?"),
        "percentile": slo.get("percentile", "?"),
        "bound_ns": slo.get("bound_ns", float("nan")),
        "low": found.get("low", float("nan")),
        "high": found.get("high") or float("inf"),
        "limit": found.get("limit", ""),
        "probes": [one["id"] for one in found.get("probes", ())],
    }


def _capacity_columns(axes: list[str]) -> list[str]:
    nothing = {"params": {}, "status": "skipped"}
    return list(_capacity(Path(), nothing, axes))  # known even where there was no search


def missing(axis: str, queue: str | None = None):
    """The value of an axis that a row does not tell: it did not exist, or does not apply."""
    if axis in RING_AXES:
        unasked = RING_AXES[axis]
        return unasked if queue == "gpu_ring" or isinstance(unasked, int) else "none"
    return LOAD_AXES.get(axis, "none" if axis in AXES[:4] else 0)


def _floor(row: dict) -> dict:
    floor = row["floor"]
    return {
        "name": floor.get("name", "?"),
        "value": floor.get("value", float("nan")),
        "p50": floor.get("p50", float("nan")),
        "p99": floor.get("p99", float("nan")),
        "status": row["status"],
        "reason": row.get("reason", ""),
        "description": floor.get("description", ""),
        "device": row.get("device", ""),
        "machine": _machine(row.get("environment", {})),
    }


def _machine(environment: dict) -> str:
    """What makes two rows comparable: the hardware, not the host's name, which changes with every container."""
    parts = (environment.get("gpu"), environment.get("cpu"), environment.get("cores"))
    return ", ".join(f"{part} cores" if isinstance(part, int) else str(part) for part in parts if part)


def machine_letters(cells: pd.DataFrame) -> dict[str, str]:
    """A short name for each machine, in order of appearance: their real names are too long for a legend."""
    return {machine: chr(ord("A") + place) for place, machine in enumerate(cells["machine"].unique())}


def variant_name(queue: str, transfer: str) -> str:
    """What is compared, in words."""
    if queue == "null":
        return "null (driver alone)"
    return queue if transfer == "none" else f"{queue} + {transfer}"


def _name_variants(*frames: pd.DataFrame) -> list[pd.DataFrame]:
    """Adds `variant` (what is compared: queue + transfer, marked where several machines or devices were read), its rank
    for a stable order, and `work` (the workload, with its intensity where that is an axis). The same in all frames."""
    known = pd.concat([frame[["queue", "transfer", "device", "machine"]] for frame in frames]).drop_duplicates()
    letters = machine_letters(known)
    mark_device = known["device"].nunique() > 1

    def variant(cell) -> str:
        machine = f" @{letters[cell.machine]}" if len(letters) > 1 else ""
        device = " [cpu]" if mark_device and cell.device == "cpu" else ""
        return variant_name(cell.queue, cell.transfer) + machine + device

    def rank(cell) -> tuple:
        place = (
            QUEUE_ORDER.index(cell.queue) if cell.queue in QUEUE_ORDER else len(QUEUE_ORDER) + (cell.queue == "null")
        )
        return place, cell.queue, cell.transfer, cell.device, cell.machine

    def work(cell) -> str:
        return f"{cell.workload}, {cell.flops_per_byte:g} FLOP/B" if cell.flops_per_byte else cell.workload

    order = {key: position for position, key in enumerate(sorted({rank(cell) for cell in known.itertuples()}))}
    return [
        frame.assign(
            variant=[variant(cell) for cell in frame.itertuples()],
            rank=[order[rank(cell)] for cell in frame.itertuples()],
            work=[work(cell) for cell in frame.itertuples()],
        )
        for frame in frames
    ]


def _distinct(items: Iterable[dict]) -> list[dict]:
    return list({json.dumps(item, sort_keys=True): item for item in items}.values())
