"""Two result directories, point by point: ratios B / A with intervals and verdicts, and what else differs."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from . import stats, tables, units
from .document import Block, Bullets, Chapter, Heading, Picture, Table, Text, to_markdown
from .errors import BadInput
from .figures import pngs
from .files import say, write_all
from .gate import failures, noise_of, parse_gate, parse_noise
from .load import Results, load_all
from .plots import comparison
from .plots.style import Drawing
from .verdict import UNCLEAR, VERDICTS, Metric, Ratio, judge, ratio

FEW = 5  # repetitions a side below which a change of one point among many is rarely found


@dataclass(frozen=True)
class Rules:
    """What counts as a difference. Without run noise, as of what was measured side by side; the command line assumes
    some."""

    margin: float = 0.02  # the smallest effect of interest, a share of A
    run_noise: dict[str, float] = field(default_factory=dict)  # by metric's name: what two runs of one code differ by


@dataclass(frozen=True)
class Compared:
    """One experiment's part of a comparison."""

    blocks: list[Block]
    drawing: Drawing
    stopped: list[str]


def write_comparison(
    before: str, after: str, out: str | None, margin: float, noises: Sequence[str], fail_on: Sequence[str]
) -> int:
    """Writes compare.md and compare.png, prints the former, and names on stderr what the gates stop. Returns the exit
    code: 1 where they stop anything. `noises` and `fail_on` are as the command line says them."""
    sides = load_all([before], "A"), load_all([after], "B")
    shared = in_both(*sides)
    every = list(dict.fromkeys(metric for a, b in shared.values() for metric in metrics_of(a, b)))
    gates, noise = [parse_gate(text, every) for text in fail_on], parse_noise(noises, every)
    target = Path(out) if out else Path(after)
    found = [
        _compare(a, b, Rules(margin, noise_of(noise, metrics_of(a, b))), gates, name if len(shared) > 1 else "")
        for name, (a, b) in shared.items()
    ]
    said = f"A: {before}. B: {after}. {_only(sides, shared)}".strip()
    blocks = [block for one in found for block in one.blocks]
    if len(found) == 1:  # what is compared, and how to read it, in one paragraph
        said, blocks = f"{said} {blocks[0].text}", blocks[1:]
    text = to_markdown("Feedrate comparison", [Text(said), *blocks])
    write_all(pngs([one.drawing for one in found], target) | {target / "compare.md": text})
    say(f"{text}\n{target / 'compare.md'}")
    stopped = [line for one in found for line in one.stopped]
    for line in stopped:
        print(line, file=sys.stderr)
    return 1 if stopped else 0


def in_both(before: dict[str, Results], after: dict[str, Results]) -> dict[str, tuple[Results, Results]]:
    """By experiment; there must be one."""
    shared = {name: (before[name], after[name]) for name in before if name in after}
    if not shared:
        first = next(iter(after.values()))
        raise BadInput(
            "B",
            first.directories[0],
            f"shares no experiment with A: rows of {', '.join(after)}",
            f"rows of {', '.join(before)}",
        )
    return shared


def _only(sides: Sequence[dict[str, Results]], shared: dict) -> str:
    alone = [(letter, name) for letter, side in zip("AB", sides) for name in side if name not in shared]
    return " ".join(f"Only {letter} holds rows of {name}." for letter, name in alone)


def _compare(a: Results, b: Results, rules: Rules, gates: Sequence, name: str) -> Compared:
    """`name`: of the experiment where there are several, else empty."""
    matched, lonely = match_some(a, b, rules)
    metrics = measured_metrics(a, b, matched)
    overall = summarise(matched, metrics)
    drawing = comparison.draw(matched, overall, metrics, name)
    blocks: list[Block] = [
        *([Chapter(f"Experiment {name}", a.experiment.description)] if name else []),
        Text(explanation(rules)),
        Bullets(_summary(matched, lonely, metrics)),
        Heading(f"By {' and '.join(a.experiment.what.split(' + '))}"),
        _overall_table(overall, metrics, a.experiment.what),
        Heading("Point by point"),
        _table(matched, metrics, a, b),
        Picture(drawing.name, drawing.caption, "", ""),
        Heading("Not matched"),
        *_lonely(lonely, a.experiment.what),
        Heading("What differs between the environments"),
        *_differences(a, b),
    ]
    stopped = failures(gates, matched, lonely, metrics_of(a, b), lambda point: _name(a, point, tables.varying(a, b)))
    return Compared(blocks, drawing, [f"{name}: {line}" if name else line for line in stopped])


