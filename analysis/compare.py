"""Point-by-point comparison of two sides, each with one or several result directories: ratios B / A with intervals and
verdicts, and the differences between the environments."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from . import power, tables, units
from .document import Block, Bullets, Chapter, Heading, Picture, Table, Text, to_markdown
from .errors import BadInput
from .figures import pngs
from .files import say, write_all
from .gate import failures, smallest_changes, noise_of, parse_gate, parse_noise, reject_powerless
from .load import Results, load_all, without_choosing_rows
from .plots import comparison
from .plots.style import Drawing
from .runs import ratios as ratios_of_runs
from .runs import run_means
from .verdict import UNCLEAR, VERDICTS, Metric, Ratio, judge, mean_ratio, ratio

LEAST_IN_RUN = 3  # repetitions
ONE_RUN = (
    "One run per side cannot separate a change in B from the difference between any two runs of the same code: the "
    "repetitions of a run share its placement in memory, clocks and neighbours. This run-to-run noise is assumed here, "
    "not measured. To measure it, give several runs per side (compare A1 A2 A3 --with B1 B2 B3); to avoid it, use "
    "`feedrate ab`, which measures both sides next to each other."
)


@dataclass(frozen=True)
class Rules:
    """Criteria for a difference. The default assumes no run noise, which suits sides measured next to each other;
    the command line assumes some."""

    margin: float = 0.02  # smallest effect of interest, as a share of A
    # By metric: standard deviation between runs of the same code.
    run_noise: dict[str, float] = field(default_factory=dict)
    # Keyed by metric: the change that must be detectable before a tail gets a verdict.
    smallest_changes: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Compared:
    """One experiment's part of a comparison."""

    blocks: list[Block]
    drawing: Drawing
    stopped: list[str]


def sides_of(directories: Sequence[str], others: Sequence[str]) -> tuple[list[str], list[str]]:
    """The directories of A and of B from the command line: A B, or A1 A2 … --with B1 B2 …"""
    if not others:
        if len(directories) != 2:
            raise BadInput(
                "DIR", " ".join(directories), "it is unclear which runs are A and which are B",
                "A B, or several runs per side: A1 A2 A3 --with B1 B2 B3",
            )  # fmt: skip
        return [directories[0]], [directories[1]]
    seen: set[Path] = set()
    for argument, name in [*(("DIR", name) for name in directories), *(("--with", name) for name in others)]:
        if Path(name).resolve() in seen:
            raise BadInput(argument, name, "named more than once", "each run's directory once")
        seen.add(Path(name).resolve())
    return list(directories), list(others)


def write_comparison(
    directories: Sequence[str],
    others: Sequence[str],
    out: str | None,
    margin: float,
    noises: Sequence[str],
    fail_on: Sequence[str],
) -> int:
    """Writes compare.md and compare.png, prints compare.md, and lists the points that fail a gate on stderr. Returns
    the exit code: 1 if any point fails. `noises` and `fail_on` are option values from the command line."""
    before, after = sides_of(directories, others)
    sides = load_all(before, "A"), load_all(after, "B")
    shared = in_both(*sides)
    every = list(dict.fromkeys(metric for a, b in shared.values() for metric in metrics_of(a, b)))
    gates, noise = [parse_gate(text, every) for text in fail_on], parse_noise(noises, every)
    if noises and len(before) + len(after) > 2:
        raise BadInput(
            "--run-noise", noises[0], "run noise is measured if there are several runs per side", "one run per side"
        )
    target = Path(out) if out else Path(after[0])
    found = [
        _compare(
            a,
            b,
            Rules(margin, noise_of(noise, metrics_of(a, b)), smallest_changes(gates, metrics_of(a, b))),
            gates,
            name if len(shared) > 1 else "",
        )
        for name, (a, b) in shared.items()
    ]
    sides_text = f"A: {', '.join(before)}. B: {', '.join(after)}. {_only_on_one_side(sides, shared)}".strip()
    blocks = [block for one in found for block in one.blocks]
    if len(found) == 1:  # one paragraph names the sides and explains the table
        sides_text, blocks = f"{sides_text} {blocks[0].text}", blocks[1:]
    return finish("Feedrate comparison", [Text(sides_text), *blocks], found, target, "compare.md")


