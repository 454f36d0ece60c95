"""Aggregation: repetitions into points with intervals, the best points, and an interval over points."""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

import numpy as np
import pandas as pd

from . import flags, interval, sections, units
from .catalogue import PERCENTILES
from .interval import Between
from .load import COST, MACHINE, Results, without_choosing_rows
from .stability import judged



def numbers(results: Results) -> list[str]:
    """The cells' columns for which a point has a median."""
    experiment = results.experiment
    ratios = [f"{figure}_ratio" for figure in experiment.figures]
    return [*experiment.columns, *ratios, *COST, *MACHINE, *sections.of(experiment.name).numbers]


def points(results: Results) -> pd.DataFrame:
    """One row per point of the sweep. If some rows of a point were measured afresh after it had been chosen as the best,
    only they count; `afresh_of` is the number that it was chosen from. Over the point's rows that count, it has the median of each metric, the range as
    `<metric>_least` and `<metric>_greatest` and, for figures, the median's 95 % interval as `<metric>_low` and
    `<metric>_high`. `unstable` lists the metrics whose range is too wide; `flags` counts the rows by warning; `limited`
    is true if the load generator limited any row, so that the figures are bounds.
    """
    return _points(results).copy()


@lru_cache(maxsize=32)  # a dozen parts of a report use the same points
def _points(results: Results) -> pd.DataFrame:
    valid = results.counted.assign(row=lambda cells: cells.index, limited=flags.limited)
    keys = ["variant", "rank", "work", "machine", *results.axes]
    choosing = valid[valid["afresh_of"].isna()]
    valid = without_choosing_rows(valid, keys)
    groups = valid.groupby(keys, sort=False, dropna=False)
    metrics = ranges(groups, numbers(results))
    limits = [f"{figure}_{what}" for figure in results.experiment.figures for what in ("bound", "ceiling")]
    names = groups[[*limits, "delivery"]].first()
    members = groups["row"].agg(list).rename("members")
    warned = groups["flags"].agg(flags.counts)
    bound = groups["limited"].any()
    fresh = groups["afresh_of"].max()
    found = pd.concat([metrics, names, groups.size().rename("repetitions"), members, warned, bound, fresh], axis=1)
    if fresh.notna().any():  # a point is chosen by its first rows; those of a search are not in the table
        columns = list(results.experiment.columns)
        first = choosing.groupby(keys, sort=False, dropna=False)[columns].median().reindex(found.index)
        found = found.join(first.fillna(found[columns]).add_suffix("_rank"))
    every = results.cells.groupby(keys, sort=False, dropna=False)
    found = judged(results.experiment, found, ends(every)).reset_index()
    settings = equal_settings(results, found)
    linear = sections.of(results.experiment.name).linear
    return with_intervals(found, valid, results.experiment.columns, settings, rounded(results), linear)


def ranges(groups, columns: Sequence[str]) -> pd.DataFrame:
    """The median, the minimum and the maximum of each column."""
    some = groups[list(columns)]
    # Three passes over all columns: `agg` would process each column separately and take ten times as long.
    parts = {"": some.median(), "_least": some.min(), "_greatest": some.max()}
    named = pd.concat([part.add_suffix(suffix) for suffix, part in parts.items()], axis=1)
    return named[[f"{name}{suffix}" for name in columns for suffix in parts]]


def with_intervals(
    found: pd.DataFrame, cells: pd.DataFrame, columns: Iterable[str], settings: np.ndarray, rounded: set[str],
    linear: Collection[str] = (),
) -> pd.DataFrame:  # fmt: skip
    """Adds `<column>_low` and `<column>_high` to `found`. `settings`: equal numbers for points with equal settings;
    `rounded`: the columns of percentiles; `linear`: the columns with additive instead of multiplicative noise."""
    if found.empty:
        return found.assign(**{f"{column}_{end}": [] for column in columns for end in ("low", "high")})
    owner = {row: place for place, members in enumerate(found["members"]) for row in members}
    columns = list(columns)
    values = cells.loc[list(owner), columns].to_numpy(float)
    adds = np.array([column in linear for column in columns], bool)  # dtype for an empty list
    usable = np.where(np.isfinite(values) & (adds | (values > 0)), values, np.nan)
    scaled = np.where(adds, usable, np.log(np.where(adds, np.nan, usable)))
    groups = pd.DataFrame(scaled, columns=columns).groupby(list(owner.values()))
    of_places = (groups.mean(), groups.var(), groups.count())
    means, variances, counts = (some.reindex(range(len(found))) for some in of_places)
    complete = counts.eq(found["repetitions"].to_numpy(), axis=0)  # otherwise a value has no logarithm
    variances, added = variances.where(complete), {}
    for column in columns:
        low, high, _ = interval.ends(
            found[column].to_numpy(float), means[column].to_numpy(), variances[column].to_numpy(),
            counts[column].to_numpy(), settings, column in rounded, column in linear,
        )  # fmt: skip
        added |= {f"{column}_low": low, f"{column}_high": high}
    return pd.concat([found, pd.DataFrame(added, index=found.index)], axis=1)


def rounded(results: Results) -> set[str]:
    """The columns whose values are the middle of a histogram's bucket."""
    experiment = results.experiment
    distributions = [figure.name for figure in experiment.figures.values() if figure.distribution]
    return {experiment.column(name, which) for name in distributions for which in PERCENTILES}


