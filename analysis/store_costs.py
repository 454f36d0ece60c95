"""The cost of operations of the tensor store, from the output of `feedrate_micro --benchmark_out` for stores that share
GPU memory in different ways."""

import json
from pathlib import Path

from . import units
from .document import Table, markdown_table
from .errors import BadInput

ALLOWED = "a folder with files from `feedrate_micro --benchmark_filter=store_ --benchmark_out=WAY.json`"
NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
OPERATIONS = {
    "store_get_leased": "get, if this process already has a lease",
    "store_get_mapped": "get and release through the daemon, memory already mapped",
    "store_get_first": "get and release of 64 MiB, memory not yet mapped",
    "store_create_delete/4096": "create and delete 4 KiB",
    "store_create_delete/1048576": "create and delete 1 MiB",
    "store_create_delete_by_list/1": "the same through the Redis list, one at a time",
    "store_create_delete_by_list/32": "the same through the Redis list, 32 at a time, per tensor",
    "store_list/100000": "list 100,000 tensors of 4 KiB",
    "store_publish_and_see": "publish a version and see it, in one thread",
}


def store_costs_text(folder: str) -> str:
    """One row per operation, one column per way to share memory."""
    ways = _read(Path(folder))
    found = {name for costs in ways.values() for name in costs}
    names = [name for name in OPERATIONS if name in found]
    rows = [[OPERATIONS[name], *(units.nanoseconds(costs.get(name)) for costs in ways.values())] for name in names]
    return markdown_table(Table(["operation", *ways], rows, set(range(1, 1 + len(ways)))))


def _read(folder: Path) -> dict[str, dict[str, float]]:
    """The operations' mean times in ns by way; ways with the most operations come first."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise BadInput("DIR", folder, "has no *.json", ALLOWED)
    ways = {}
    for file in files:
        try:
            ways[file.stem] = dict(_cost(one) for one in json.loads(file.read_bytes())["benchmarks"])
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput("DIR", folder, f"{file.name} is not such a file ({error!r})", ALLOWED) from error
    return dict(sorted(ways.items(), key=lambda way: (-len(way[1]), way[0])))


def _cost(one: dict) -> tuple[str, float]:
    parts = [part for part in one["name"].split("/") if part != "real_time" and not part.startswith("iterations:")]
    rate = one.get("items_per_second")
    return "/".join(parts), 1e9 / rate if rate else one["real_time"] * NANOSECONDS[one["time_unit"]]
