"""Two result directories, point by point: ratios B / A with intervals, and what else differs between them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from . import stats, tables, units
from .document import Block, Bullets, Heading, Picture, Table, Text, to_markdown
from .errors import BadInput
from .figures import write_pngs
from .load import Results, load, missing, variant_name
from .plots import comparison

# metric, heading, whether a larger ratio is better
METRICS = (("messages_per_second", "throughput", True), ("p50", "p50", False), ("p99", "p99", False))


@dataclass(frozen=True)
class Ratio:
    """B / A; the ends are NaN where there is no interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if np.isnan(self.low):
            return units.ratio(self.value)
        return f"{units.ratio(self.value)} [{units.ratio(self.low)}, {units.ratio(self.high)}]"

    def verdict(self, larger_is_better: bool) -> str:
        """Better or worse only where the whole interval says so."""
        if np.isnan(self.low):
            return "unknown"
        if self.low <= 1 <= self.high:
            return "same"
        return "better" if (self.low > 1) == larger_is_better else "worse"


def write_comparison(before: str, after: str, out: str | None) -> str:
    """Writes compare.md and compare.png; returns the text for the terminal."""
    a, b = load([before], "A"), load([after], "B")
    matched, lonely = match(a, b)
    if matched.empty:
        raise BadInput("B", after, f"shares no ok point with A '{before}'", "a directory with points of equal params")
    target = Path(out) if out else b.directories[0]
    target.mkdir(parents=True, exist_ok=True)
    overall = summarise(matched)
    drawing = comparison.draw(matched, overall, METRICS)
    write_pngs([drawing], target)
    blocks: list[Block] = [
        Text(
            f"A: {before}. B: {after}. Ratios are B / A of the medians of the repetitions, in brackets the 95 % "
            "bootstrap interval. More than 1 is better for throughput, less than 1 for latency."
        ),
        Bullets(_summary(matched, lonely)),
        Heading("By queue and transfer"),
        _overall_table(overall),
        Heading("Point by point"),
        _table(matched, a, b),
        Picture(drawing.name, drawing.caption, ""),
        Heading("Not matched"),
        *_lonely(lonely),
        Heading("What differs between the environments"),
        *_differences(a, b),
    ]
    text = to_markdown("Feedrate comparison", blocks)
    (target / "compare.md").write_text(text, encoding="utf-8")
    return f"{text}\n{target / 'compare.md'}"


def match(a: Results, b: Results) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The points that are ok in both, with a Ratio for each metric; and the points that are ok in one only."""
    axes = list(dict.fromkeys([*a.axes, *b.axes]))
    sides = [_samples(results, axes) for results in (a, b)]
    rows, lonely = [], []
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        found = [side.get(key) for side in sides]
        point = dict(zip(axes, key))
        point["variant"] = variant_name(point["queue"], point["transfer"])
        if all(found):
            rows.append(
                point
                | {metric: Ratio(*stats.bootstrap_ratio(found[0][metric], found[1][metric])) for metric, *_ in METRICS}
                | {"repetitions": [len(one["p50"]) for one in found]}
            )
        else:
            there, missing = ("A", b) if found[0] else ("B", a)
            lonely.append(point | {"ok in": there, "elsewhere": _status(missing, point)})
    return pd.DataFrame(rows), pd.DataFrame(lonely)


def _samples(results: Results, axes: list[str]) -> dict[tuple, dict[str, np.ndarray]]:
    """For each point that is ok, the repetitions of each metric."""
    ok = results.cells[results.cells["status"] == "ok"]
    ok = ok.assign(**{axis: [missing(axis, queue) for queue in ok["queue"]] for axis in axes if axis not in ok})
    return {
        key: {metric: group[metric].to_numpy() for metric, *_ in METRICS} for key, group in ok.groupby(axes, sort=False)
    }


def _status(results: Results, point: dict) -> str:
    """Why a point has no partner: what became of it on the other side."""
    cells = results.cells
    for axis in results.axes:
        cells = cells[cells[axis] == point[axis]]
    return f"{cells['status'].iloc[0]}: {cells['reason'].iloc[0]}" if len(cells) else "not run"


def summarise(matched: pd.DataFrame) -> pd.DataFrame:
    """For each variant the geometric mean of its points' ratios, with an interval over the points."""
    return pd.DataFrame(
        [
            {"variant": variant, "points": len(group)}
            | {
                metric: Ratio(*stats.bootstrap_geometric_mean(np.array([ratio.value for ratio in group[metric]])))
                for metric, *_ in METRICS
            }
            for variant, group in matched.groupby("variant", sort=False)
        ]
    )


def _summary(matched: pd.DataFrame, lonely: pd.DataFrame) -> list[str]:
    said = [f"{len(matched)} points matched by all their parameters, {len(lonely)} in one side only."]
    for metric, heading, larger_is_better in METRICS:
        verdicts = pd.Series([ratio.verdict(larger_is_better) for ratio in matched[metric]]).value_counts()
        said.append(
            f"{heading}: "
            + ", ".join(f"{verdicts.get(name, 0)} {name}" for name in ("better", "worse", "same"))
            + (
                f", {verdicts['unknown']} with a single repetition and so without interval"
                if "unknown" in verdicts
                else ""
            )
            + "."
        )
    few = min(min(counts) for counts in matched["repetitions"])
    if few < 5:
        said.append(
            f"Intervals from {few} repetition(s) are rough; and of many points one in twenty differs by chance alone."
        )
    return said


def _overall_table(overall: pd.DataFrame) -> Table:
    return Table(
        ["queue + transfer", "points", *(heading for _, heading, _ in METRICS)],
        [
            [row["variant"], str(row["points"]), *(str(row[metric]) for metric, *_ in METRICS)]
            for _, row in overall.iterrows()
        ],
        {1, 2, 3, 4},
    )


def _table(matched: pd.DataFrame, a: Results, b: Results) -> Table:
    varying = tables.varying(a, b)
    rows = [
        [
            row["variant"],
            row["workload"],
            tables.place(row, varying),
            " / ".join(map(str, row["repetitions"])),
            *(f"{row[metric]} {row[metric].verdict(better)}" for metric, _, better in METRICS),
        ]
        for _, row in matched.iterrows()
    ]
    return Table(
        ["queue + transfer", "workload", "point", "repetitions", *(heading for _, heading, _ in METRICS)],
        rows,
        {3, 4, 5, 6},
    )


def _lonely(lonely: pd.DataFrame) -> list[Block]:
    if lonely.empty:
        return [Text("Every point is in both.")]
    rows = []
    for (where, variant, elsewhere), group in lonely.groupby(["ok in", "variant", "elsewhere"], sort=False):
        rows.append([where, variant, str(len(group)), elsewhere])
    return [Table(["ok only in", "queue + transfer", "points", "on the other side"], rows, {2})]


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
