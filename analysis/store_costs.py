"""What operations of the tensor store cost, from what `feedrate_micro --benchmark_out` wrote of stores that share a GPU's
memory in different ways."""

import json
from pathlib import Path

from . import units
from .document import Table, markdown_table
from .errors import BadInput
from .marked import publish

ALLOWED = "a folder with what `feedrate_micro --benchmark_filter=store_ --benchmark_out=WAY.json` wrote"
NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
OPERATIONS = {
    "store_get_leased": "get, when this process has a lease already",
    "store_get_mapped": "get and let go, through the daemon, in memory mapped before",
    "store_get_first": "get and let go of 64 MiB that was not mapped",
    "store_create_delete/4096": "create and delete 4 KiB",
    "store_create_delete/1048576": "create and delete 1 MiB",
    "store_create_delete_by_list/1": "the same by the Redis list, one by one",
    "store_create_delete_by_list/32": "the same by the Redis list, 32 at a time, each",
    "store_list/100000": "list of 100,000 tensors of 4 KiB",
    "store_publish_and_see": "publish a version and look at it, in one thread",
}


def write_store_costs(folder: str, page: str | None, check: bool) -> int:
    """Prints the table, or puts it into the page's block `costs`. Returns the exit code."""
    return publish(lambda: store_costs_text(folder), page, "--page", "costs", check, folder)


def store_costs_text(folder: str) -> str:
    """A line an operation, a column a way."""
    ways = _read(Path(folder))
    found = {name for costs in ways.values() for name in costs}
    names = [name for name in OPERATIONS if name in found]
    rows = [[OPERATIONS[name], *(units.nanoseconds(costs.get(name)) for costs in ways.values())] for name in names]
    return markdown_table(Table(["operation", *ways], rows, set(range(1, 1 + len(ways)))))


def _read(folder: Path) -> dict[str, dict[str, float]]:
    """By way the operations' mean times in ns, those first that tell most."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise BadInput("DIR", folder, "holds no *.json", ALLOWED)
    ways = {}
    for file in files:
        try:
            ways[file.stem] = dict(_cost(one) for one in json.loads(file.read_bytes())["benchmarks"])
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput("DIR", folder, f"{file.name} is none ({error!r})", ALLOWED) from error
    return dict(sorted(ways.items(), key=lambda way: (-len(way[1]), way[0])))


def _cost(one: dict) -> tuple[str, float]:
    name = "/".join(part for part in one["name"].split("/") if part != "real_time" and not part.startswith("iterations:"))
    rate = one.get("items_per_second")
    return name, 1e9 / rate if rate else one["real_time"] * NANOSECONDS[one["time_unit"]]
