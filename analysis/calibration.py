"""`python -m analysis power DIR…`: the smallest change that a comparison finds, given the spread of measured rows.

The spread of repetitions is the variance of each point within each run. The spread of runs is the variance of a point's
mean over the runs of one revision that measured it. Both are shrunk towards the points' common variance, as in a
comparison.
"""

from collections.abc import Sequence

import numpy as np

from . import power, units
from .document import Table, markdown_table
from .errors import BadInput
from .load import Results, load_all, without_choosing_rows
from .shrinkage import shrink
from .runs import run_means
from .verdict import RUN_NOISE, Metric

MARGIN = 0.02  # `compare` judges a change by this margin unless told otherwise
COUNTS = (3, 5, 10, 20, 30)
SHARES = (50, 90)  # percentiles of the points' spread


def power_text(directories: Sequence[str]) -> str:
    """The table of each experiment."""
    loaded = [load_all([directory]) for directory in directories]
    names = dict.fromkeys(name for one in loaded for name in one)
    texts = [_text([one[name] for one in loaded if name in one]) for name in names]
    return "\n\n".join(f"Experiment {name}:\n\n{text}" if len(names) > 1 else text for name, text in zip(names, texts))


def _text(several: Sequence[Results]) -> str:
    metrics = list(dict.fromkeys(metric for one in several for metric in one.experiment.compared))
    points = max(len(_groups(one)) for one in several)
    rows = [row for metric in metrics for row in _rows(several, metric, points)]
    columns = ["metric", "measured", "spread", *(f"{count}" for count in COUNTS)]
    where = ", ".join(str(one.directories[0]) for one in several)
    note = (
        f"Each cell is the smallest change of one point among {points} that is found in {units.percent(power.USUAL)} "
        f"of the cases to be more than {units.percent(MARGIN)} with this number of repetitions or runs: at half of the "
        f"points / at nine in ten. “Spread”: the standard deviation of a repetition or run at such points. Rows: {where}."
    )
    if not rows:
        raise BadInput("DIR", where, "has no point with two repetitions", "rows with two or more repetitions per point")
    return "\n\n".join([markdown_table(Table(columns, rows, set(range(2, len(columns))))), note])


def _groups(results: Results):
    ok = without_choosing_rows(results.cells[results.cells["status"] == "ok"], results.axes)
    return {key: group for key, group in ok.groupby(results.axes, sort=False, dropna=False)}


def within(several: Sequence[Results], metric: Metric) -> tuple[np.ndarray, np.ndarray]:
    """The shrunken variance of a repetition's logarithm at each point of each run, and the degrees of freedom that the
    common prior adds to the point's own."""
    logs = [_logs(group, metric) for one in several for group in _groups(one).values()]
    return _shrunken([(values.var(ddof=1), len(values) - 1) for values in logs if len(values) > 1])


def between(several: Sequence[Results], metric: Metric) -> tuple[np.ndarray, np.ndarray]:
    """The same for a run's mean, at each point that several runs of one revision measured."""
    runs: dict[tuple, list[float]] = {}
    for one in several:
        for key, group in _groups(one).items():
            settings = tuple(sorted((axis, str(value)) for axis, value in zip(one.axes, key)))
            (mean,) = run_means(_values(group, metric), np.zeros(len(group)), [0])
            if np.isfinite(mean):
                runs.setdefault((str(one.environments[0].get("revision")), settings), []).append(mean)
    return _shrunken([(np.var(means, ddof=1), len(means) - 1) for means in runs.values() if len(means) > 1])


def _values(group, metric: Metric) -> np.ndarray:
    return group[metric.column].to_numpy(float) if metric.column in group else np.array([])


def _logs(group, metric: Metric) -> np.ndarray:
    values = _values(group, metric)
    usable = len(values) and np.all(np.isfinite(values) & (values > 0))
    return np.log(values) if usable else np.array([])


def _shrunken(known: Sequence[tuple[float, int]]) -> tuple[np.ndarray, np.ndarray]:
    if not known:
        return np.array([]), np.array([])
    variances, freedoms = (np.array(one, dtype=float) for one in zip(*known))
    shrunken, total = shrink(variances, freedoms)
    return shrunken, total - freedoms


def _rows(several: Sequence[Results], metric: Metric, points: int) -> list[list[str]]:
    name = metric.name.replace("_", " ")
    repetition, _ = within(several, metric)
    run, common = between(several, metric)
    assumed = power.repetitions(RUN_NOISE, metric.resolution)
    measured = power.runs(metric.resolution)
    rows = []
    if len(repetition):
        label = f"repetitions, one run per side, assumed noise between runs {units.percent(RUN_NOISE)}"
        rows.append([name, label, *_line(repetition, assumed.error, points)])
    if len(run):

        def with_prior(variance: float, count: int) -> tuple[float, float]:
            error, freedom = measured.error(variance, count)
            return error, freedom + float(common[0])

        rows.append([name, "runs per side", *_line(run, with_prior, points)])
    return rows


def _line(variances: np.ndarray, error, points: int) -> list[str]:
    """The spread and, for each count, the changes. The variance of a ratio is the sum of its two sides' variances."""
    typical = np.percentile(variances, SHARES)
    cells = [[units.percent(np.sqrt(variance)) for variance in typical]]
    for count in COUNTS:
        cells.append([_change(power.change(*error(2 * variance, count), points, MARGIN)) for variance in typical])
    return [" / ".join(cell) for cell in cells]


def _change(share: float) -> str:
    return units.percent(share) if share <= 1 else "over 100 %"