def explanation(rules: Rules) -> str:
    """How to read ratios and verdicts."""
    shares = set(rules.run_noise.values())
    noise = ", ".join(f"{units.percent(share)} {name}" for name, share in rules.run_noise.items() if share)
    if noise and len(shares) == 1:
        noise = units.percent(shares.pop())
    return (
        "Ratios are B / A of the geometric means of the repetitions, in brackets the 95 % interval (Welch's, on "
        "logarithms). FASTER and SLOWER: B is better or worse by "
        f"{units.percent(rules.margin)} or more, and the difference survives Benjamini and Hochberg's correction for "
        f"many points (5 % false discoveries). SAME: the whole interval lies within ±{units.percent(rules.margin)}. "
        "UNCLEAR: everything else; more repetitions would tell."
        + (f" FASTER and SLOWER are beyond the noise between runs, too, taken to be {noise}." if noise else "")
    )


def match_some(a: Results, b: Results, rules: Rules) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`match`, which must match something."""
    matched, lonely = match(a, b, rules)
    if matched.empty:
        raise BadInput(
            "B",
            b.directories[0],
            f"shares no ok point with A '{a.directories[0]}'",
            "a directory with points of equal params",
        )
    return matched, lonely


def metrics_of(a: Results, b: Results) -> tuple[Metric, ...]:
    """What the catalogue of either side says is compared."""
    return tuple({metric.column: metric for side in (b, a) for metric in side.experiment.compared}.values())


def measured_metrics(a: Results, b: Results, matched: pd.DataFrame) -> list[Metric]:
    """Those that some point has on both sides."""
    return [metric for metric in metrics_of(a, b) if any(one.verdict for one in matched[metric.column])]


def match(a: Results, b: Results, rules: Rules = Rules()) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The points that are ok in both, with a judged Ratio for each metric; and the points that are ok in one only."""
    metrics, rows, lonely = metrics_of(a, b), [], []
    for point, sides in pairs(a, b):
        if all(sides):
            ratios = {
                metric.column: ratio(
                    *(side[metric.column] for side in sides), metric.resolution, rules.run_noise.get(metric.name, 0.0)
                )
                for metric in metrics
            }
            rows.append(point | ratios | {"repetitions": [side["repetitions"] for side in sides]})
        else:
            there, absent = ("A", b) if sides[0] else ("B", a)
            lonely.append(point | {"ok in": there, "elsewhere": _status(absent, point)})
    matched = pd.DataFrame(rows)
    for metric in metrics if rows else ():
        matched[metric.column] = judge(list(matched[metric.column]), metric, rules.margin)
    return matched, pd.DataFrame(lonely)


def pairs(a: Results, b: Results) -> list[tuple[dict, list[dict | None]]]:
    """Every point that is ok on some side, and of either side the repetitions of each metric, and how many."""
    axes = list(dict.fromkeys([*a.axes, *b.axes]))
    sides = [_samples(results, axes, metrics_of(a, b)) for results in (a, b)]
    found = []
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        point = dict(zip(axes, key))
        point["variant"] = a.experiment.variant_name(point)
        found.append((point, [side.get(key) for side in sides]))
    return found


def _samples(results: Results, axes: list[str], metrics: Sequence[Metric]) -> dict[tuple, dict]:
    """For each point that is ok, the repetitions of each metric."""
    ok = results.cells[results.cells["status"] == "ok"]
    points = ok.to_dict("records")
    lacking = [axis for axis in axes if axis not in ok]
    ok = ok.assign(**{axis: [results.experiment.missing(axis, point) for point in points] for axis in lacking})
    ok = ok.assign(**{metric.column: np.nan for metric in metrics if metric.column not in ok})
    columns = [metric.column for metric in metrics]
    return {
        key: {column: group[column].to_numpy() for column in columns} | {"repetitions": len(group)}
        for key, group in ok.groupby(axes, sort=False)
    }


def _status(results: Results, point: dict) -> str:
    """Why a point has no partner: what became of it on the other side."""
    cells = results.cells
    for axis in results.axes:
        cells = cells[cells[axis] == point[axis]]
    return f"{cells['status'].iloc[0]}: {cells['reason'].iloc[0]}" if len(cells) else "not run"


