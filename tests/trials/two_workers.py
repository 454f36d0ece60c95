#!/usr/bin/env python3
"""Summarises the rows of two_workers.sh: the pairs of one worker and two workers, and the median of their ratios.

    tests/trials/two_workers.py ROWS.jsonl[.xz]… [--page PAGE]     # updates the page's `two_workers` block
"""

import json
import lzma
import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))
from block import run  # noqa: E402


def pairs_of(file: Path) -> list[tuple[dict, dict]]:
    """The pairs of alternating runs with one worker and two workers in which both runs are ok."""
    content = file.read_bytes()
    text = lzma.decompress(content) if file.suffix == ".xz" else content
    rows = [json.loads(line) for line in text.splitlines()]
    cells = [row for row in rows if row["kind"] == "cell"]
    return [pair for pair in zip(cells[::2], cells[1::2]) if all(row["status"] == "ok" for row in pair)]


def lines(file: Path) -> list[str]:
    pairs = [[row["figures"]["messages_per_second"] for row in pair] for pair in pairs_of(file)]
    if not pairs:
        sys.exit(f"{file} contains no pair of ok runs")
    found = [f"- one worker {a:.0f}, two workers {b:.0f} messages per second: {b / a:.3f} times" for a, b in pairs]
    counted = f"{len(pairs)} {'pair' if len(pairs) == 1 else 'pairs'}"
    return [*found, f"- {counted}, median {median(two / one for one, two in pairs):.3f} times"]


def text(files: list[Path]) -> str:
    return "\n\n".join("\n".join([f"Rows in {file.name}:", "", *lines(file)]) for file in files)


if __name__ == "__main__":
    sys.exit(run(__doc__, "two_workers", text))
