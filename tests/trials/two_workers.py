#!/usr/bin/env python3
"""Summarises the rows of two_workers.sh: the pairs of one worker and two workers, and the median of their ratios.

    tests/trials/two_workers.py ROWS.jsonl[.xz]
"""

import json
import lzma
import sys
from pathlib import Path
from statistics import median


def pairs_of(file: Path) -> list[tuple[dict, dict]]:
    """The pairs of alternating runs with one worker and two workers in which both runs are ok."""
    content = file.read_bytes()
    text = lzma.decompress(content) if file.suffix == ".xz" else content
    rows = [json.loads(line) for line in text.splitlines()]
    cells = [row for row in rows if row["kind"] == "cell"]
    return [pair for pair in zip(cells[::2], cells[1::2]) if all(row["status"] == "ok" for row in pair)]


def main(file: str) -> None:
    pairs = [[row["figures"]["messages_per_second"] for row in pair] for pair in pairs_of(Path(file))]
    if not pairs:
        sys.exit(f"{file} contains no pair of ok runs")
    for one, two in pairs:
        print(f"one worker {one:.0f}, two workers {two:.0f} messages per second: {two / one:.3f} times")
    print(f"{len(pairs)} {'pair' if len(pairs) == 1 else 'pairs'}, median {median(two / one for one, two in pairs):.3f} times")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
