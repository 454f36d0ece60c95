#!/usr/bin/env python3
"""Rewrites result folders of row schema 2 as schema 3: floors become limits with a scope, and the text of a bound becomes
the expression that it stood for. Every expression is evaluated and compared with the value that the row has.

    results/convert_schema_2.py FOLDER…     of each, rows.jsonl(.xz) and catalogue.json, and those of folders within
"""

import json
import lzma
import statistics
import sys
from pathlib import Path

SERVICE = ("redis_",)
HOST = ("host_", "thread_")
GPU = ("launch_", "graph_launch_")


def scope(name: str) -> dict:
    if name.startswith(SERVICE):
        return {"of": "service", "which": "redis"}
    if name.startswith(HOST):
        return {"of": "host"}
    if name.startswith("peer_"):
        return {"of": "link", "which": "gpu0 gpu1"}
    if name.startswith(GPU):
        return {"of": "gpu", "which": "0"}
    return {"of": "link", "which": "host gpu0"}


def given(name: str, value: float) -> dict:
    return {"given": name, "value": value}


def time_of(text: str) -> dict:
    parts = []
    for part in text.split("+"):
        count, _, name = part.rpartition("*")
        parts.append({"product": [float(count), {"floor": name}]} if count else {"floor": name})
    return parts[0] if len(parts) == 1 else {"sum": parts}


def value_of(bound, limits: dict[str, float]) -> float:
    if not isinstance(bound, dict):
        return bound
    if "given" in bound:
        return bound["value"]
    if "floor" in bound:
        return limits[bound["floor"]] / 1e9
    if "ceiling" in bound:
        return limits[bound["ceiling"]]
    (sign, parts), = bound.items()
    values = [value_of(part, limits) for part in parts]
    result = values[0]
    for value in values[1:]:
        result = result + value if sign == "sum" else result * value if sign == "product" else result / value
    return result


def whole(value: float) -> float:
    return round(value) if abs(value - round(value)) < 1e-6 * abs(value) else value


def expression(text: str, figure: str, params: dict, value: float, limits: dict[str, float]):
    """What `text` stood for; `value` is in the figure's unit."""
    if figure == "bytes_per_second" and "payload_bytes" in params:
        payload = given("payload", params["payload_bytes"])
        per_message = expression(text, "messages_per_second", params, value / params["payload_bytes"], limits)
        return {"product": [payload, per_message]}
    if text == "slowest_stage_alone":
        return {"quotient": [1.0, given(text, 1 / value)]}
    if text == "launch_sync_ns+bytes/copy_engine_d2h+bytes/copy_engine_h2d":
        size = given("bytes", params["bytes"] * params["tensors"])
        ways = [{"quotient": [size, {"ceiling": f"copy_engine_{way}_bytes_per_second"}]} for way in ("d2h", "h2d")]
        return {"sum": [{"floor": "launch_sync_ns"}, *ways]}
    workers, batch = (given(name, params.get(name, 1) or 1) for name in ("workers", "batch"))
    if text.startswith("window/"):
        window = given("window", params["producers"] * params["window"])
        return {"quotient": [window, time_of(text.removeprefix("window/"))]}
    if text.startswith("batch/"):
        return {"quotient": [{"product": [workers, batch]}, time_of(text.removeprefix("batch/"))]}
    if text.startswith("batch*"):
        return {"product": [workers, batch, {"ceiling": text.removeprefix("batch*")}]}
    if text.startswith("coalesce*batch*"):
        name = text.removeprefix("coalesce*batch*")
        coalesce = whole(value / (workers["value"] * batch["value"] * limits[name]))
        return {"product": [given("coalesce", coalesce), workers, batch, {"ceiling": name}]}
    if "+" in text and text.endswith("_per_second"):
        add, take = text.split("+")
        results = ("redis_list_push_per_second", "redis_list_pop_per_second") if "sorted_set" in text else (add, take)
        each = {"sum": [{"quotient": [1.0, {"ceiling": name}]} for name in (add, take, *results)]}
        return {"quotient": [given("pack", whole(value * value_of(each, limits))), each]}
    if text.endswith("_bytes_per_second") and figure == "messages_per_second":
        count = whole(limits[text] / value)
        if count != round(count):  # a reading is missing: slots are padded to 16 bytes
            count = 16 * round(count / 16)
        return {"quotient": [{"ceiling": text}, given("bytes", count)]}
    return {"ceiling": text} if text.endswith("_per_second") else time_of(text)


