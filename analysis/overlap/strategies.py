"""One table per pipeline: the results of each strategy with the same stages."""

import numpy as np
import pandas as pd

from .. import figure_text, stability, stats, tables, units
from ..document import Block, Heading, Table, Text
from ..load import Results
from . import points as overlap

COLUMNS = [
    "strategy", "items per second", "speedup", "overlap efficiency", "by stages alone", "stages, alone",
    "stages, concurrent",
]  # fmt: skip
NOTE = (
    f"{figure_text.NOTE} A strategy with its own axes (depth) is shown with their default values. “Speedup”: the time "
    "of a run of serial divided by that of a run of the strategy, with the runs taking turns. “Overlap efficiency”: the "
    "share of the possible saving in time that the strategy reaches. The possible saving is computed from the stages' "
    "times when they run concurrently; in the next column, from their times when they run alone. If overlapping could "
    "save less than a tenth of serial's time, there is no efficiency. “Stages”: the time per item in each stage, "
    "medians of the rows."
)


def blocks(results: Results) -> list[Block]:
    """The tables and their note; empty if no row counts."""
    measured = overlap.read(results)
    found: list[Block] = []
    for pipeline in overlap.pipelines(measured):
        some = measured[measured["pipeline"] == pipeline]
        found += [Heading(f"Pipeline {pipeline}"), Text(_where(results, some)), table(results, pipeline, some)]
    return [*found, Text(" ".join([NOTE, *stats.explained(results)]), "note")] if found else []


def _where(results: Results, some: pd.DataFrame) -> str:
    """The setting that the strategies share, in words."""
    first = overlap.compared(results, some).iloc[0]
    setting = tables.place(results, first, overlap.named_axes(results))
    return f"All figures are for {setting}, unless a row says otherwise."


def table(results: Results, pipeline: str, some: pd.DataFrame) -> Table:
    """One row per strategy. A strategy that was not measured at the common setting has a row for each of its own
    settings; the row of a strategy that could not run gives the reason."""
    shared = overlap.compared(results, some)
    rest = overlap.standard(results, some[~some["strategy"].isin(shared["strategy"])])
    rows = [[point["variant"], *_figures(results, point)] for _, point in shared.iterrows()]
    rows += [
        [f"{point['variant']}\n{tables.place(results, point, overlap.named_axes(results))}", *_figures(results, point)]
        for _, point in rest.iterrows()
    ]
    cells = results.cells[(results.cells["pipeline"] == pipeline) & ~results.cells["strategy"].isin(some["strategy"])]
    rows += tables.not_measured(cells, "strategy", overlap.place, len(COLUMNS))
    return Table(COLUMNS, rows, set(range(1, len(COLUMNS))))


def _figures(results: Results, point: pd.Series) -> list[str]:
    rate = results.experiment.rate
    items = figure_text.figure(results.experiment.formatter(rate), point, rate, True)
    speedup = ratio(point, "speedup")
    shares = [efficiency(results, point, column) for column in (overlap.EFFICIENCY, overlap.ALONE)]
    times = stage_times(results, point)
    alone, beside = (
        "\n".join(f"{name} {units.nanoseconds(one[kind])}" for name, one in times.items()) for kind in (0, 1)
    )
    return [items + stability.mark(point, "throughput"), speedup, *shares, alone or units.NOTHING, beside or units.NOTHING]


def efficiency(results: Results, point: pd.Series, column: str) -> str:
    """The efficiency with its interval and, if only some repetitions had something to save, their number."""
    saved, without = nothing_to_save(results, point, column)
    if point[column] != point[column]:
        return units.NOTHING if saved is None else f"{units.NOTHING}\n{_most(saved)} to save"
    some = f"\nin {point['repetitions'] - without} of {point['repetitions']} repetitions" if without else ""
    return ratio(point, column) + some


def ratio(point: pd.Series, column: str) -> str:
    """A figure with its interval; the figures of serial are constant by definition and have none."""
    if point["strategy"] == "serial" and point[f"{column}_least"] == point[f"{column}_greatest"]:
        return f"{point[column]:g}"
    return figure_text.figure(units.ratio, point, column, True)


def _most(saved: float) -> str:
    return units.percent(saved) if saved > 0 else "nothing"


def nothing_to_save(results: Results, point: pd.Series, column: str) -> tuple[float | None, int]:
    """For rows with too little to save: the median share of serial's time that could be saved, and their number."""
    saved = [one[column] for one in results.cells.loc[point["members"], "no_saving"] if column in one]
    return (float(np.median(saved)) if saved else None), len(saved)


def stage_times(results: Results, point: pd.Series) -> dict[str, tuple[float, float]]:
    """The stages' times in ns per item, alone and concurrent: medians of the point's rows."""
    stages = pd.DataFrame([stage for row in results.cells.loc[point["members"], "stage_times"] for stage in row])
    if stages.empty:
        return {}
    medians = stages.groupby("name", sort=False)[["alone_ns", "contended_ns"]].median()
    return {name: (one.alone_ns, one.contended_ns) for name, one in zip(medians.index, medians.itertuples())}
