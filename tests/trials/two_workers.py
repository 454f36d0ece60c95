#!/usr/bin/env python3
"""What two_workers.sh measured: its pairs of one worker and two, and the median of their ratios.

    tests/trials/two_workers.py ROWS.jsonl[.xz]
"""

import json
import lzma
import sys
from pathlib import Path
from statistics import median


def rates(file: Path) -> list[float]:
    """Messages a second of the runs that are ok, in their order: one worker, two workers, one …"""
    content = file.read_bytes()
    text = lzma.decompress(content) if file.suffix == ".xz" else content
    rows = [json.loads(line) for line in text.splitlines()]
    return [row["figures"]["messages_per_second"] for row in rows if row["kind"] == "cell" and row["status"] == "ok"]


def main(file: str) -> None:
    found = rates(Path(file))
    pairs = list(zip(found[::2], found[1::2]))
    if not pairs:
        sys.exit(f"{file} holds no pair of runs that are ok")
    for one, two in pairs:
        print(f"one worker {one:.0f}, two workers {two:.0f} messages a second: {two / one:.3f} times")
    print(f"median of {len(pairs)} pairs: {median(two / one for one, two in pairs):.3f} times")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