def summarise(matched: pd.DataFrame, metrics: Sequence[Metric]) -> pd.DataFrame:
    """For each variant the geometric mean of its points' ratios, with an interval over the points."""

    def mean(ratios: pd.Series) -> Ratio:
        known = np.array([one.value for one in ratios if not np.isnan(one.value)])
        return Ratio(*stats.bootstrap_geometric_mean(known)) if len(known) else Ratio(*[float("nan")] * 3)

    return pd.DataFrame(
        [
            {"variant": variant, "points": len(group)}
            | {metric.column: mean(group[metric.column]) for metric in metrics}
            for variant, group in matched.groupby("variant", sort=False)
        ]
    )


def _summary(matched: pd.DataFrame, lonely: pd.DataFrame, metrics: Sequence[Metric]) -> list[str]:
    said = [f"{len(matched)} points matched by all their parameters, {len(lonely)} in one side only."]
    for metric in metrics:
        verdicts = pd.Series([one.verdict for one in matched[metric.column]]).value_counts()
        said.append(f"{_heading(metric)}: " + ", ".join(f"{verdicts.get(name, 0)} {name}" for name in VERDICTS) + ".")
    repetitions = pd.Series([min(counts) for counts in matched["repetitions"]])
    if alone := int((repetitions == 1).sum()):
        said.append(f"{alone} with a single repetition on some side, which says nothing of its spread: {UNCLEAR}.")
    few = repetitions[repetitions > 1].min()
    if few < FEW:
        said.append(
            f"With {few:.0f} repetitions a side only large changes, or changes of many points, are found: sweep with "
            f"--repetitions {FEW} or more."
        )
    return said


def _heading(metric: Metric) -> str:
    return metric.name.replace("_", " ")


def _overall_table(overall: pd.DataFrame, metrics: Sequence[Metric], what: str) -> Table:
    columns = [what, "points", *map(_heading, metrics)]
    return Table(
        columns,
        [
            [row["variant"], str(row["points"]), *(str(row[metric.column]) for metric in metrics)]
            for _, row in overall.iterrows()
        ],
        set(range(1, len(columns))),
    )


def _table(matched: pd.DataFrame, metrics: Sequence[Metric], a: Results, b: Results) -> Table:
    varying = tables.varying(a, b)
    works = ["workload"] if "workload" in matched else []
    columns = [a.experiment.what, *works, "point", "repetitions", *map(_heading, metrics)]
    rows = [
        [
            row["variant"],
            *(row[work] for work in works),
            tables.place(a, row, varying),
            " / ".join(map(str, row["repetitions"])),
            *(f"{row[metric.column]} {row[metric.column].verdict}".strip() for metric in metrics),
        ]
        for _, row in matched.iterrows()
    ]
    return Table(columns, rows, set(range(2 + len(works), len(columns))))


def _name(results: Results, point: pd.Series, varying: list[str]) -> str:
    """A point in one line."""
    work = [point["workload"]] if "workload" in point else []
    return ", ".join([point["variant"], *work, tables.place(results, point, varying)])


def _lonely(lonely: pd.DataFrame, what: str) -> list[Block]:
    if lonely.empty:
        return [Text("Every point is in both.")]
    rows = []
    for (where, variant, elsewhere), group in lonely.groupby(["ok in", "variant", "elsewhere"], sort=False):
        rows.append([where, variant, str(len(group)), elsewhere])
    return [Table(["ok only in", what, "points", "on the other side"], rows, {2})]


def _differences(a: Results, b: Results) -> list[Block]:
    sides = [_facts(results) for results in (a, b)]
    rows = [
        [name, *("\n".join(side.get(name, [units.NOTHING])) for side in sides)]
        for name in dict.fromkeys([*sides[0], *sides[1]])
        if sides[0].get(name) != sides[1].get(name)
    ]
    return [Table(["fact", "A", "B"], rows)] if rows else [Text("Nothing: both ran in the same environment.")]


def _facts(results: Results) -> dict[str, list[str]]:
    """Every environment fact and run setting with the values it took."""
    facts: dict[str, list[str]] = {}
    named = [*results.environments, *({"run": run} for run in results.runs)]
    for name, value in (pair for one in named for pair in tables.flatten(one).items()):
        if str(value) not in facts.setdefault(name, []):
            facts[name].append(str(value))
    return facts
