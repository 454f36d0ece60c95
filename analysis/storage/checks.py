"""Figures to doubt: rates above a limit, and rows that contradict themselves.

Little's law: the mean number of requests in flight is their rate times their mean time in flight. A thread has at most
2 × depth blocks in flight, because further ones are moved while the ones that have arrived are checked. Hence the rate
is at most 2 × depth × threads / mean time. The law holds for the mean, not for the median: if most blocks are slower
than the mean, the median would accuse a correct row. The law is not exact at the start and end of a phase; the
allowance of 5 % covers this.
"""

import math
from collections.abc import Iterable

import pandas as pd

from .. import flags
from ..load import Results

IN_FLIGHT = 2  # blocks in flight per unit of depth, unless the device's threads request them, each one block
PRESENT, ABSENT = 0.99, 0.01  # shares that count as all and as none, as in the experiment
LITTLE, FEWER, MORE, CACHED, EVICTED = "little", "fewer", "more", "cached", "evicted"
FIO, LINK = "fio", "link"
# By code: what the path table says about a point, and what a sentence says about rows.
WORDS = {
    FIO: (
        "rate above fio's",
        "a rate more than 5 % above that of fio with the same job; fio's reading is too low, or the drive changed",
    ),
    LINK: (
        "rate above the copy engine's",
        "a rate more than 5 % above that of the copy engine; its reading is too low, or not all blocks were copied",
    ),
    LITTLE: (
        "rate above Little's law",
        "a rate more than 5 % above Little's law (2 × depth × threads / mean time in flight); the rate or the times "
        "are wrong",
    ),
    FEWER: (
        "the drive moved fewer bytes than requested",
        "fewer bytes from or to the drive, by /proc/self/io, than were requested, although the page cache should not "
        "hold the blocks; another cache may have served them",
    ),
    MORE: (
        "bytes came from the drive",
        "bytes from the drive, by /proc/self/io, although the page cache should hold all blocks",
    ),
    CACHED: (
        "O_DIRECT left pages in the page cache",
        "pages in the page cache after reads with O_DIRECT; the file system may have fallen back to cached reads",
    ),
    EVICTED: (
        "the page cache lost pages",
        "a page cache that no longer held all blocks at the end",
    ),
}  # fmt: skip


def contradictions(row: dict) -> list[str]:
    """The codes of the contradictions within a row, in the order of WORDS; empty if it has no figures."""
    if not row.get("figures"):
        return []
    found = {LITTLE} if _beyond_little(row) else set()
    return [code for code in WORDS if code in found | _of_path(row)]


def _beyond_little(row: dict) -> bool:
    allowed = little(row)
    return not math.isnan(allowed) and _rate(row["figures"]) > flags.ABOVE * allowed


def _rate(figures: dict) -> float:
    """The blocks per second that `latency_ns` describes: not those found in the page cache of the GPU."""
    return figures.get("cache_loads_per_second", figures.get("blocks_per_second"))


def little(row: dict) -> float:
    """The highest rate in blocks per second that Little's law allows for the row's mean time in flight (`service_ns`
    under open load, whose requests wait before they are submitted; otherwise `latency_ns`); NaN without these times.
    The allowance for the phase's ends: requests that were in flight at its beginning count with their entire time,
    which is at most the largest one; with lifetime `pass`, the first blocks of a pass have no time."""
    figures, point = row["figures"], row["params"]
    times, rate = figures.get("service_ns") or figures.get("latency_ns"), _rate(figures)
    if not times or not rate or not times["mean"] or not times["samples"]:
        return math.nan
    timed = times["samples"] * times.get("sampled_every", 1)
    if point.get("lifetime") == "pass":
        moved = ((row.get("details") or {}).get("path") or {}).get("requested_bytes", math.nan) / point["block_bytes"]
        ends = max(1.0, moved / timed)
    else:
        ends = 1 + times["max"] / 1e9 * rate / timed
    path = (row.get("details") or {}).get("path") or {}
    window = float(path["device_threads"]) if "device_threads" in path else IN_FLIGHT * point["depth"]
    return window * point["threads"] / (times["mean"] / 1e9) * ends


def _of_path(row: dict) -> set[str]:
    """Contradictions between what was requested and what the kernel counted. Without O_DIRECT, a write ends in the page
    cache, so nothing follows from the counter."""
    point, path = row["params"], (row.get("details") or {}).get("path") or {}
    requested, direct, reads = path.get("requested_bytes"), point["direct"] == "yes", point["operation"] == "read"
    counted = path.get("read_bytes" if reads else "written_bytes")
    if not requested or counted is None:
        return set()
    moved, after = counted / requested, path.get("resident_after")
    found = set()
    if direct or (reads and point["residency"] == "cold"):
        found |= {FEWER} if moved < PRESENT else set()
    elif reads:
        found |= {MORE} if moved > ABSENT else set()
        found |= {EVICTED} if after is not None and after < PRESENT else set()
    if direct and reads and after is not None and after > ABSENT:
        found.add(CACHED)
    return found


def of_cells(cells: pd.DataFrame) -> pd.Series:
    """The codes of each cell: its contradictions, and the limit that its rate exceeds."""
    ceilings, above = cells["bytes_per_second_ceiling"], cells["bytes_per_second_ratio"] > flags.ABOVE
    over = [
        [FIO] if exceeds and name.startswith("fio_") else [LINK] if exceeds and name.startswith("copy_engine_") else []
        for name, exceeds in zip(ceilings, above)
    ]
    return pd.Series([[*some, *known] for some, known in zip(over, cells["contradictions"])], cells.index, dtype=object)


def words(codes: Iterable[str]) -> list[str]:
    """What the path table says about a point whose rows have these codes."""
    known = set(codes)
    return [short for code, (short, _) in WORDS.items() if code in known]


def sentences(results: Results) -> list[str]:
    """One sentence per code, with the number of rows and their engines; empty if there is nothing to doubt."""
    cells = results.cells[flags.counting(results.cells) | (results.cells["status"] == "unsustainable")]
    if cells.empty or "bytes_per_second_ceiling" not in cells:
        return []
    codes, found = of_cells(cells), []
    for code, (_, long) in WORDS.items():
        some = cells[codes.map(lambda known: code in known).astype(bool)]
        if len(some):
            names = ", ".join(some.sort_values("rank")["variant"].unique())
            verb = "has" if len(some) == 1 else "have"
            found.append(f"To doubt: {len(some)} of {len(cells)} rows ({names}) {verb} {long}.")
    return found
