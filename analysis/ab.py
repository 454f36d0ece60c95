"""Interleaved A and B: verdicts on the pairs that `feedrate ab` measured next to each other in ABBA order.

A disturbance that lasts longer than a pair affects both sides and leaves their ratio unchanged; a drift that is linear
over four measurements cancels. The logarithms of the pairs' ratios are therefore averaged, with Student's t, and no
noise between runs is assumed, because there is only one run. SAME requires two one-sided tests of 5 % each (Schuirmann
1987), which show that the ratio lies within a separate margin.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from . import flags, power, student, tables, units, verdict
from .compare import Compared, finish, in_both, measured_metrics, metrics_of, point_name, point_table, summarise
from .compare import tail_sentences, verdict_sentences
from .document import Block, Bullets, Chapter, Heading, Picture, Table, Text
from .errors import BadInput
from .gate import failures, smallest_changes, parse_gate, reject_powerless
from .load import Results, load_all
from .plots import comparison
from .verdict import NOT_MEASURED, Metric, Ratio, from_log

ONE_SIDED = 0.05  # risk of each of the two tests for SAME
SIDES = ("a", "b")


@dataclass(frozen=True)
class Margins:
    changed: float  # smallest effect of interest, as a share of A
    same: float  # largest effect that counts as no change, as a share of A


def write_ab(folder: str, out: str | None, margins: Margins, fail_on: Sequence[str]) -> int:
    """Writes ab.md and ab.png, prints ab.md, and lists the points that fail a gate on stderr. Returns the exit code: 1
    if any point fails."""
    before, after = (load_all([Path(folder) / side], "OUT") for side in SIDES)
    shared = in_both(before, after)
    every = list(dict.fromkeys(metric for a, b in shared.values() for metric in metrics_of(a, b)))
    gates = [parse_gate(text, every) for text in fail_on]
    found = [
        _compared(folder, a, b, margins, gates, name if len(shared) > 1 else "") for name, (a, b) in shared.items()
    ]
    blocks = [block for one in found for block in one.blocks]
    return finish("Feedrate A/B", blocks, found, Path(out or folder), "ab.md")


def _compared(folder: str, a: Results, b: Results, margins: Margins, gates: Sequence, name: str) -> Compared:
    wanted = smallest_changes(gates, metrics_of(a, b))
    matched, one_sided, differing = match(folder, a, b, margins, wanted)
    metrics = measured_metrics(a, b, matched)
    design = power.STARTS if _started_anew(a) else power.PAIRS
    reject_powerless(gates, matched, metrics, lambda _: [(design, lambda one: one.spread)])
    overall = summarise(matched, metrics)
    drawing = comparison.draw(matched, overall, metrics, name)
    drawing = replace(drawing, name=drawing.name.replace(comparison.NAME, "ab", 1))
    shown = [axis for axis in tables.varying(a, b) if axis not in differing]
    legend = flags.legend(pd.concat([a.cells, b.cells]))
    blocks: list[Block] = [
        *([Chapter(f"Experiment {name}", a.experiment.description)] if name else []),
        Text(f"A: {a.directories[0]}. B: {b.directories[0]}. {explanation(margins)}"),
        Bullets([
            *_differing_sentence(a, b, differing),
            _pairs_sentence(matched, one_sided),
            *verdict_sentences(matched, metrics),
            *tail_sentences(matched, metrics, wanted),
            *([legend] if legend else []),
        ]),
        Heading("Point by point"),
        point_table(matched, metrics, a, shown, "pairs", _used),
        Picture(drawing.name, drawing.caption, "", ""),
    ]  # fmt: skip
    if len(one_sided):
        rows = [[point_name(a, point, shown), point["ok in"], point["elsewhere"]] for _, point in one_sided.iterrows()]
        blocks += [Heading("Without a pair"), Table(["point", "ok only in", "on the other side"], rows)]
    stopped = failures(gates, matched, one_sided, metrics, lambda point: point_name(a, point, shown))
    return Compared(blocks, drawing, [f"{name}: {line}" if name else line for line in stopped])


def explanation(margins: Margins) -> str:
    return (
        "The two sides of each pair were measured next to each other, in ABBA order. Ratios are B / A: the geometric "
        "mean over the starts, with the 95 % interval in brackets (Student's t on logarithms; all pairs between two "
        "restarts of the executables count as one observation). FASTER and SLOWER: B is better or worse by "
        f"{units.percent(margins.changed)} or more, and the difference survives Benjamini and Hochberg's correction for "
        "many points (5 % false discoveries). SAME: two one-sided tests of 5 % each show that the ratio lies within "
        f"±{units.percent(margins.same)}. UNCLEAR: everything else; more pairs may give a verdict."
    )


def match(
    folder: str, a: Results, b: Results, margins: Margins, wanted: dict[str, float] | None = None
) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Returns the points that have a pair that is ok on both sides, with a judged Ratio for each metric and `pairs`
    (used, total); the points without such a pair; and the axes in which A and B differ. A point has only the axes on
    which both sides agree."""
    axes = list(dict.fromkeys([*a.axes, *b.axes]))
    sides = [_by_pair(folder, results, axes) for results in (a, b)]
    numbers = sorted(set(sides[0]) | set(sides[1]))
    settings = {number: [_settings(side.get(number), axes) for side in sides] for number in numbers}
    both = [one for one in settings.values() if all(one)]
    differing = [axis for axis in axes if any(one[0][axis] != one[1][axis] for one in both)]
    metrics, found, one_sided = metrics_of(a, b), [], []
    for number in numbers:
        point = _point(a, settings[number], differing)
        rows = [side.get(number, {}) for side in sides]
        pairs = set(rows[0]) | set(rows[1])
        used = sorted(pair for pair in pairs if all(side.get(pair, _NONE)["status"] == "ok" for side in rows))
        if used:
            logs = {
                metric: log_ratios(*([side[pair].get(metric.column) for pair in used] for side in rows))
                for metric in metrics
            }
            starts = [rows[0][pair]["ab_start"] for pair in used]
            ratios = {
                metric.column: paired(by_start(logs[metric], starts), metric.resolution) for metric in metrics
            }
            found.append(point | ratios | {"pairs": (len(used), len(pairs))})
        else:
            ok = [any(row["status"] == "ok" for row in side.values()) for side in rows]
            alone = "A" if ok[0] and not ok[1] else "B" if ok[1] and not ok[0] else ""
            others = {"A": "B", "B": "A"}.get(alone, "AB")
            one_sided.append(point | {"ok in": alone, "elsewhere": _reasons(rows, others), "pairs": (0, len(pairs))})
    if not found:
        raise BadInput("OUT", folder, "has no pair that is ok on both sides", "a folder that `feedrate ab` wrote")
    matched = pd.DataFrame(found)
    for metric in metrics:
        matched[metric.column] = judge(list(matched[metric.column]), metric, margins, (wanted or {}).get(metric.name))
    return matched, pd.DataFrame(one_sided), differing


