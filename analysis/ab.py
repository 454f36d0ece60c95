"""Interleaved A and B: verdicts on the slices that `feedrate ab` measured in turn.

A disturbance that lasts longer than a block of four slices affects both sides and leaves their ratio unchanged; a drift
that is linear over a block cancels. slices.py turns the slices into ratios. FASTER and SLOWER require a difference of
more than a margin, tested as such; SAME requires two one-sided tests of 5 % each (Schuirmann 1987), which show that the
ratio lies within a separate margin.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from . import flags, power, slices, student, tables, units, verdict
from .compare import Compared, finish, in_both, metrics_of, point_name, point_table
from .compare import overall_table, tail_sentences, verdict_sentences
from .document import Block, Bullets, Chapter, Heading, Picture, Table, Text
from .errors import BadInput
from .gate import failures, parse_gate, reject_powerless, smallest_changes
from .load import Results, load_all, require_once
from .plots import comparison
from .verdict import UNCLEAR, Metric, Ratio

MOST_UNUSED = 0.05  # share of a side's slices that may have no figure
ONE_SIDED = 0.05  # risk of each of the two tests for SAME
SIDES = ("a", "b")


@dataclass(frozen=True)
class Margins:
    changed: float  # FASTER and SLOWER mean a difference of more than this share of A
    same: float  # largest effect that counts as no change, as a share of A


def write_ab(folders: Sequence[str], out: str | None, margins: Margins, fail_on: Sequence[str]) -> int:
    """Writes ab.md and ab.png, prints ab.md, and lists the points that fail a gate on stderr. Several folders hold runs
    of the same comparison. Returns the exit code: 1 if any point fails."""
    runs = load_runs(folders)
    shared = [name for name in runs[0].shared if all(name in run.shared for run in runs)]
    every = list(dict.fromkeys(metric for name in shared for metric in metrics_of(*runs[0].shared[name])))
    gates = [parse_gate(text, every) for text in fail_on]
    found = [_compared(name, runs, margins, gates, len(shared) > 1) for name in shared]
    blocks = [block for one in found for block in one.blocks]
    return finish("Feedrate A/B", blocks, found, Path(out or folders[0]), "ab.md")


def load_runs(folders: Sequence[str]) -> list["Run"]:
    require_once("OUT", folders)
    return [Run(folder) for folder in folders]


class Run:
    """A folder that `feedrate ab` wrote, with the results of both sides by experiment."""

    def __init__(self, folder: str):
        self.folder = folder
        self.shared = in_both(*(load_all([Path(folder) / side], "OUT") for side in SIDES))


def _compared(name: str, runs: Sequence[Run], margins: Margins, gates: Sequence, titled: bool) -> Compared:
    a, b = runs[0].shared[name]
    wanted = smallest_changes(gates, metrics_of(a, b))
    matched, one_sided, differing = match(name, runs, margins, wanted)
    metrics = [metric for metric in metrics_of(a, b) if any(one.verdict for one in matched[metric.column])]
    design = power.STARTS if len(runs) == 1 else power.SEVERAL
    reject_powerless(gates, matched, metrics, lambda _: [(design, lambda one: one.spread)], margins.changed)
    overall = by_variant(matched, metrics)
    drawing = comparison.draw(matched, overall, metrics, name if titled else "")
    drawing = replace(drawing, name=drawing.name.replace(comparison.NAME, "ab", 1))
    shown = [axis for axis in tables.varying(a, b) if axis not in differing]
    legend = flags.legend(pd.concat([side.cells for run in runs for side in run.shared[name]]))
    where = "; ".join(f"A: {one.directories[0]}, B: {two.directories[0]}" for one, two in (run.shared[name] for run in runs))
    blocks: list[Block] = [
        *([Chapter(f"Experiment {name}", a.experiment.description)] if titled else []),
        Text(f"{where}. {explanation(margins, len(runs))}"),
        Bullets([
            *_differing_sentence(a, b, differing),
            _counted_sentence(matched, one_sided),
            *_unused_sentences(a, matched, shown),
            *verdict_sentences(matched, metrics, margins.changed),
            *tail_sentences(matched, metrics, wanted, margins.changed),
            *([legend] if legend else []),
        ]),
        Heading(f"By {' and '.join(a.experiment.what.split(' + '))}"),
        overall_table(overall, metrics, a.experiment.what),
        Heading("Point by point"),
        point_table(matched, metrics, a, shown, "starts × slices", _counts),
        Picture(drawing.name, drawing.caption, "", ""),
    ]  # fmt: skip
    if len(one_sided):
        rows = [[point_name(a, point, shown), point["ok in"], point["elsewhere"]] for _, point in one_sided.iterrows()]
        blocks += [Heading("Without a ratio"), Table(["point", "ok only in", "on the other side"], rows)]
    stopped = failures(gates, matched, one_sided, metrics, lambda point: point_name(a, point, shown))
    return Compared(blocks, drawing, [f"{name}: {line}" if titled else line for line in stopped])


def explanation(margins: Margins, runs: int = 1) -> str:
    several = (
        f" Each of the {runs} runs has its own ratio, and these are combined with Student's t." if runs > 1 else ""
    )
    return (
        "Slices of both sides alternated in blocks of four. Ratios are B / A: per start of both executables, the median "
        "of the pairwise means of its blocks; over the starts, the same, with the 95 % interval of Wilcoxon's "
        f"signed-rank test in brackets.{several} FASTER and SLOWER: B is better or worse by more than "
        f"{units.percent(margins.changed)}; the test is for this difference, with Benjamini and Hochberg's correction "
        "for many points (5 % false discoveries). SAME: two one-sided tests of 5 % each show that the ratio lies within "
        f"±{units.percent(margins.same)}. UNCLEAR: everything else; more time may give a verdict. A point also is UNCLEAR if "
        f"more than {units.percent(MOST_UNUSED)} of a side's slices have no figure, because the others may be the good ones; "
        f"with fewer than {slices.LEAST_STARTS} starts there is no interval."
    )


def match(
    name: str, runs: Sequence[Run], margins: Margins, wanted: dict[str, float] | None = None
) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Returns the points that have starts with slices on both sides, with a judged Ratio for each metric, the `logs` of
    the starts by metric and run, and the numbers of `starts` and `slices`; the points without; and the axes in which A
    and B differ. A point has only the axes on which both sides agree."""
    a, b = runs[0].shared[name]
    axes = list(dict.fromkeys([*a.axes, *b.axes]))
    every = [[_by_point(run.folder, results, axes) for results in run.shared[name]] for run in runs]
    numbers = sorted({number for sides in every for side in sides for number in side})
    settings = {number: [_settings(every, place, number, axes) for place in (0, 1)] for number in numbers}
    both = [one for one in settings.values() if all(one)]
    differing = [axis for axis in axes if any(one[0][axis] != one[1][axis] for one in both)]
    metrics, found, one_sided = metrics_of(a, b), [], []
    keys = [metric.key for metric in metrics]
    for number in numbers:
        point = _point(a, settings[number], differing)
        rows = [[side.get(number, []) for side in sides] for sides in every]
        tabled = [[slices.table(side, keys) for side in sides] for sides in rows]
        logs = {metric.column: [slices.by_start(*sides, metric.key) for sides in tabled] for metric in metrics}
        starts = sum(max((logs[metric.column][run].notna().sum() for metric in metrics), default=0) for run in range(len(runs)))
        if starts:
            counted = {"starts": starts, "logs": logs} | _slices(tabled, keys)
            ratios = {metric.column: _ratio(logs[metric.column]) for metric in metrics}
            found.append(point | ratios | counted)
        else:
            ok = [any(row["status"] == "ok" for sides in rows for row in sides[place]) for place in (0, 1)]
            alone = "A" if ok[0] and not ok[1] else "B" if ok[1] and not ok[0] else ""
            others = {"A": "B", "B": "A"}.get(alone, "AB")
            sides = [[row for each in rows for row in each[place]] for place in (0, 1)]
            one_sided.append(point | {"ok in": alone, "elsewhere": _reasons(sides, others)})
    if not found:
        why = "; ".join(dict.fromkeys(one["elsewhere"] for one in one_sided))
        allowed = "a run of `feedrate ab` with slices that are ok on both sides"
        raise BadInput("OUT", runs[0].folder, f"has no point that is ok on both sides ({why})", allowed)
    matched = pd.DataFrame(found)
    doubtful = [max(unused) > MOST_UNUSED for unused in matched["unused"]]
    for metric in metrics:
        judged = judge(list(matched[metric.column]), metric, margins, (wanted or {}).get(metric.name))
        matched[metric.column] = [
            replace(one, verdict=UNCLEAR) if doubt and one.verdict else one for one, doubt in zip(judged, doubtful)
        ]
    return matched, pd.DataFrame(one_sided), differing


