#!/usr/bin/env python3
"""What far_server.sh measured: medians over its rounds, near, over a wire without delay, and far; and the ratio of far to
near in each round, its median, least and greatest.

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
    print("| queue | figure | near | wire | far | far / near, by round |")
    print("|---|---|---:|---:|---:|---:|")
    for title, payload, lone in POINTS:
        for queue in sorted({key[0] for key in found["near"]}):
            near, wire, far = (found[way].get((queue, payload, lone), []) for way in WAYS)
            if not len(near) == len(wire) == len(far) > 0:  # then a row is its round's
                sys.exit(f"{queue}, {title}: not every round has a row that is ok")
            ratios = sorted(b / a for a, b in zip(near, far))
            figures = " | ".join(f"{median(each):,.0f}" for each in (near, wire, far))
            print(f"| {queue} | {title} | {figures} | {median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) |")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
