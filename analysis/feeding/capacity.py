"""Capacities under a bound on latency: the searches of one point beside each other, and whether they agree."""

import numpy as np
import pandas as pd

from .. import units
from ..document import Table
from ..load import Results
from .open_load import describe


def answers(results: Results) -> pd.DataFrame:
    """One line for each variant, task, setting and bound: what its searches found. `intervals`: (low, high) of each;
    `overlap`: whether one rate lies within all, None of a single search; `low`, `high`, `limit`, `id` and `probes` are
    of the search with the median `low`, which is NaN where none is ok."""
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
    ok = searches[searches["status"] == "ok"]
    # The search that stands for all is a real one, so that there is a row to look at: of an even number the lower.
    told = (ok if len(ok) else searches).sort_values("low", kind="stable").iloc[(max(len(ok), 1) - 1) // 2]
    answer = {name: told[name] for name in ("low", "high", "id", "directory", "probes")}
    return answer | {
        "intervals": list(zip(ok["low"], ok["high"])),
        "overlap": bool(ok["low"].max() < ok["high"].min()) if len(ok) > 1 else None,
        "limit": (told["limit"] or "the highest rate was sustained, too")
        if len(ok)
        else f"{told['status']}: {told['reason']}",
    }


def best_settings(found: pd.DataFrame) -> pd.DataFrame:
    """For each task, bound and variant the setting of the highest capacity."""
    if found.empty:
        return found
    best = found.dropna(subset=["low"]).sort_values("low", ascending=False, kind="stable")
    return found.loc[sorted(best.drop_duplicates(["task", "slo", "variant"]).index, key=list(found.index).index)]


def spent(answer: pd.Series, cells: pd.DataFrame) -> pd.Series | None:
    """Of an answer's probes the one of the highest rate that was sustained, as all up to `low` were."""
    mine = cells[(cells["directory"] == answer["directory"]) & cells["id"].isin(answer["probes"])]
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
