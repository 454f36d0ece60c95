"""Warnings of rows that count, by code. Such rows are part of every median and range and carry a mark."""

from collections import Counter
from collections.abc import Iterable

import pandas as pd

from .catalogue import Experiment

LATE, UNSTEADY, ABOVE_LIMIT = STORED_CODES = ("late_generator", "unsteady", "above_limit")
CONTRADICTED = "contradicted"  # derived from a row by its experiment's section, not stored in it
DISTURBED = "disturbed"  # derived from all rows of a point, not stored in a row
CODES = (*STORED_CODES, CONTRADICTED, DISTURBED)
LIMITED = "driver_bound"  # the cause of a row whose rate is near the rate of the load generator alone
ABOVE = 1.05  # ratio to a limit; a higher ratio is not noise, so either the limit or the rate is wrong
MARKS = {LATE: "†", UNSTEADY: "‡", ABOVE_LIMIT: "§", CONTRADICTED: "‖", DISTURBED: "¶"}
LEGENDS = {
    LATE: "had a late load generator, so their response times include its lag",
    UNSTEADY: "were unsteady: their rate was still changing at the end of the warm-up",
    ABOVE_LIMIT: f"have a figure more than {100 * (ABOVE - 1):.0f} % better than its limit",
    CONTRADICTED: "contradict their own data",
    DISTURBED: "belong to points with only disturbed repetitions",
}


def of(row: dict, experiment: Experiment) -> list[str]:
    """A row's codes: its `flags`, or for older rows the equivalent fields."""
    if "flags" in row or "changing" in ((row.get("details") or {}).get("warmup") or {}):
        return [code for code in STORED_CODES if code in row.get("flags", ())]
    bounds = row.get("bounds") or {}
    rates = [bounds[name]["ratio"] for name, figure in experiment.figures.items() if figure.higher and name in bounds]
    found = {
        LATE: row.get("cause") == "generator",
        UNSTEADY: ((row.get("details") or {}).get("warmup") or {}).get("steady") is False,
        ABOVE_LIMIT: any(ratio > ABOVE for ratio in rates),
    }
    return [code for code in STORED_CODES if found[code]]


def having(cells: pd.DataFrame, code: str) -> pd.Series:
    """A mask of the cells that have the code."""
    return cells["flags"].map(lambda found: code in found).astype(bool)


def counts(every: Iterable[list[str]]) -> dict[str, int]:
    """The number of rows with each code."""
    found = Counter(code for codes in every for code in codes)
    return {code: found[code] for code in CODES if found[code]}


def mark(point) -> str:
    """The marks of a point, to append to its figures: ' †‡'. `point["flags"]` holds the number of rows by code."""
    marks = "".join(MARKS[code] for code in CODES if code in point["flags"])
    return f" {marks}" if marks else ""


def limited(cells: pd.DataFrame) -> pd.Series:
    """A mask of the cells that the load generator limited. Their figures are lower bounds. They are the fast cells, so a
    median without them would describe only the slow ones."""
    return (cells["status"] == "invalid") & (cells["cause"] == LIMITED)


def counting(cells: pd.DataFrame) -> pd.Series:
    """A mask of the cells that count: cells that are ok, cells that the load generator limited, and disturbed cells of
    points that have no others."""
    return (cells["status"] == "ok") | limited(cells) | having(cells, DISTURBED)


def legend(cells: pd.DataFrame) -> str:
    """The meaning of the marks, with the number of rows; empty if no row that counts has a mark."""
    some = cells[counting(cells) | (cells["status"] == "unsustainable")]
    found = counts(some["flags"])
    return " ".join(f"{MARKS[code]} {count} of {len(some)} rows {LEGENDS[code]}." for code, count in found.items())


def limited_sentence(cells: pd.DataFrame) -> str:
    """The number of rows that the load generator limited, and its effect on figures; empty if there are none."""
    bound, some = int(limited(cells).sum()), int(counting(cells).sum())
    if not bound:
        return ""
    return (
        f"In {bound} of {some} rows the limit was the load generator, not the queue. These rows count, and they turn a "
        "rate into a lower bound (“at least”, ≥) and a time into an upper bound (“at most”, ≤)."
    )