def finish(title: str, blocks: list[Block], found: Sequence[Compared], target: Path, name: str) -> int:
    """Writes and prints the page, writes its plots, and lists the points that fail a gate. Returns the exit code."""
    text = to_markdown(title, blocks)
    write_all(pngs([one.drawing for one in found], target) | {target / name: text})
    say(f"{text}\n{target / name}")
    stopped = [line for one in found for line in one.stopped]
    for line in stopped:
        print(line, file=sys.stderr)
    return 1 if stopped else 0


def in_both(before: dict[str, Results], after: dict[str, Results]) -> dict[str, tuple[Results, Results]]:
    """The results of the experiments that both sides have; there must be at least one."""
    shared = {name: (before[name], after[name]) for name in before if name in after}
    if not shared:
        first = next(iter(after.values()))
        raise BadInput(
            "B",
            first.directories[0],
            f"has no experiment in common with A, only rows of {', '.join(after)}",
            f"rows of {', '.join(before)}",
        )
    return shared


def _only_on_one_side(sides: Sequence[dict[str, Results]], shared: dict) -> str:
    alone = [(letter, name) for letter, side in zip("AB", sides) for name in side if name not in shared]
    return " ".join(f"Only {letter} has rows of {name}." for letter, name in alone)


def _compare(a: Results, b: Results, rules: Rules, gates: Sequence, name: str) -> Compared:
    """Compares one experiment. `name`: the experiment's name if there are several, else empty."""
    matched, one_sided = match_some(a, b, rules)
    metrics = measured_metrics(a, b, matched)
    several = several_runs(a, b)
    reject_powerless(gates, matched, metrics, lambda metric: designs(rules, metric, several), rules.margin)
    overall, varying = summarise(matched, metrics, (a, b)), tables.varying(a, b)
    drawing = comparison.draw(matched, overall, metrics, name)
    blocks: list[Block] = [
        *([Chapter(f"Experiment {name}", a.experiment.description)] if name else []),
        Text(explanation(rules, several)),
        Bullets(
            [
                *([] if several else [ONE_RUN]),
                *_summary(matched, one_sided, metrics, several, rules.margin),
                *tail_sentences(matched, metrics, rules.smallest_changes, rules.margin),
            ]
        ),
        Heading(f"By {' and '.join(a.experiment.what.split(' + '))}"),
        overall_table(overall, metrics, a.experiment.what),
        Heading("Point by point"),
        point_table(matched, metrics, a, varying, "runs" if several else "repetitions", _counts),
        Picture(drawing.name, drawing.caption, "", ""),
        Heading("Not matched"),
        *_unmatched(one_sided, a.experiment.what),
        Heading("What differs between the environments"),
        *_differences(a, b),
    ]
    stopped = failures(gates, matched, one_sided, metrics_of(a, b), lambda point: point_name(a, point, varying))
    return Compared(blocks, drawing, [f"{name}: {line}" if name else line for line in stopped])


def several_runs(a: Results, b: Results) -> bool:
    return len(a.directories) + len(b.directories) > 2


def designs(rules: Rules, metric: Metric, several: bool) -> list[tuple[power.Design, Callable[[Ratio], float]]]:
    """The ways to collect more data, each with a function for the spread of a ratio."""
    if several:
        return [(power.runs(metric.resolution), lambda one: one.spread)]
    noise = rules.run_noise.get(metric.name, 0.0)
    return [
        (power.repetitions(noise, metric.resolution), lambda one: one.spread),
        (power.runs(metric.resolution), lambda one: one.spread + 2 * noise**2),
    ]


