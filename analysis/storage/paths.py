"""The path that the bytes of each point took: engine, mode and file system, what the page cache held, and the bytes
that the kernel counted next to those requested."""

import math

import pandas as pd

from .. import figure_text, flags, stats, units
from ..document import Block, Table, Text
from ..load import Results
from . import checks
from . import points as storage

NUMBERS = ("resident_before", "resident_after")
SUFFIX = "_bytes"  # of counters
REQUESTED = "requested_bytes"
READ = "read_bytes"
NAMES = {READ: "read from the drive", "written_bytes": "written to the drive"}
NOTE = (
    "Medians of the rows of each point. “Resident”: the share of the files' pages in the page cache before and after, "
    "by mincore(). “Requested”: bytes that the engine was asked to move. “Read from the drive” and “written to the "
    "drive”: what the kernel counted for the process in /proc/self/io; without O_DIRECT, a write counts when it makes "
    "a page of the page cache dirty. “To doubt”: limits and counters that at least one row of the point contradicts, by "
    f"more than {100 * (flags.ABOVE - 1):.0f} % for a rate and more than {100 * checks.ABSENT:.0f} % for bytes and pages."
)


def blocks(results: Results) -> list[Block]:
    """The table and its note; empty if no row counts."""
    measured = storage.described(results, stats.points(results))
    if measured.empty:
        return []
    codes, counters = checks.of_cells(results.cells), _counters(results)
    rows = [_row(results, point, counters, codes.loc[point["members"]]) for _, point in measured.iterrows()]
    named = [NAMES.get(one, one.removesuffix(SUFFIX).replace("_", " ")) for one in counters]
    columns = ["engine", "task", "block", "mode", "file system", "resident", "requested", *named, "to doubt"]
    return [Table(columns, rows, {2, *range(5, len(columns) - 1)}), Text(NOTE, "note")]


def _counters(results: Results) -> list[str]:
    """The counters in the rows in addition to the bytes requested, in order of appearance, without those that are
    always 0; the bytes read from the drive are always among them, because 0 is evidence."""
    paths = results.cells["path"]
    named = dict.fromkeys(name for path in paths for name in (*NAMES, *path) if name.endswith(SUFFIX))
    some = {name for path in paths for name, value in path.items() if name.endswith(SUFFIX) and value}
    return [name for name in named if name != REQUESTED and (name == READ or name in some)]


def _row(results: Results, point: pd.Series, counters: list[str], codes: pd.Series) -> list[str]:
    paths = list(results.cells.loc[point["members"], "path"])
    rate = f"{units.number(point['rate'])} due per second" if point["arrivals"] != "closed" else ""
    before, after = (units.percent(_median(paths, name)) for name in NUMBERS)
    load = "\n".join(part for part in (storage.setting(results, point), rate) if part)
    return [
        f"{point['variant']}\n{load}".strip() + flags.mark(point),
        point["task"],
        units.size(point["block_bytes"]),
        _words(paths, "mode", with_rest=True),
        _words(paths, "file_system"),
        f"{before} → {after}",
        *(_bytes(_median(paths, name)) for name in (REQUESTED, *counters)),
        "\n".join(checks.words(code for some in codes for code in some)) or units.NOTHING,
    ]


def _bytes(value: float) -> str:
    return units.of_unit("B", {"B": "si"})(value)


def _median(paths: list[dict], name: str) -> float:
    known = [path[name] for path in paths if name in path]
    return float(pd.Series(known).median()) if known else math.nan


def _words(paths: list[dict], name: str, with_rest: bool = False) -> str:
    """The distinct values of a key; with the engine's further keys on the lines below."""
    lines = list(dict.fromkeys(path[name] for path in paths if name in path)) or [units.NOTHING]
    if with_rest:
        rest = {key: path[key] for path in paths for key in path if isinstance(path[key], str)}
        lines += [f"{key.replace('_', ' ')} {text}" for key, text in rest.items() if key not in ("mode", "file_system")]
    return "\n".join(lines)