_NONE = {"status": "missing"}


def _by_pair(folder: str, results: Results, axes: Sequence[str]) -> dict[int, dict[int, dict]]:
    """The rows by point and pair. If a pair has several rows, the last ok one counts, because disturbed rows are
    measured again."""
    cells = results.cells[results.cells["ab_point"] >= 0]
    if cells.empty:
        allowed = "a folder that `feedrate ab` wrote, whose rows name their pair"
        raise BadInput("OUT", folder, f"the rows of {results.directories[0]} belong to no pair", allowed)
    found: dict[int, dict[int, dict]] = {}
    for row in cells.to_dict("records"):
        row |= {axis: results.experiment.missing(axis, row) for axis in axes if axis not in row}
        pairs = found.setdefault(row["ab_point"], {})
        if row["status"] == "ok" or pairs.get(row["ab_pair"], _NONE)["status"] != "ok":
            pairs[row["ab_pair"]] = row
    return found


def _settings(rows: dict[int, dict] | None, axes: Sequence[str]) -> dict:
    """The axes of a point on one side; empty if it was not measured there."""
    return {axis: next(iter(rows.values()))[axis] for axis in axes} if rows else {}


def _point(a: Results, settings: Sequence[dict], differing: Sequence[str]) -> dict:
    known = [one for one in settings if one]
    names = list(dict.fromkeys(a.experiment.variant_name(one) for one in known))
    return {axis: value for axis, value in known[0].items() if axis not in differing} | {"variant": " / ".join(names)}


