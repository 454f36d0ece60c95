#!/usr/bin/env python3
"""What far_server.sh measured: medians over its rounds, near, over a wire without delay, and far.

    tests/trials/far_server.py FOLDER
"""

import json
import lzma
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

WAYS = ("near", "wire", "far")
POINTS = (("messages a second, 64 B", 64, False), ("messages a second, 4 KiB", 4096, False),
          ("lone p50 in µs, 64 B", 64, True), ("lone p50 in µs, 4 KiB", 4096, True))


def figures_of(folder: Path, way: str) -> dict[tuple, list[float]]:
    """By queue, payload and whether messages were alone under way: a figure of each round that is ok."""
    with lzma.open(folder / f"{way}.jsonl.xz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    figures = defaultdict(list)
    for row in rows:
        if row["kind"] != "cell" or row["status"] != "ok":
            continue
        asked = row["params"]
        lone = asked["window"] == 1
        found = row["figures"]["latency_ns"]["p50"] / 1e3 if lone else row["figures"]["messages_per_second"]
        figures[asked["queue"], asked["payload_bytes"], lone].append(found)
    return figures


def main(folder: str) -> None:
    found = {way: figures_of(Path(folder), way) for way in WAYS}
    print("| queue | figure | near | wire | far | far / near | rounds |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for title, payload, lone in POINTS:
        for queue in sorted({key[0] for key in found["near"]}):
            each = [found[way].get((queue, payload, lone), []) for way in WAYS]
            if not all(each):
                print(f"| {queue} | {title} | a way has no row that is ok | | | | |")
                continue
            near, wire, far = map(median, each)
            rounds = min(map(len, each))
            print(f"| {queue} | {title} | {near:,.0f} | {wire:,.0f} | {far:,.0f} | {far / near:.2f} | {rounds} |")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
