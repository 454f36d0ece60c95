"""The table of points for every experiment: each point with its figures, its ratios to the limits, and its cost."""

import pandas as pd

from . import figure_text, flags, stability, stats, units
from .document import Block, Heading, Table, Text
from .load import Results
from .tables import figure_name, place, varying

TITLE = "Every point"
NOTE = (
    f"{figure_text.NOTE} Below a marked figure are its lowest and its highest repetition. Below a figure is also its "
    "ratio to the limit that binds it, measured / limit (for a distribution, that of its p50)."
)


def blocks(results: Results) -> list[Block]:
    """The table and its note; empty if no cell counts."""
    measured = stats.points(results)
    if measured.empty:
        return []
    return [Heading(TITLE), table(results, measured), Text(" ".join([NOTE, *stats.explained(results)]), "note")]


def table(results: Results, measured: pd.DataFrame) -> Table:
    """One row per point, in the order of variants, without columns for which no row has a value."""
    experiment, shown = results.experiment, varying(results)
    metrics = [
        (figure, percentile)
        for figure in experiment.figures.values()
        for percentile in (("p50", "p99") if figure.distribution else ("",))
        if measured[experiment.column(figure.name, percentile)].notna().any()
    ]
    works = measured["work"].nunique() > 1
    several = [*(["workload"] if works else []), "point"]
    costs = [name for name in ("host_threads", "sms") if measured[name].notna().any()]
    rows = []
    in_order = sorted(
        measured.to_dict("records"),
        key=lambda point: [(isinstance(point[by], str), point[by]) for by in ("rank", "work", *shown)],
    )
    for point in in_order:
        rows.append(
            [
                point["variant"],
                *([point["work"]] if works else []),
                place(results, point, shown) or units.NOTHING,
                units.number(point["repetitions"]),
                *(_figure(results, point, *metric) for metric in metrics),
                *(units.number(point[name]) for name in costs),
            ]
        )
    names = {"host_threads": "host threads", "sms": "SMs"}
    columns = [experiment.what, *several, "repetitions", *(figure_name(*metric) for metric in metrics)]
    columns += [names[name] for name in costs]
    return Table(columns, rows, set(range(1 + len(several), len(columns))))


def _figure(results: Results, point: dict, figure, percentile: str) -> str:
    metric, formatter = results.experiment.metric(figure, percentile), results.experiment.formatter(figure.name)
    column = metric.column
    value = figure_text.figure(formatter, point, column, figure.higher, flags.CODES)
    ratio, bound = point[f"{figure.name}_ratio"], point[f"{figure.name}_bound"]
    if bound and percentile in ("", "p50"):
        share = units.percent(ratio) + " of" if figure.higher else units.ratio(ratio) + " ×"
        value += f"\n{share} {bound}"
    return value + stability.mark(point, metric.name)
