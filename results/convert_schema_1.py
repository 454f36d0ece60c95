"""Converts rows of schema 1 into rows of schema 2: python results/convert_schema_1.py DIR…

Every rows.jsonl in and below the folders becomes rows.jsonl.gz with a catalogue.json beside it; the old file is
removed. Needs nothing but Python. Ids stay as they are, so that results can be followed from one version to the other.
"""

import gzip
import hashlib
import json
import sys
from pathlib import Path

from convert_schema_1_catalogue import catalogue

EXPERIMENT = "feeding"
# What differs between two rows of one invocation and says nothing about it.
FLUCTUATES = ("gpu_clock_mhz", "gpu_memory_clock_mhz", "throttle_reasons", "redis")
# An axis of schema 1 -> where it applies: the coordinate and the members that own the axis.
OWNERS = {
    **dict.fromkeys(
        ("lanes", "pollers", "mirrors", "granularity", "notify", "slots", "results", "ring_idle", "slot_bytes"),
        ("queue", ("gpu_ring",)),
    ),
    "pack": ("queue", ("redis_list", "redis_stream")),
    "streams": ("transfer", ("pinned", "mapped")),
    "flops_per_byte": ("workload", ("fma_chain",)),
}
FIGURES = {"throughput": "messages_per_second", "p50": "latency_ns.p50", "p99": "latency_ns.p99"}
REASONS = {  # how a reason begins -> its cause
    "disturbed": "disturbed",
    "driver-bound": "driver_bound",
    "the driver's own limit could not be measured": "driver_unknown",
    "generator": "generator",
    "wrong answers": "wrong_results",
    "no result came back": "no_results",
    "interrupted": "interrupted",
    "hung": "hung",
}


def cause(row: dict) -> str:
    by_status = {"ok": "", "unsustainable": "backlog", "skipped": "impossible"}
    if row["status"] in by_status:
        return by_status[row["status"]]
    return next((code for start, code in REASONS.items() if row["reason"].startswith(start)), "error")


class Runs:
    """The invocations that the rows tell of. Rows whose facts do not contradict each other are of the same one."""

    def __init__(self, rows: list[dict]):
        self.runs: list[dict] = []
        self._of: dict[int, dict] = {}
        # A search's answer and a floor tell fewer facts than a cell, so they look for a run when all runs are known.
        for row in sorted(rows, key=lambda row: row["kind"] != "cell"):
            self._of[id(row)] = self._find(row) or self._begin(row)
        for run in self.runs:
            mine = [row for row in rows if self._of[id(row)] is run]
            run["time"] = {"started": min(row["time"]["started"] for row in mine)}
        self.runs.sort(key=lambda run: next(place for place, row in enumerate(rows) if self._of[id(row)] is run))
        for run in self.runs:
            told = json.dumps([run["settings"], run["environment"], run["floors"], run["time"]], sort_keys=True)
            run["id"] = hashlib.sha256(told.encode()).hexdigest()[:16]

    def id_of(self, row: dict) -> str:
        return self._of[id(row)]["id"]

    def _find(self, row: dict) -> dict | None:
        environment, floors = row["environment"], row.get("floors", {})
        for run in self.runs:
            known = run["environment"]
            redis = [one["redis"] for one in (known, environment) if one.get("redis")]
            if (
                _steady(known) == _steady(environment)
                and row.get("run", run["settings"]) == run["settings"]
                and all(one == redis[0] for one in redis)
                and all(run["floors"].get(name, value) == value for name, value in floors.items())
            ):
                known |= {name: value for name, value in environment.items() if name != "redis" or value}
                run["floors"] |= floors
                return run
        return None

    def _begin(self, row: dict) -> dict:
        run = {"schema": 2, "kind": "run", "id": "", "experiment": EXPERIMENT, "settings": row.get("run", {})}
        run |= {"environment": dict(row["environment"]), "floors": dict(row.get("floors", {}))}
        self.runs.append(run)
        return run


def _steady(environment: dict) -> dict:
    return {name: value for name, value in environment.items() if name not in FLUCTUATES}


