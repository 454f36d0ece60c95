"""How the measurement itself went: what disturbed it, and whether it became as precise as was asked."""

import pandas as pd

from . import flags, units
from .document import Block, Text
from .load import Results

ASKED = {
    "precise": "met it",
    "most repetitions": "ended at the most repetitions",
    "time limit": "ended at the time limit",
    "not ok": "had no repetition that is ok",
}


def blocks(results: Results) -> list[Block]:
    """A short paragraph; nothing where the rows tell of neither."""
    said = [*_flagged(results.cells), *_disturbed(results.cells), *_precision(results.cells), *_tries(results.tries)]
    return [Text(" ".join(said), "note")] if said else []


def _flagged(cells: pd.DataFrame) -> list[str]:
    told, limited = flags.legend(cells), flags.limited_said(cells)
    marked = [f"Marked rows are in every median, interval and range: {told}"] if told else []
    return [*marked, *([limited] if limited else [])]


def _tries(seconds: list[float]) -> list[str]:
    if not seconds:
        return []
    return [
        f"Each variant's settings were searched for in {len(seconds)} short tries, which took "
        f"{units.nanoseconds(1e9 * sum(seconds))}; they are in no table and no figure. The settings found were "
        "measured afresh."
    ]


def _disturbed(cells: pd.DataFrame) -> list[str]:
    shown = flags.having(cells, flags.DISTURBED)
    left_out = int(((cells["status"] == "invalid") & (cells["cause"] == flags.DISTURBED) & ~shown).sum())
    kept = int(((cells["status"] == "ok") & (cells["disturbances"].str.len() > 0)).sum())
    given_up = sum(stop.get("reason") == "disturbed" for stop in cells["stop"])
    said = []
    if left_out:
        said.append(
            f"{left_out} of {len(cells)} repetitions were disturbed: they are left out, and were measured "
            "again."
        )
    if given_up:
        said.append(f"{given_up} point(s) were given up, because too many of their repetitions were disturbed.")
    if kept:
        said.append(f"{kept} repetition(s) were disturbed and are counted all the same, as the run was asked to.")
    return said


def _precision(cells: pd.DataFrame) -> list[str]:
    reasons = pd.Series([stop["reason"] for stop in cells["stop"] if stop.get("reason") in ASKED], dtype=object)
    if reasons.empty:
        return []
    counts = reasons.value_counts()
    told = [f"{counts.get('precise', 0)} of {len(reasons)} points met it"]
    told += [f"{counts[reason]} {what}" for reason, what in ASKED.items() if reason != "precise" and reason in counts]
    return [f"Repetitions went on until the 95 % intervals were as narrow as asked: {', '.join(told)}."]
