"""Compares the rows of tests/trials/alternate.sh in pairs: python tests/trials/alternate.py FOLDER.

Prints, for each point, the mean ratio new / old of its rate (a lone message: of its p50) with the 95 % interval of
the mean of the logarithms (Student's t). The files may be compressed (old.jsonl.xz)."""

import json
import lzma
import sys
from pathlib import Path

import numpy as np
from scipy.stats import t as student


def cells(folder: Path, which: str) -> list[dict]:
    """Of schema 1 or later, in the order in which they were measured."""
    file = folder / f"{which}.jsonl"
    text = file.read_text(encoding="utf-8") if file.exists() else lzma.open(f"{file}.xz", "rt").read()
    rows = [json.loads(line) for line in text.splitlines()]
    return [row for row in rows if row["kind"] == "cell"]


def figure(row: dict) -> float:
    figures = row.get("figures") or {**row["throughput"], "latency_ns": row["latency_ns"]}
    return figures["latency_ns"]["p50"] if row["params"]["window"] == 1 else figures["messages_per_second"]


def main(folder: Path) -> None:
    old, new = cells(folder, "old"), cells(folder, "new")
    points: dict[tuple, list[float]] = {}
    for before, after in zip(old, new, strict=True):
        params = after["params"]
        point = tuple(params[name] for name in ("queue", "payload_bytes", "window"))
        assert point == tuple(before["params"][name] for name in ("queue", "payload_bytes", "window"))
        points.setdefault(point, []).append(np.log(figure(after) / figure(before)))
    for (queue, payload, window), logs in points.items():
        half = student.ppf(0.975, len(logs) - 1) * np.std(logs, ddof=1) / np.sqrt(len(logs))
        low, mean, high = np.exp([np.mean(logs) - half, np.mean(logs), np.mean(logs) + half])
        what = "p50" if window == 1 else "rate"
        print(f"{queue}, {payload} B, window {window}: {what} new / old {mean:.3f} ({low:.3f} to {high:.3f}), n={len(logs)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