def convert(row: dict, run: str) -> dict:
    """One row, but for run rows, which schema 1 had none of."""
    new = {"schema": 2, "kind": row["kind"]}
    if row["kind"] == "floor":
        kept = ("id", "status", "reason", "floor", "device", "time")
        return new | {"run": run} | {name: row[name] for name in kept}
    new |= {"experiment": EXPERIMENT, "run": run}
    new |= {name: row[name] for name in ("id", "repetition", "status")}
    new |= {"cause": cause(row), "reason": row["reason"], "params": params(row["params"])}
    if row["kind"] == "capacity":
        return new | {name: row[name] for name in ("slo", "capacity", "cost", "time") if name in row}
    parts = {"chosen": row.get("chosen"), "figures": figures(row), "bounds": bounds(row.get("bound", {}))}
    parts |= {"details": details(row)}
    parts |= {name: row.get(name) for name in ("cost", "machine", "gpu_use")}
    parts |= {"stop": stop(row["stop"]) if "stop" in row else None, "search": row.get("search"), "time": row["time"]}
    return new | {name: value for name, value in parts.items() if value}


def params(old: dict) -> dict:
    def applies(axis: str) -> bool:
        coordinate, members = OWNERS.get(axis, ("queue", (old["queue"],)))
        return old[coordinate] in members

    return {axis: value for axis, value in old.items() if applies(axis)}


def figures(row: dict) -> dict:
    rates = row.get("throughput", {})
    found = {name: rates[name] for name in ("messages_per_second", "bytes_per_second") if name in rates}
    return found | {name: compact(row[name]) for name in ("latency_ns", "service_ns", "send_lag_ns") if name in row}


def compact(distribution: dict) -> dict:
    """Its histogram's buckets by their distances, which take a fifth off a compressed file."""
    old = distribution["histogram"]
    index = old["index"]
    steps = [here - before for before, here in zip([0, *index], index)]
    new = {"steps": steps} | {name: value for name, value in old.items() if name != "index"}
    return distribution | {"histogram": new}


def bounds(old: dict) -> dict:
    found = {}
    for side, figure, value in (
        ("throughput", "messages_per_second", "value_messages_per_second"),
        ("latency", "latency_ns", "value_ns"),
    ):
        if side in old:
            found[figure] = {"floor": old[side]["floor"], "value": old[side][value], "ratio": old[side]["ratio"]}
    return found


def details(row: dict) -> dict:
    found = {"counts": row["counts"]} if "counts" in row else {}
    if "seconds" in row.get("throughput", {}):
        found["throughput_seconds"] = row["throughput"]["seconds"]
    if "driver" in row.get("bound", {}):
        found["driver"] = row["bound"]["driver"]
    if "priorities_ns" in row:
        found["priorities_ns"] = {name: compact(one) for name, one in row["priorities_ns"].items()}
    kept = ("load", "stages_ns", "stages_sampled_every", "clock", "warmup")
    return found | {name: row[name] for name in kept if name in row}


def stop(old: dict) -> dict:
    new = {name: old[name] for name in ("reason", "repetitions", "disturbed") if name in old}
    widths = {"messages_per_second": old.get("throughput_half_width")}
    widths[f"latency_ns.{old.get('percentile')}"] = old.get("latency_half_width")
    widths = {name: value for name, value in widths.items() if value is not None}
    if widths:
        new["half_widths"] = widths
    if "spread" in old:
        new["spread"] = {FIGURES[name]: value for name, value in old["spread"].items()}
    if "unstable" in old:
        new["unstable"] = [FIGURES[name] for name in old["unstable"]]
    return new


def convert_file(file: Path) -> Path:
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    if any(row["schema"] != 1 for row in rows):
        raise SystemExit(f"error: {file}: holds rows that are not of schema 1")
    runs = Runs(rows)
    lines = [*runs.runs, *(convert(row, runs.id_of(row)) for row in rows)]
    text = "".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines)
    target = file.with_name("rows.jsonl.gz")
    target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    (file.parent / "catalogue.json").write_text(catalogue_text(), encoding="utf-8")
    file.unlink()
    return target


def catalogue_text() -> str:
    """One line for each entry, so that a change of it can be read."""
    parts = []
    for name, value in catalogue().items():
        if isinstance(value, list):
            entries = ",\n".join(json.dumps(one, ensure_ascii=False) for one in value)
            parts.append(f"{json.dumps(name)}: [\n{entries}\n]")
        else:
            parts.append(f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(folders: list[str]) -> int:
    if not folders:
        print("usage: convert_schema_1.py DIR…", file=sys.stderr)
        return 2
    for folder in folders:
        for file in sorted(Path(folder).rglob("rows.jsonl")):
            before, target = file.stat().st_size, convert_file(file)
            print(f"{target}: {target.stat().st_size:,} bytes of {before:,}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
