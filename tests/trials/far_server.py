#!/usr/bin/env python3
"""Summarises the rows of far_server.sh: medians over the rounds for near, wire (no delay) and far; the ratios of far to
near and of far to wire per round, as median, minimum and maximum; and the number of flagged rows.

    tests/trials/far_server.py FOLDER [--page PAGE]      # updates the page's `far_server` block
"""

import json
import lzma
import sys
from collections import Counter
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))
from block import run  # noqa: E402

WAYS = ("near", "wire", "far")
POINTS = (("messages per second, 64 B", 64, False), ("messages per second, 4 KiB", 4096, False),
          ("lone p50 in µs, 64 B", 64, True), ("lone p50 in µs, 4 KiB", 4096, True))


def rows_of(folder: Path, way: str) -> list[dict]:
    with lzma.open(folder / f"{way}.jsonl.xz", "rt") as lines:
        return [json.loads(line) for line in lines]


def figures_of(rows: list[dict]) -> dict[tuple, dict[int, float]]:
    """The figure of each round with an ok row, by queue, payload and whether only one message was in flight."""
    rounds = {row["id"]: number for number, row in enumerate(row for row in rows if row["kind"] == "run")}
    figures: dict[tuple, dict[int, float]] = {}
    for row in rows:
        if row["kind"] != "cell" or row["status"] != "ok":
            continue
        asked = row["params"]
        lone = asked["window"] == 1
        found = row["figures"]["latency_ns"]["p50"] / 1e3 if lone else row["figures"]["messages_per_second"]
        figures.setdefault((asked["queue"], asked["payload_bytes"], lone), {})[rounds[row["run"]]] = found
    return figures


def ratio(of: dict[int, float], to: dict[int, float]) -> str:
    by_round = sorted(of[number] / to[number] for number in of.keys() & to.keys())
    return f"{median(by_round):.2f} ({by_round[0]:.2f} to {by_round[-1]:.2f})"


def text(folders: list[Path]) -> str:
    [folder] = folders
    rows = {way: rows_of(folder, way) for way in WAYS}
    found = {way: figures_of(rows[way]) for way in WAYS}
    lines = ["| queue | figure | near | wire | far | far / near, by round | far / wire, by round |"]
    lines.append("|---|---|---:|---:|---:|---:|---:|")
    for title, payload, lone in POINTS:
        for queue in sorted({key[0] for key in found["near"]}):
            near, wire, far = (found[way].get((queue, payload, lone), {}) for way in WAYS)
            if not near.keys() & wire.keys() & far.keys():
                sys.exit(f"{queue}, {title}: no round has ok rows for near, wire and far")
            figures = " | ".join(f"{median(each.values()):,.0f}" for each in (near, wire, far))
            lines.append(f"| {queue} | {title} | {figures} | {ratio(far, near)} | {ratio(far, wire)} |")
    cells = [row for way in WAYS for row in rows[way] if row["kind"] == "cell"]
    used = [row for row in cells if row["status"] == "ok"]
    flags = Counter(flag for row in used for flag in row.get("flags", []))
    said = ", ".join(f"{number} `{flag}`" for flag, number in sorted(flags.items()))
    return "\n".join([*lines, "", f"Rows used: {len(used)} of {len(cells)}. Flagged: {said}."])


if __name__ == "__main__":
    sys.exit(run(__doc__, "far_server", text))
