"""What a row that counts warns of, by code. Such rows are in every median and every range, and marked."""

from collections import Counter
from collections.abc import Iterable

import pandas as pd

from .catalogue import Experiment

LATE, UNSTEADY, ABOVE_LIMIT = TOLD = ("late_generator", "unsteady", "above_limit")
DISTURBED = "disturbed"  # no row tells this itself: its point does
CODES = (*TOLD, DISTURBED)
LIMITED = "driver_bound"  # the cause of a row whose rate is near what the load generator alone reaches
ABOVE = 1.05  # of a limit: a rate beyond it is more than noise, so the limit was measured too low or the rate is wrong
MARKS = {LATE: "†", UNSTEADY: "‡", ABOVE_LIMIT: "§", DISTURBED: "¶"}
SAID = {
    LATE: "with a late load generator, whose own lag is in the response times",
    UNSTEADY: "unsteady: their rate still changed at the end of the warm-up",
    ABOVE_LIMIT: f"with a figure more than {100 * (ABOVE - 1):.0f} % better than its limit",
    DISTURBED: "on a machine that was disturbed in every repetition of the point",
}


def of(row: dict, experiment: Experiment) -> list[str]:
    """A row's codes: those it tells, else what older rows tell in other places."""
    if "flags" in row:
        return [code for code in TOLD if code in row["flags"]]
    bounds = row.get("bounds") or {}
    rates = [bounds[name]["ratio"] for name, figure in experiment.figures.items() if figure.higher and name in bounds]
    found = {
        LATE: row.get("cause") == "generator",
        UNSTEADY: ((row.get("details") or {}).get("warmup") or {}).get("steady") is False,
        ABOVE_LIMIT: any(ratio > ABOVE for ratio in rates),
    }
    return [code for code in TOLD if found[code]]


def having(cells: pd.DataFrame, code: str) -> pd.Series:
    """Which cells have it."""
    return cells["flags"].map(lambda found: code in found).astype(bool)


def counts(every: Iterable[list[str]]) -> dict[str, int]:
    """How many rows have each code."""
    found = Counter(code for codes in every for code in codes)
    return {code: found[code] for code in CODES if found[code]}


def mark(point) -> str:
    """The marks of a point, to stand behind its figures: ' †‡'. `flags`: rows by code."""
    marks = "".join(MARKS[code] for code in CODES if code in point["flags"])
    return f" {marks}" if marks else ""


def limited(cells: pd.DataFrame) -> pd.Series:
    """Which cells say how much there is at least, for the load generator was the limit. They are the fast ones: a
    median without them is of the slow ones."""
    return (cells["status"] == "invalid") & (cells["cause"] == LIMITED)


def counting(cells: pd.DataFrame) -> pd.Series:
    """Which cells figures are made of: those that are ok, those that the load generator limited, and the disturbed ones
    of points that have no other."""
    return (cells["status"] == "ok") | limited(cells) | having(cells, DISTURBED)


def legend(cells: pd.DataFrame) -> str:
    """What the marks mean, with the number of rows; empty where no row that counts has one."""
    some = cells[counting(cells) | (cells["status"] == "unsustainable")]
    found = counts(some["flags"])
    return " ".join(f"{MARKS[code]} {count} of {len(some)} rows {SAID[code]}." for code, count in found.items())


def limited_said(cells: pd.DataFrame) -> str:
    """How many rows the load generator limited, and what that makes of a figure; empty where it limited none."""
    bound, some = int(limited(cells).sum()), int(counting(cells).sum())
    if not bound:
        return ""
    return (
        f"Of {bound} of {some} rows the load generator was the limit, not the queue: they count, and a figure with one "
        "of them is “at least” (≥), a time “at most” (≤)."
    )