def equal_sides(name: str, run: Run, margins: Margins) -> pd.DataFrame:
    """The points of a run whose sides are equal, as from `match`. Raises BadInput if the sides differ."""
    points, _, differing = match(name, [run], margins)
    if differing:
        raise BadInput("OUT", run.folder, f"has sides that differ in {', '.join(differing)}", "equal sides, or --dose")
    return points


def _slices(tabled: Sequence[Sequence[pd.DataFrame]], keys: Sequence[str]) -> dict:
    """The number of `slices` of a point, and for each side the share that is `unused`: of its slices, those without any
    figure, or of the starts of either side, those in which it has none, whichever is more."""
    numbered = [[run[place].assign(run=n) for n, run in enumerate(tabled)] for place in (0, 1)]
    sides = [pd.concat([one for one in runs if len(one)] or runs) for runs in numbered]
    known = [side[side[list(keys)].notna().any(axis=1)] for side in sides]
    started = {pair for side in sides for pair in zip(side["run"], side["start"])}
    unused = []
    for side, some in zip(sides, known):
        starts = len(set(zip(some["run"], some["start"])))
        unused.append(max(1 - len(some) / max(len(side), 1), 1 - starts / max(len(started), 1)))
    return {"slices": sum(map(len, known)), "unused": unused}


