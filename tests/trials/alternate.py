"""Compares the rows of tests/trials/alternate.sh in pairs:

    python tests/trials/alternate.py FOLDER… [--page PAGE]    # updates the page's `alternate` block

For each point, the text has the mean ratio new / old of its rate (of its p50 for lone messages and handoff) with the
95 % interval of the mean of the logarithms (Student's t). The files may be compressed (old.jsonl.xz)."""

import json
import lzma
import sys
from pathlib import Path

import numpy as np
from scipy.stats import t as student

sys.path.insert(0, str(Path(__file__).parent))
from block import run  # noqa: E402


def cells(folder: Path, which: str) -> list[dict]:
    """Returns the cells, of schema 1 or later, in the order in which they were measured."""
    file = folder / f"{which}.jsonl"
    text = file.read_text(encoding="utf-8") if file.exists() else lzma.open(f"{file}.xz", "rt").read()
    rows = [json.loads(line) for line in text.splitlines()]
    return [row for row in rows if row["kind"] == "cell"]


# The parameters that name a point, for each experiment.
NAMES = {"feeding": ("queue", "payload_bytes", "window"), "overlap": ("pipeline", "strategy"), "handoff": ("way", "bytes")}


def figure(row: dict) -> tuple[str, float] | None:
    """The figure by which a row is judged (a rate or a time) and its value; None if it was not measured."""
    figures = row.get("figures") or {**row.get("throughput", {}), "latency_ns": row.get("latency_ns")}
    if row["status"] in ("failed", "skipped"):
        return None
    if "handoff_ns" in figures:
        return "p50", figures["handoff_ns"]["p50"]
    if row["params"].get("window") == 1:
        return "p50", figures["latency_ns"]["p50"]
    return "rate", next(figures[name] for name in ("messages_per_second", "items_per_second") if name in figures)


def point_of(row: dict) -> str:
    experiment = row.get("experiment", "feeding")
    return ", ".join([experiment, *(f"{name} {row['params'][name]}" for name in NAMES[experiment])])


def lines(folder: Path) -> list[str]:
    """The comparison of each point, and the pairs that were left out."""
    found = []
    old, new = cells(folder, "old"), cells(folder, "new")
    points: dict[tuple[str, str], list[float]] = {}
    for before, after in zip(old, new, strict=True):
        assert point_of(before) == point_of(after)
        pair = figure(before), figure(after)
        if None in pair:
            found.append(f"- left out: {point_of(after)}: {before['reason'] or after['reason']}")
            continue
        points.setdefault((point_of(after), pair[1][0]), []).append(np.log(pair[1][1] / pair[0][1]))
    for (point, what), logs in points.items():
        half = student.ppf(0.975, len(logs) - 1) * np.std(logs, ddof=1) / np.sqrt(len(logs))
        low, mean, high = np.exp([np.mean(logs) - half, np.mean(logs), np.mean(logs) + half])
        found.append(f"- {point}: {what} new / old {mean:.3f} ({low:.3f} to {high:.3f}), n={len(logs)}")
    return found


def text(folders: list[Path]) -> str:
    return "\n\n".join("\n".join([f"Rows in {folder.name}:", "", *lines(folder)]) for folder in folders)


if __name__ == "__main__":
    sys.exit(run(__doc__, "alternate", text))