def explanation(rules: Rules, several: bool = False) -> str:
    """An explanation of ratios and verdicts."""
    shares = set(rules.run_noise.values())
    noise = ", ".join(f"{units.percent(share)} {name}" for name, share in rules.run_noise.items() if share)
    if noise and len(shares) == 1:
        noise = units.percent(shares.pop())
    means = (
        "Ratios are B / A of the geometric means of the runs, where the value of a run is the geometric mean of its "
        "repetitions. The 95 % interval is in brackets (Student's t on logarithms; the variance between runs is "
        "estimated from all points, after Kalibera and Jones). "
        if several
        else "Ratios are B / A of the geometric means of the repetitions, with the 95 % interval in brackets (Welch's t "
        "on logarithms). "
    )
    return means + (
        "FASTER and SLOWER: B is better or worse by more than "
        f"{units.percent(rules.margin)}; the test is for this difference, with Benjamini and Hochberg's correction for "
        f"many points (5 % false discoveries). SAME: the entire interval lies within ±{units.percent(rules.margin)}. "
        f"UNCLEAR: everything else; more {'runs' if several else 'repetitions'} may give a verdict."
        + (
            f" FASTER and SLOWER also exceed the noise between runs, which is assumed to be {noise}."
            if noise and not several
            else ""
        )
    )


def match_some(a: Results, b: Results, rules: Rules) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Like `match`, but raises BadInput if nothing matches."""
    matched, one_sided = match(a, b, rules)
    if matched.empty:
        raise BadInput(
            "B",
            b.directories[0],
            f"has no ok point in common with A '{a.directories[0]}'",
            "a directory with points of equal parameters",
        )
    return matched, one_sided


def metrics_of(a: Results, b: Results) -> tuple[Metric, ...]:
    """The metrics to compare, from the catalogues of both sides."""
    return tuple({metric.column: metric for side in (b, a) for metric in side.experiment.compared}.values())


def measured_metrics(a: Results, b: Results, matched: pd.DataFrame) -> list[Metric]:
    """The metrics that at least one point has on both sides."""
    return [metric for metric in metrics_of(a, b) if any(one.verdict for one in matched[metric.column])]


def match(a: Results, b: Results, rules: Rules = Rules()) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The points that are ok on both sides, with a judged Ratio for each metric, and the points ok on one side only."""
    metrics, found, one_sided = metrics_of(a, b), [], []
    several = several_runs(a, b)
    for point, sides in pairs(a, b):
        if all(sides):
            counts = [len(set(side["run"])) if several else len(side["run"]) for side in sides]
            found.append(point | {"repetitions": counts, "sides": sides})
        else:
            there, absent = ("A", b) if sides[0] else ("B", a)
            one_sided.append(point | {"ok in": there, "elsewhere": _status(absent, point)})
    matched = pd.DataFrame(found)
    for metric in metrics if found else ():
        if several:
            known = ratios_of_runs(*(_run_means(matched["sides"], metric, (a, b), n) for n in (0, 1)), metric.resolution)
        else:
            noise = rules.run_noise.get(metric.name, 0.0)
            known = [ratio(*(side[metric.column] for side in sides), metric.resolution, noise) for sides in matched["sides"]]
        shown = power.shown(known, metric, rules.smallest_changes.get(metric.name), rules.margin)
        matched[metric.column] = judge(known, metric, rules.margin, shown)
    return matched, pd.DataFrame(one_sided)


def _run_means(points: pd.Series, metric: Metric, sides: tuple[Results, Results], place: int) -> np.ndarray:
    """One row per point and one column per run of the side at `place`."""
    names = list(map(str, sides[place].directories))
    return np.array([run_means(one[place][metric.column], one[place]["run"], names) for one in points])


