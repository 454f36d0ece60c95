"""Sentences on the measurement itself: disturbances, and whether it reached the requested precision."""

import pandas as pd

from . import flags, sections, units
from .document import Block, Text
from .load import Results

ASKED = {
    "precise": "met it",
    "most repetitions": "ended at the maximum number of repetitions",
    "time limit": "ended at the time limit",
    "not ok": "had no ok repetition",
}


def blocks(results: Results) -> list[Block]:
    """A short paragraph; empty if there is nothing to report."""
    cells = results.cells
    own = sections.of(results.experiment.name).quality(results)
    sentences = [*_flagged(cells), *own, *_disturbed(cells), *_precision(cells), *_search_sentence(results.tries)]
    return [Text(" ".join(sentences), "note")] if sentences else []


def _flagged(cells: pd.DataFrame) -> list[str]:
    legend, limited = flags.legend(cells), flags.limited_sentence(cells)
    marked = [f"Marked rows are part of every median, interval and range: {legend}"] if legend else []
    return [*marked, *([limited] if limited else [])]


def _search_sentence(seconds: list[float]) -> list[str]:
    if not seconds:
        return []
    return [
        f"A search with {len(seconds)} short tries, which took {units.nanoseconds(1e9 * sum(seconds))}, found each "
        "variant's settings. The tries are not part of any table or figure; the settings found were measured again."
    ]


def _disturbed(cells: pd.DataFrame) -> list[str]:
    shown = flags.having(cells, flags.DISTURBED)
    repeated = cells[(cells["status"] == "invalid") & (cells["cause"] == flags.DISTURBED) & ~shown]
    kept = int(((cells["status"] == "ok") & (cells["disturbances"].str.len() > 0)).sum())
    given_up = sum(stop.get("reason") == "disturbed" for stop in cells["stop"])
    sentences = []
    if len(repeated):
        causes = [text for texts in repeated["disturbances"] for text in texts]
        example = f" (for example: {causes[0]})" if causes else ""
        sentences.append(
            f"{len(repeated)} of {len(cells)} repetitions were left out and measured again, because the machine was "
            f"disturbed{example}."
        )
    if given_up:
        sentences.append(f"{given_up} point(s) were given up because too many of their repetitions were disturbed.")
    if kept:
        sentences.append(f"{kept} repetition(s) were disturbed but count, as requested for this run.")
    return sentences


def _precision(cells: pd.DataFrame) -> list[str]:
    reasons = pd.Series([stop["reason"] for stop in cells["stop"] if stop.get("reason") in ASKED], dtype=object)
    if reasons.empty:
        return []
    counts = reasons.value_counts()
    outcomes = [f"{counts.get('precise', 0)} of {len(reasons)} points met it"]
    others = {reason: what for reason, what in ASKED.items() if reason != "precise" and reason in counts}
    outcomes += [f"{counts[reason]} {what}" for reason, what in others.items()]
    return [f"Repetitions continued until the 95 % intervals met the requested precision: {', '.join(outcomes)}."]
