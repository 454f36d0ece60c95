"""Capacities under a bound on latency: the searches of one point beside each other, and whether they agree."""

import numpy as np
import pandas as pd

from .. import flags, units
from ..document import Table
from ..load import COST, MACHINE, Results
from .open_load import describe


def answers(results: Results) -> pd.DataFrame:
    """One line for each variant, task, setting and bound: what its searches found. `intervals`: (low, high) of each;
    `overlap`: whether one rate lies within all, None of a single search; `low`, `high`, `limit`, `id`, `probes` and
    `rates` (what the tries of each came to) are of the search with the median `low`, which is NaN where none is ok."""
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
    answer = {name: told[name] for name in ("low", "high", "id", "directory", "probes", "rates")}
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
    """The medians over an answer's tries of the highest rate that was sustained, as all up to `low` were."""
    mine = _tries(answer, cells)
    mine = mine[(mine["rate"] <= answer["low"]) & flags.counting(mine)]
    if mine.empty:
        return None
    there = mine[mine["rate"] == mine["rate"].max()]
    return pd.concat([there[[*COST, *MACHINE]].median(), there[["delivery"]].iloc[0]])


def _tries(answer: pd.Series, cells: pd.DataFrame) -> pd.DataFrame:
    return cells[(cells["directory"] == answer["directory"]) & cells["id"].isin(answer["probes"])]


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


def evidence(found: pd.DataFrame, cells: pd.DataFrame) -> Table | None:
    """What the tries of each rate came to: from `low` to `high` of every answer, and of higher rates where a try kept
    the bound. None where no answer tells of its rates."""
    rows = []
    for _, line in found.iterrows():
        tries = _tries(line, cells)
        for rate in sorted({one["rate"] for one in line["rates"]}):
            parts = [one for one in line["rates"] if one["rate"] == rate]
            kept = any(one["kept"] for one in parts)
            if line["low"] <= rate <= line["high"] or (rate > line["high"] and kept):
                rows.append([*_asked(line), *_came_to(line, parts, tries[tries["rate"] == rate])])
    columns = ["task", "bound", "queue + transfer", "rate", "tries that kept the bound"]
    columns += ["kept it without the generator's lag", "with a late generator", "unsteady", "disturbed, not counted"]
    return Table(columns, rows, {3, 5, 6, 7, 8}) if rows else None


def _asked(line: pd.Series) -> list[str]:
    return [line["task"], bound(line), f"{line['variant']}\n{line['setting']}".strip()]


def _came_to(line: pd.Series, parts: list[dict], tries: pd.DataFrame) -> list[str]:
    judged = [f"{one['kept']} of {one['tries']}: {one['verdict']}" for one in parts]
    said = [text if one["part"] == 0 else f"again {text}" for one, text in zip(parts, judged)]
    disturbed = (tries["status"] == "invalid") & (tries["cause"] == flags.DISTURBED)
    counted = tries[~disturbed]
    without = counted.get(f"{line['percentile']}_without_own_lag", pd.Series(dtype=float))
    prompt = int(((without <= line["bound_ns"]) & (counted["status"] == "ok")).sum())
    return [
        units.messages_per_second(parts[0]["rate"]),
        "\n".join(said),
        f"{prompt} of {len(counted)}" if without.notna().any() else units.NOTHING,
        *(units.number(int(flags.having(counted, code).sum())) for code in (flags.LATE, flags.UNSTEADY)),
        units.number(int(disturbed.sum())),
    ]


def evidence_note(found: pd.DataFrame, cells: pd.DataFrame) -> str:
    """How to read that table, and how many tries count neither way."""
    note = (
        "The tries of each rate from the lower end of an answer to its upper end, and of higher rates where a try kept "
        "the bound. “Again”: when all searches had ended, the boundaries were judged afresh. Open: not judged."
    )
    mine = [(line["variant"], _tries(line, cells)) for _, line in found.iterrows()]
    lost = [(name, int((tries["cause"] == flags.DISTURBED).sum()), len(tries)) for name, tries in mine]
    total, every = sum(count for _, count, _ in lost), sum(count for *_, count in lost)
    if not total:
        return note
    whose = ", ".join(f"{name} {count} of {tries}" for name, count, tries in lost if count)
    return f"{note} {total} of {every} tries were disturbed and count neither way: {whose}."
