"""Prints the figures measured by python/benchmarks/ring.py as a table: python python/benchmarks/table.py ROWS.jsonl

With `--page PAGE.md`, it rewrites the `python` block of that page. With `--check` as well, it only reports whether the
block would change (exit code 1). Run it from the root of the clone.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from analysis.document import Table, markdown_table  # noqa: E402
from analysis.marked import rewrite  # noqa: E402

Rows = list[dict]


def median(rows: Rows, key: str) -> float:
    return statistics.median(row[key] for row in rows)


def all_of(rows: Rows, text: Callable[[dict], str]) -> str:
    return ", ".join(text(row) for row in rows)


def lines(found: dict[str, Rows]) -> list[list[str]]:
    """Returns one row per figure: name, median and all runs. Missing or failed measurements are reported in the row."""
    table = []

    def add(name: str, what: str, best: Callable[[Rows], str], each: Callable[[dict], str]) -> None:
        rows = found.get(name, [])
        errors = [row["error"] for row in rows if "error" in row]
        valid = [row for row in rows if "error" not in row]
        values = all_of(valid, each) + "".join(f" **failed: {error}**" for error in errors)
        table.append([what, best(valid) if valid else "—", values or "not measured"])

    def us(key: str) -> Callable[[Rows], str]:
        return lambda rows: f"{median(rows, key):.2f} µs"

    def rate(unit: float, name: str, key: str, digits: int = 0) -> Callable[[Rows], str]:
        return lambda rows: f"{median(rows, key) / unit:.{digits}f} {name}/s"

    add("call", "`ring.call`, 64 B, one at a time, p50", us("p50_us"),
        lambda row: f"{row['p50_us']:.2f} µs (C++: {row['cpp_lone_p50_us']:.2f}, ratio {row['p50_us'] / row['cpp_lone_p50_us']:.2f})")
    add("views", "blocks of 64 B, all bytes written and compared", rate(1e6, "M", "messages_per_second", 1),
        lambda row: f"{row['messages_per_second'] / 1e6:.1f} M/s")
    add("asyncio", "asyncio, 1,000 tasks", rate(1e3, "k", "round_trips_per_second"),
        lambda row: f"{row['round_trips_per_second'] / 1e3:.0f} k/s")
    add("gpuqueue", "`gpuqueue`, one at a time", rate(1e3, "k", "round_trips_per_second"),
        lambda row: f"{row['round_trips_per_second'] / 1e3:.0f} k/s, p50 {row['p50_us']:.2f} µs")
    add("views, long", "10⁸ messages in blocks, none lost or wrong", rate(1e6, "M", "messages_per_second", 1),
        lambda row: f"{row['messages']:,}: resident {row['rss_started_mib']:.1f} MiB at first, {row['rss_after_mib']:.1f} MiB after")
    without = found.get("watchdog, 3600 s", [])
    for stay in ("1", "0.1"):
        name = f"watchdog, {stay} s"
        for row, other in zip(found.get(name, []), without):
            if "error" not in row and "error" not in other:
                row["share"] = row["messages_per_second"] / other["messages_per_second"]
        found[name] = [row for row in found.get(name, []) if "share" in row or "error" in row]
        add(name, f"rate of blocks if a busy ring leaves the GPU every {stay} s, relative to one that stays",
            lambda rows: f"{100 * median(rows, 'share'):.0f} %", lambda row: f"{100 * row['share']:.0f} %")
    add("own kernel", "first call of a source, compiled", lambda rows: f"{median(rows, 'first_call_s'):.2f} s",
        lambda row: f"{row['first_call_s']:.2f} s")
    add("own kernel", "the same, from the cache", lambda rows: f"{1e3 * median(rows, 'from_the_cache_s'):.0f} ms",
        lambda row: f"{1e3 * row['from_the_cache_s']:.0f} ms")
    sizes = sorted({row["bytes"] for row in found.get("tensors", []) if "error" not in row})
    least = f" of {sizes[0] >> 10} KiB" if sizes else ""  # a median over all sizes would describe none of them
    add("tensors", f"a GPU tensor{least} by address, p50",
        lambda rows: f"{median([row for row in rows if row['bytes'] == sizes[0]], 'p50_us'):.0f} µs",
        lambda row: f"{row['bytes'] >> 10} KiB: {row['p50_us']:.0f} µs (over the host {row['over_the_host_p50_us']:.0f})")
    for name, how in (("beside torch", "by the watchdog"), ("beside torch, parked()", "in `parked()`")):
        add(name, f"PyTorch's longest round beside a busy ring, {how}", lambda rows: f"{1e3 * median(rows, 'longest_round_s'):.0f} ms",
            lambda row: f"{row['rounds']} rounds in {row['seconds']:.0f} s, {row['answered']:,} messages in that time")
    return table  # fmt: skip


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("rows", type=Path)
    options.add_argument("--page")
    options.add_argument("--check", action="store_true")
    chosen = options.parse_args()
    found: dict[str, Rows] = {}
    for line in chosen.rows.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["figure"], []).append(row)
    text = markdown_table(Table(["figure", "median", "each run"], lines(found)))
    first = next(iter(found.values()))[0]
    text += f"\n\nRevision `{first['revision']}`, Python {first['python']}, NumPy {first['numpy']}."
    if chosen.page is None:
        print(text)
        return 0
    return rewrite(chosen.page, "--page", "python", lambda: text, chosen.check, str(chosen.rows))


if __name__ == "__main__":
    sys.exit(main())