def _ratio(logs: Sequence[pd.Series]) -> Ratio:
    return slices.combine([slices.ratio(one.to_numpy()) for one in logs])


def by_variant(matched: pd.DataFrame, metrics: Sequence[Metric]) -> pd.DataFrame:
    """For each variant, the ratio over its points: the points of one start share properties of the processes, so the
    mean over the points is taken within each start, and the starts are the observations. It is the ratio of these
    points, not of all points that the variant could have."""

    def mean(group: pd.DataFrame, metric: Metric) -> Ratio:
        runs = range(len(group["logs"].iloc[0][metric.column]))
        logs = [pd.concat([one[metric.column][run] for one in group["logs"]], axis=1) for run in runs]
        return _ratio([one.dropna(axis=1, how="all").mean(axis=1, skipna=False) for one in logs])

    return pd.DataFrame(
        [
            {"variant": variant, "points": len(group)} | {metric.column: mean(group, metric) for metric in metrics}
            for variant, group in matched.groupby("variant", sort=False)
        ]
    )


def _by_point(folder: str, results: Results, axes: Sequence[str]) -> dict[int, list[dict]]:
    """The rows by point, one per start."""
    cells = results.cells[results.cells["ab_point"] >= 0]
    if cells.empty:
        allowed = "a folder that `feedrate ab` wrote, whose rows have slices"
        raise BadInput("OUT", folder, f"the rows of {results.directories[0]} have no slices", allowed)
    found: dict[int, list[dict]] = {}
    for row in cells.to_dict("records"):
        row |= {axis: results.experiment.missing(axis, row) for axis in axes if axis not in row}
        found.setdefault(row["ab_point"], []).append(row)
    return found


def _settings(runs: Sequence[Sequence[dict[int, list[dict]]]], place: int, number: int, axes: Sequence[str]) -> dict:
    """The axes of a point on one side, from the first run that measured it there; empty if none did."""
    row = next((run[place][number][0] for run in runs if number in run[place]), None)
    return {axis: row[axis] for axis in axes} if row else {}


def _point(a: Results, settings: Sequence[dict], differing: Sequence[str]) -> dict:
    known = [one for one in settings if one]
    names = list(dict.fromkeys(a.experiment.variant_name(one) for one in known))
    return {axis: value for axis, value in known[0].items() if axis not in differing} | {"variant": " / ".join(names)}


def _reasons(sides: Sequence[list[dict]], letters: str) -> str:
    """The status and reason of a point on the sides with these letters, from its rows or their slices."""
    reasons = []
    for letter, side in zip("AB", sides):
        every = [*side, *(one for row in side for one in row["ab_slices"] if "status" in one)]
        bad = [row for row in every if row["status"] != "ok"]
        if letter in letters:
            named = f"{letter}: " if len(letters) > 1 else ""
            reasons.append(f"{named}{bad[0]['status']}: {bad[0]['reason']}" if bad else f"{named}not measured")
    return "; ".join(reasons)


def judge(ratios: Sequence[Ratio], metric: Metric, margins: Margins, wanted: float | None = None) -> list[Ratio]:
    """The ratios of one metric at all points, each with its verdict. `wanted`: a point of a tail gets a verdict only if
    it could show a change of this size."""
    shown = power.shown(ratios, metric, wanted, margins.changed)
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


def _counted_sentence(matched: pd.DataFrame, one_sided: pd.DataFrame) -> str:
    fewest, most = matched["starts"].min(), matched["starts"].max()
    starts = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    lacking = f"; {len(one_sided)} further points have no ratio" if len(one_sided) else ""
    return f"{len(matched)} points, {starts} starts of both sides, {matched['slices'].sum()} slices{lacking}."


def _unused_sentences(a: Results, matched: pd.DataFrame, shown: list[str]) -> list[str]:
    """A sentence for each point where some slices of a side have no figure."""
    return [
        f"{point_name(a, point, shown)}: {units.percent(point['unused'][0])} of A's slices or starts and "
        f"{units.percent(point['unused'][1])} of B's have no figure and are not used."
        for _, point in matched.iterrows()
        if max(point["unused"]) > 0
    ]


def _counts(point: pd.Series) -> str:
    return f"{point['starts']} × {point['slices'] / point['starts']:.0f}"