def tail_sentences(
    matched: pd.DataFrame, metrics: Sequence[Metric], smallest_changes: dict[str, float], margin: float
) -> list[str]:
    """Sentences on the points that have no verdict for a tail."""
    sentences = []
    for metric in metrics:
        size = smallest_changes.get(metric.name, power.TAIL_CHANGE)
        powers = power.of(list(matched[metric.column]), size, margin) if metric.tail else []
        blind = sum(one < power.LEAST for one in powers)
        if blind:
            sentences.append(
                f"{_heading(metric)} varies too much for a verdict at {blind} of {len(powers)} points: a change of "
                f"{units.percent(size)} would be found there in less than half of the cases. Their intervals are "
                f"valid; their verdict is {UNCLEAR}."
            )
    return sentences


def pairs(a: Results, b: Results) -> list[tuple[dict, list[dict | None]]]:
    """Every point that is ok on at least one side, with the repetitions of each metric and their `run`s by side."""
    axes = list(dict.fromkeys([*a.axes, *b.axes]))
    sides = [_samples(results, axes, metrics_of(a, b)) for results in (a, b)]
    found = []
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        point = dict(zip(axes, key))
        point["variant"] = a.experiment.variant_name(point)
        found.append((point, [side.get(key) for side in sides]))
    return found


def _samples(results: Results, axes: list[str], metrics: Sequence[Metric]) -> dict[tuple, dict]:
    """For each ok point, the repetitions of each metric."""
    ok = without_choosing_rows(results.cells[results.cells["status"] == "ok"], results.axes)
    points = ok.to_dict("records")
    lacking = [axis for axis in axes if axis not in ok]
    ok = ok.assign(**{axis: [results.experiment.missing(axis, point) for point in points] for axis in lacking})
    ok = ok.assign(**{metric.column: np.nan for metric in metrics if metric.column not in ok})
    columns = [metric.column for metric in metrics]
    return {
        key: {column: group[column].to_numpy() for column in columns} | {"run": group["directory"].to_numpy()}
        for key, group in ok.groupby(axes, sort=False)
    }


def _status(results: Results, point: dict) -> str:
    """The reason why a point has no partner: its status and reason on the other side."""
    cells = results.cells
    for axis in results.axes:
        cells = cells[cells[axis] == point[axis]]
    return f"{cells['status'].iloc[0]}: {cells['reason'].iloc[0]}" if len(cells) else "not run"


def summarise(matched: pd.DataFrame, metrics: Sequence[Metric], sides: tuple[Results, Results]) -> pd.DataFrame:
    """For each variant, the geometric mean of its points' ratios. The points are fixed: with several runs per side, a
    run's mean over the points is one observation; with one, the repetitions are."""

    def mean(points: pd.Series, metric: Metric) -> Ratio:
        if several_runs(*sides):
            means = (_run_means(points, metric, sides, place).mean(axis=0, keepdims=True) for place in (0, 1))
            return ratios_of_runs(*means, metric.resolution)[0]
        return mean_ratio([tuple(side[metric.column] for side in one) for one in points], metric.resolution)

    return pd.DataFrame(
        [
            {"variant": variant, "points": len(group)}
            | {metric.column: mean(group["sides"], metric) for metric in metrics}
            for variant, group in matched.groupby("variant", sort=False)
        ]
    )


def _summary(matched: pd.DataFrame, one_sided: pd.DataFrame, metrics: Sequence[Metric], several: bool, margin: float) -> list[str]:
    sentences = [f"{len(matched)} points match in all parameters; {len(one_sided)} are ok on one side only."]
    sentences += verdict_sentences(matched, metrics, margin)
    fewest = pd.Series([min(counts) for counts in matched["repetitions"]])
    if not several and (alone := int((fewest == 1).sum())):
        sentences.append(f"{alone} have only one repetition on a side, so their spread is unknown: {UNCLEAR}.")
    if several and (few := sum(_fewest(sides) < LEAST_IN_RUN for sides in matched["sides"])):
        sentences.append(
            f"{few} have fewer than {LEAST_IN_RUN} repetitions in some run: one outlier then counts as a property of the "
            "run and widens the intervals."
        )
    return sentences


