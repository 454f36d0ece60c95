"""Capacities under a bound on latency: the searches of one point beside each other, and whether they agree."""

import numpy as np
import pandas as pd

from . import units
from .document import Table
from .load import Results
from .open_load import describe


def answers(results: Results) -> pd.DataFrame:
    """One line for each variant, task, setting and bound: what its searches found. `intervals`: (low, high) of each;
    `low` and `high`: their medians; `overlap`: whether one rate lies within all, None of a single search; `spent`: the
    cells that were measured at the rate `low` of the search `id`, for what they cost."""
    found = results.capacities
    if found.empty:
        return found
    keys = ["variant", "rank", "machine", "work", *results.axes, "slo", "percentile", "bound_ns"]
    lines = [dict(zip(keys, key)) | _answer(group) for key, group in found.groupby(keys, sort=False, dropna=False)]
    described = describe(pd.DataFrame(lines), results)
    order = pd.Series({task: place for place, task in enumerate(described["task"].unique())})
    place = described.assign(place=described["task"].map(order))
    return place.sort_values(["place", "bound_ns", "slo"], kind="stable").drop(columns="place")


def _answer(searches: pd.DataFrame) -> dict:
    ok = searches[searches["status"] == "ok"].sort_values("repetition")
    if ok.empty:
        first = searches.iloc[0]
        return {"intervals": [], "low": np.nan, "high": np.nan, "overlap": None, "id": first["id"], "probes": ()} | {
            "limit": f"{first['status']}: {first['reason']}", "directory": first["directory"]
        }  # fmt: skip
    low = ok["low"].median()
    told = ok.loc[(ok["low"] - low).abs().idxmin()]  # the search that stands for all
    return {
        "intervals": list(zip(ok["low"], ok["high"])),
        "low": low,
        "high": ok["high"].median(),
        "overlap": bool(ok["low"].max() < ok["high"].min()) if len(ok) > 1 else None,
        "limit": told["limit"] or "the highest rate was sustained, too",
        "id": told["id"],
        "directory": told["directory"],
        "probes": told["probes"],
    }


def best_settings(found: pd.DataFrame) -> pd.DataFrame:
    """For each task, bound and variant the setting of the highest capacity."""
    if found.empty:
        return found
    best = found.dropna(subset=["low"]).sort_values("low", ascending=False, kind="stable")
    return found.loc[sorted(best.drop_duplicates(["task", "slo", "variant"]).index, key=list(found.index).index)]


def spent(answer: pd.Series, cells: pd.DataFrame) -> pd.Series | None:
    """Of the sustained probes of an answer the one of the highest rate up to its `low`, for what it cost."""
    kept = {probe for probe, sustained in answer["probes"] if sustained}
    mine = cells[(cells["directory"] == answer["directory"]) & cells["id"].isin(kept)]
    mine = mine[mine["rate"] <= answer["low"]]
    return mine.loc[mine["rate"].idxmax()] if len(mine) else None


def bound(line: pd.Series) -> str:
    """A bound in words: 'p99.9 ≤ 50 µs'."""
    percentile = line["percentile"].replace("p999", "p99.9")
    return f"{percentile} ≤ {units.tick(units.nanoseconds)(line['bound_ns'])}"


def interval(low: float, high: float) -> str:
    """What a search found, in words."""
    if np.isinf(high):
        return f"at least {units.messages_per_second(low)}"
    if low == 0:
        return f"less than {units.messages_per_second(high)}"
    ends = [units.messages_per_second(end) for end in (low, high)]
    alike = ends[0].partition(" ")[2] == ends[1].partition(" ")[2]
    return f"{ends[0].partition(' ')[0] if alike else ends[0]} to {ends[1]}"


def table(found: pd.DataFrame) -> Table:
    """Every setting that was searched."""
    rows = [
        [
            line["task"],
            bound(line),
            f"{line['variant']}\n{line['setting']}".strip(),
            "\n".join(interval(*one) for one in line["intervals"]) or units.NOTHING,
            {None: units.NOTHING, True: "yes", False: "no"}[line["overlap"]],
            line["limit"],
        ]
        for _, line in found.iterrows()
    ]
    columns = ["task", "bound", "queue + transfer", "capacity, a search a line", "intervals overlap"]
    return Table([*columns, "why the next rate failed"], rows, {3})