def _reasons(rows: Sequence[dict], letters: str) -> str:
    """The status and reason of a point on the sides with these letters."""
    reasons = []
    for letter, side in zip("AB", rows):
        bad = [row for row in side.values() if row["status"] != "ok"]
        if letter in letters:
            named = f"{letter}: " if len(letters) > 1 else ""
            reasons.append(f"{named}{bad[0]['status']}: {bad[0]['reason']}" if bad else f"{named}not measured")
    return "; ".join(reasons)


def log_ratios(before: Iterable, after: Iterable) -> np.ndarray:
    """log B / A of each pair; NaN if a side lacks the figure or its value has no logarithm."""
    sides = [np.array([np.nan if value is None else value for value in side], dtype=float) for side in (before, after)]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(sides[1]) - np.log(sides[0])
    return np.where(np.isfinite(logs), logs, np.nan)


def by_start(logs: np.ndarray, starts: Sequence[int]) -> np.ndarray:
    """The mean of the pairs that belong to each start of the two executables. Some properties of a process, such as its
    placement in memory, are fixed at its start, so its pairs are not independent (Kalibera and Jones, Rigorous
    benchmarking in reasonable time, 2013). Rows without a start are returned unchanged."""
    known = np.isfinite(logs)
    if min(starts) < 0 or not known.any():
        return logs
    return pd.Series(logs[known]).groupby(np.asarray(starts)[known]).mean().to_numpy()


def _started_anew(results: Results) -> bool:
    return bool((results.cells["ab_start"] >= 0).any())


def paired(logs: np.ndarray, rounding: float = 0.0) -> Ratio:
    """The ratio of these pairs with its interval. `rounding`: the standard deviation that histogram buckets add to each
    side; pairs in the same buckets do not show it."""
    logs = logs[np.isfinite(logs)]
    if not len(logs):
        return NOT_MEASURED
    change = float(logs.mean())
    if len(logs) == 1:
        return Ratio(float(np.exp(change)), float("nan"), float("nan"))
    spread = float(logs.var(ddof=1))
    own = spread / len(logs)
    variance = own + 2 * rounding**2
    return from_log(change, variance, (len(logs) - 1) * (variance / own) ** 2 if own else np.inf, spread)


def judge(ratios: Sequence[Ratio], metric: Metric, margins: Margins, wanted: float | None = None) -> list[Ratio]:
    """The ratios of one metric at all points, each with its verdict. `wanted`: a point of a tail gets a verdict only if
    it could show a change of this size."""
    shown = power.shown(ratios, metric, wanted)
    return verdict.judge(ratios, metric, margins.changed, shown, lambda one: within(one, margins.same))


def within(one: Ratio, margin: float) -> bool:
    """Whether both one-sided tests show that the ratio lies within the margin."""
    if not np.isfinite(one.error):
        return False
    reach = float(student.ppf(1 - ONE_SIDED, one.freedom)) * one.error
    return bool(np.log1p(-margin) < np.log(one.value) - reach and np.log(one.value) + reach < np.log1p(margin))


def _differing_sentence(a: Results, b: Results, differing: Sequence[str]) -> list[str]:
    def values(results: Results, axis: str) -> str:
        if axis not in results.cells:
            return "does not apply"
        return ", ".join(str(value) for value in dict.fromkeys(results.cells.loc[results.cells["ab_point"] >= 0, axis]))

    named = [f"{tables.name(a, axis)} (A: {values(a, axis)}; B: {values(b, axis)})" for axis in differing]
    return [f"By design, A and B differ in {'; '.join(named)}."] if named else []


def _pairs_sentence(matched: pd.DataFrame, one_sided: pd.DataFrame) -> str:
    used = sum(one for one, _ in matched["pairs"])
    every = sum(count for part in (matched, one_sided) if len(part) for _, count in part["pairs"])
    counted = f"{len(matched)} points, {every} pairs"
    if used == every:
        return f"{counted}, all ok on both sides."
    return f"{counted}; {every - used} of them are missing or not ok on at least one side and are not used."


def _used(point: pd.Series) -> str:
    used, every = point["pairs"]
    return str(used) if used == every else f"{used} of {every}"
