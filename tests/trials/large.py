"""The shares of their limits that the points of large.json reached, and whether the large copies met their goal.

    feedrate sweep tests/trials/large.json --device cuda --out DIR
    python tests/trials/large.py DIR… --page PAGE        # updates the page's `large` block

The goal was set before the runs: the median of each point with large copies is at least 92 % of the rate of bare copies
in both directions.
"""

import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
from analysis.document import Table, markdown_table  # noqa: E402
from analysis.rows import read  # noqa: E402
from analysis.units import size  # noqa: E402
from block import run  # noqa: E402

GOAL = 0.92
HEADINGS = ["run", "queue + transfer", "messages", "window", "streams", "n", "share of the limit"]
HEADINGS += ["goal of 92 %", "driver-bound"]


def points(folder: Path) -> dict[tuple, list[dict]]:
    """The measured rows of a run by point, sorted by the point's settings."""
    found = defaultdict(list)
    for row in read(folder, "DIR", []):
        if row["kind"] == "cell" and "bounds" in row:
            asked = row["params"]
            key = (asked["workload"], asked["payload_bytes"], asked["queue"], asked["transfer"], asked["window"])
            found[*key, asked.get("streams") or 0].append(row)
    return dict(sorted(found.items()))


def line(name: str, point: tuple, rows: list[dict]) -> list[str]:
    workload, payload, queue, transfer, window, streams = point
    shares = [row["bounds"]["bytes_per_second"]["ratio"] for row in rows]
    share, large = median(shares), workload == "echo"
    bound = sum(row["status"] == "invalid" for row in rows)
    return [
        name,
        queue if transfer == "none" else f"{queue} + {transfer}",
        f"{size(payload)}, {workload}",
        str(window),
        str(streams or "—"),
        str(len(rows)),
        f"{100 * share:.1f} % ({100 * min(shares):.1f}–{100 * max(shares):.1f})",
        ("met" if share >= GOAL else "**missed**") if large else "—",
        f"{bound} of {len(rows)}" if bound else "—",
    ]


def text(folders: list[Path]) -> str:
    rows = [line(folder.name, *point) for folder in folders for point in points(folder).items()]
    missed = {folder.name: sum(row[0] == folder.name and "missed" in row[7] for row in rows) for folder in folders}
    large = {folder.name: sum(row[0] == folder.name and row[7] != "—" for row in rows) for folder in folders}
    said = ", ".join(f"{missed[name]} of {large[name]} in the {name} run" for name in large)
    return (
        f"{markdown_table(Table(HEADINGS, rows, {3, 4, 5, 6}))}\n\nMedians over n repetitions, with the lowest and the "
        f"highest. Points with large copies that missed the goal: {said}."
    )


if __name__ == "__main__":
    sys.exit(run(__doc__, "large", text))