def limits_of(rows: list[dict]) -> dict[tuple, list[float]]:
    """The readings by run and name, from the last row of each."""
    return {
        (row["run"], row["floor"]["name"]): row["floor"].get("readings", [row["floor"]["value"]])
        for row in rows
        if row.get("kind") == "floor" and "value" in row["floor"]
    }


def convert(row: dict, readings: dict, runs: dict[str, dict], faults: list[str]) -> dict:
    kind = row.get("kind")
    row["schema"] = 3
    if kind == "floor":
        old = row.pop("floor")
        row["kind"] = "limit"
        limit = {"name": old["name"], "unit": old.get("unit", "ns"), "scope": scope(old["name"])}
        limit |= {key: old[key] for key in ("value", "least", "greatest", "readings") if key in old}
        row["limit"] = limit | {"method": old.get("description", "")}
    elif kind == "run":
        row["limits"] = row.pop("floors")
        redis = row["environment"].pop("redis", None)
        store = row["environment"].pop("store", None)
        services = {name: state for name, state in (("redis", redis), ("store", store)) if state}
        if services:
            row["environment"]["services"] = services
    elif kind in ("cell", "capacity"):
        rounds = row.pop("floor_rounds", None)
        if rounds is not None:
            row["limit_rounds"] = rounds
        if "flags" in row:
            row["flags"] = ["above_limit" if flag == "above_floor" else flag for flag in row["flags"]]
        limits = dict(runs.get(row["run"], {}).get("limits", {}))
        for (run, name), values in readings.items():
            if run == row["run"]:
                limits[name] = statistics.median(values[:rounds] if rounds else values)
        for figure, bound in (row.get("bounds") or {}).items():
            made = expression(bound.pop("floor"), figure, row["params"], bound["value"], limits)
            scale = 1e9 if figure.endswith("_ns") else 1
            again = value_of(made, limits) * scale
            if abs(again - bound["value"]) > 1e-6 * bound["value"]:
                faults.append(f"{row['id']} {figure}: {made} is {again}, the row says {bound['value']}")
            row["bounds"][figure] = {"bound": made, **bound}
    return row


def convert_rows(file: Path) -> None:
    packed = file.suffix == ".xz"
    text = lzma.decompress(file.read_bytes()) if packed else file.read_bytes()
    rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    if not any(row.get("schema") == 2 for row in rows):
        return
    readings, faults = limits_of(rows), []
    runs = {row["id"]: row for row in rows if row.get("kind") == "run"}
    made = [convert(row, readings, runs, faults) if row.get("schema") == 2 else row for row in rows]
    lines = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n" for row in made).encode()
    file.write_bytes(lzma.compress(lines, preset=9 | lzma.PRESET_EXTREME) if packed else lines)
    print(f"{file}: {len(made)} rows, {len(faults)} differ")
    print("\n".join(faults[:3]), end="\n" if faults else "")


def convert_catalogue(file: Path) -> None:
    document = json.loads(file.read_bytes())
    if document.get("schema") != 2:
        return
    document["schema"] = 3
    document["limits"] = [
        {"name": one["name"], "unit": one.get("unit", ""), "scope": scope(one["name"])["of"],
         "method": one.get("description", "")}
        for one in document.pop("floors")
    ]  # fmt: skip
    file.write_text(json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True) + "\n")
    print(f"{file}: catalogue")


for folder in map(Path, sys.argv[1:]):
    for file in sorted([*folder.rglob("*.jsonl.xz"), *folder.rglob("*.jsonl")]):
        convert_rows(file)
    for file in sorted(folder.rglob("catalogue.json")):
        convert_catalogue(file)