def equal_settings(results: Results, found: pd.DataFrame) -> np.ndarray:
    """A number for each point; points with equal settings in effect have the same number. A setting that the queue
    chose counts like a requested one."""
    firsts = [members[0] for members in found["members"]]
    chosen = results.cells.loc[firsts, "chosen"]
    asked = found[["machine", *results.axes]].to_dict("records")
    settings = [
        tuple(sorted((name, str(value)) for name, value in (point | one).items())) for point, one in zip(asked, chosen)
    ]
    return pd.factorize(pd.Series(settings, dtype=object))[0]


@lru_cache(maxsize=8)
def apart(results: Results) -> Between:
    """The variation of the rate between points with equal settings that were measured separately."""
    rate = results.experiment.rate
    found = points(results)
    if found.empty or rate not in found:
        return Between()
    logs = [np.log(results.cells.loc[members, rate].astype(float)) for members in found["members"]]
    means, variances, counts = (np.array([f(one) for one in logs]) for f in (np.mean, lambda one: one.var(ddof=1), len))
    *_, found_apart = interval.ends(
        found[rate].to_numpy(float), means, variances, counts, equal_settings(results, found), False
    )
    return found_apart


def explained(results: Results) -> list[str]:
    """Sentences below a table of points on the contents of the intervals, the meaning of the marks and unused rows."""
    cells = results.cells
    sentences = [
        separate_points_sentence(results), flags.legend(cells), taken_back(results), flags.limited_sentence(cells),
        left_out(cells),
    ]  # fmt: skip
    return [one for one in sentences if one]


def taken_back(results: Results) -> str:
    """A sentence if limits are taken back (withdrawn.py), because rows exceed them; else empty."""
    if sections.of(results.experiment.name).explains_limits:
        return ""
    some = results.cells[flags.counting(results.cells)]
    if not len(some) or not flags.having(some, flags.ABOVE_LIMIT).any():
        return ""
    return "A limit that a row beats is wrong, so no share of it is shown."


_WHY = {
    "disturbed": "disturbed",
    "driver_unknown": "with an unknown limit of the load generator",
    "no_results": "without results",
    "wrong_results": "with wrong results",
    "interrupted": "interrupted",
    "hung": "hung",
}


def left_out(cells: pd.DataFrame) -> str:
    """The number of rows that no figure uses, by reason; empty if there are none."""
    bad = cells[~flags.counting(cells) & (cells["status"] != "unsustainable")]
    if bad.empty:
        return ""
    why = bad["cause"].map(_WHY).fillna(bad["status"]).value_counts()
    parts = ", ".join(f"{count} {word}" for word, count in why.items())
    return f"{len(bad)} of {len(cells)} rows are not used: {parts}."


def separate_points_sentence(results: Results) -> str:
    """A sentence on the variation that the intervals include in addition to the variation of the repetitions."""
    found = apart(results)
    if not found.freedom:
        return (
            "These rows do not show how much points with equal settings differ if they are measured separately, so the "
            "intervals do not include that variation."
        )
    share = units.percent(np.sqrt(found.variance))
    return (
        f"The rates of points with equal settings that were measured separately (degrees of freedom: {found.freedom}) "
        f"have a standard deviation of {share} beyond that of their repetitions; the intervals include it."
    )


def ends(groups) -> pd.DataFrame:
    """The input that `judged` needs from all rows of each point, including rows that are not ok."""
    return groups.agg(stops=("stop", list), directories=("directory", list))


def counted(candidates: pd.DataFrame) -> pd.DataFrame:
    """Adds `of`: the number of points, or tries of a search, from which a point of its variant is chosen."""
    count = candidates.groupby("variant", sort=False)["variant"].transform("size")
    return candidates.assign(of=candidates["afresh_of"].fillna(count))


def rank(candidates: pd.DataFrame, metric: str) -> pd.Series:
    """The values by which the best point is chosen: those of the rows before it was measured afresh."""
    return candidates[f"{metric}_rank" if f"{metric}_rank" in candidates else metric]


def chosen_sentence(named: pd.DataFrame, shown: bool = True) -> str:
    """How the named points were chosen; `named` has a line per point, from `counted`. `shown`: the table has “1 of N”.
    Empty if none was chosen."""
    several = named[named["of"] > 1] if len(named) else named
    if several.empty:
        return ""
    least, most = int(several["of"].min()), int(several["of"].max())
    of = f"{most}" if least == most else f"{least} to {most}"
    begin = "“1 of N”: the point was" if shown else "Each point was"
    count = "N" if shown else of
    lucky = int(several["afresh_of"].isna().sum())
    if not lucky:
        return f"{begin} chosen from {count} points or tries and then measured afresh."
    some = "" if lucky == len(several) else f" (except for {len(several) - lucky} of {len(several)} points)"
    return (
        f"{begin} chosen from {count} points by the same rows that give its figure, which is therefore too good by "
        f"chance: it was not measured afresh{some}."
    )


def best(candidates: pd.DataFrame, by: str, metric: str, largest: bool = True) -> pd.DataFrame:
    """For each value of the `by` column, the point with the best median of `metric`, in the variants' order."""
    known = candidates.dropna(subset=[metric])
    order = rank(known, metric).sort_values(ascending=not largest, kind="stable").index
    return known.loc[order].drop_duplicates(by).sort_values("rank")


def main_work(measured: pd.DataFrame) -> str:
    """The workload in latency figures: echo, which adds the least latency, or else the workload measured most often."""
    works = measured["work"]
    return "echo" if (works == "echo").any() else works.value_counts().index[0]