def _fewest(sides: list[dict]) -> int:
    """The smallest number of repetitions that a run has of a point."""
    return min(int(count) for side in sides for count in np.unique(side["run"], return_counts=True)[1])


def verdict_sentences(matched: pd.DataFrame, metrics: Sequence[Metric], margin: float) -> list[str]:
    """One sentence per metric: the number of points with each verdict, and the change that could have been found."""
    sentences = []
    for metric in metrics:
        known = list(matched[metric.column])
        verdicts = pd.Series([one.verdict for one in known]).value_counts()
        counted = ", ".join(f"{verdicts.get(name, 0)} {name}" for name in VERDICTS)
        errors = [(one.error, one.freedom) for one in known if np.isfinite(one.error)]
        changes = [power.change(*one, len(errors), margin) for one in errors]
        middle = float(np.median(changes)) if changes else np.inf
        found = f" At half of the points a change of {units.percent(middle)} would be found in 80 % of the cases."
        sentences.append(f"{_heading(metric)}: {counted}.{found if np.isfinite(middle) else ''}")
    return sentences


def _heading(metric: Metric) -> str:
    return metric.name.replace("_", " ")


def overall_table(overall: pd.DataFrame, metrics: Sequence[Metric], what: str) -> Table:
    columns = [what, "points", *map(_heading, metrics)]
    return Table(
        columns,
        [
            [row["variant"], str(row["points"]), *(str(row[metric.column]) for metric in metrics)]
            for _, row in overall.iterrows()
        ],
        set(range(1, len(columns))),
    )


def _counts(point: pd.Series) -> str:
    return " / ".join(map(str, point["repetitions"]))


def point_table(
    matched: pd.DataFrame, metrics: Sequence[Metric], results: Results, shown: list[str], counted: str, count: Callable
) -> Table:
    """One row per point. `counted`: the heading of the column that `count` returns for a point."""
    works = ["workload"] if "workload" in matched else []
    columns = [results.experiment.what, *works, "point", counted, *map(_heading, metrics)]
    rows = [
        [
            point["variant"],
            *(point[work] for work in works),
            tables.place(results, point, shown) or units.NOTHING,
            count(point),
            *(f"{point[metric.column]} {point[metric.column].verdict}".strip() for metric in metrics),
        ]
        for _, point in matched.iterrows()
    ]
    return Table(columns, rows, set(range(2 + len(works), len(columns))))


def point_name(results: Results, point: pd.Series, shown: list[str]) -> str:
    """A point in one line of text."""
    work = [point["workload"]] if "workload" in point else []
    return ", ".join(part for part in [point["variant"], *work, tables.place(results, point, shown)] if part)


def _unmatched(one_sided: pd.DataFrame, what: str) -> list[Block]:
    if one_sided.empty:
        return [Text("Every point is ok on both sides.")]
    rows = []
    for (where, variant, elsewhere), group in one_sided.groupby(["ok in", "variant", "elsewhere"], sort=False):
        rows.append([where, variant, str(len(group)), elsewhere])
    return [Table(["ok only in", what, "points", "on the other side"], rows, {2})]


def _differences(a: Results, b: Results) -> list[Block]:
    sides = [_facts(results) for results in (a, b)]
    rows = [
        [name, *("\n".join(side.get(name, [units.NOTHING])) for side in sides)]
        for name in dict.fromkeys([*sides[0], *sides[1]])
        if sides[0].get(name) != sides[1].get(name)
    ]
    return [Table(["fact", "A", "B"], rows)] if rows else [Text("Nothing: both sides ran in the same environment.")]


def _facts(results: Results) -> dict[str, list[str]]:
    """Every environment fact and run setting, with its values."""
    facts: dict[str, list[str]] = {}
    named = [*results.environments, *({"run": run} for run in results.runs)]
    for name, value in (pair for one in named for pair in tables.flatten(one).items()):
        if str(value) not in facts.setdefault(name, []):
            facts[name].append(str(value))
    return facts
