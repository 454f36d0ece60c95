"""Capacities under a latency bound: the searches of each point side by side, and whether they agree."""

import numpy as np
import pandas as pd

from .. import flags, units
from ..document import Table
from ..load import COST, MACHINE, Results
from .columns import TASK, VARIANT, Column, number
from .columns import table as table_of
from .open_load import describe

EMPTY = pd.Series(dtype=object)


_NO_LIMIT = {False: "none failed: the highest rate tried was sustained", True: "no rate is judged as not sustained"}


def answers(results: Results) -> pd.DataFrame:
    """One row for each variant, task, setting and bound, with the results of its searches. `intervals`: (low, high,
    undecided) of each search; `overlap`: whether one rate lies within all intervals, None for a single search. The
    other fields, among them `probes` and `rates` (the outcome of the tries at each rate), come from the search with
    the median `low`; `low` is NaN if no search is ok."""
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
    # One actual search, the median or the lower middle one, represents them all, so readers can inspect its row.
    median = (ok if len(ok) else searches).sort_values("low", kind="stable").iloc[(max(len(ok), 1) - 1) // 2]
    answer = {name: median[name] for name in ("low", "high", "undecided", "id", "directory", "probes", "rates")}
    return answer | {
        "intervals": list(zip(ok["low"], ok["high"], ok["undecided"])),
        "tries": [(len(one["probes"]), one["disturbed"]) for _, one in ok.iterrows()],
        "overlap": bool(ok["low"].max() < ok["high"].min()) if len(ok) > 1 else None,
        "limit": (median["limit"] or _NO_LIMIT[bool(median["undecided"])])
        if len(ok)
        else f"{median['status']}: {median['reason']}",
    }


def best_settings(found: pd.DataFrame) -> pd.DataFrame:
    """For each task, bound and variant, the setting with the highest capacity."""
    if found.empty:
        return found
    best = found.dropna(subset=["low"]).sort_values("low", ascending=False, kind="stable")
    return found.loc[sorted(best.drop_duplicates(["task", "slo", "variant"]).index, key=list(found.index).index)]


def spent(answer: pd.Series, cells: pd.DataFrame) -> pd.Series:
    """The cost at the highest sustained rate of an answer (`low` or below): medians over the tries at that rate. Empty
    if no try counts."""
    tries = _tries(answer, cells)
    tries = tries[(tries["rate"] <= answer["low"]) & flags.counting(tries)]
    highest = tries[tries["rate"] == tries["rate"].max()]
    return pd.concat([highest[[*COST, *MACHINE]].median(), highest[["delivery"]].iloc[0]]) if len(highest) else EMPTY


def _tries(answer: pd.Series, cells: pd.DataFrame) -> pd.DataFrame:
    return cells[(cells["directory"] == answer["directory"]) & cells["id"].isin(answer["probes"])]


def bound(line: pd.Series) -> str:
    """A bound in words: 'p99.9 ≤ 50 µs'."""
    percentile = line["percentile"].replace("p999", "p99.9")
    return f"{percentile} ≤ {units.tick(units.nanoseconds)(line['bound_ns'])}"


def interval(low: float, high: float, undecided: bool = False) -> str:
    """The interval that a search found, in words."""
    if undecided and low == 0 and np.isinf(high):
        return "undecided"
    if np.isinf(high):
        return f"{'undecided above' if undecided else 'at least'} {units.messages_per_second(low)}"
    if low == 0:
        return f"{'undecided below' if undecided else 'less than'} {units.messages_per_second(high)}"
    ends = [units.messages_per_second(end) for end in (low, high)]
    alike = ends[0].partition(" ")[2] == ends[1].partition(" ")[2]
    first = ends[0].partition(" ")[0] if alike else ends[0]
    return f"undecided between {first} and {ends[1]}" if undecided else f"{first} to {ends[1]}"


def _interval_lines(line: pd.Series) -> str:
    return "\n".join(interval(*ends) for ends in line["intervals"]) or units.NOTHING


def _tries_lines(line: pd.Series) -> str:
    return "\n".join(f"{tries}, {disturbed}" for tries, disturbed in line["tries"]) or units.NOTHING


BOUND = Column("bound", bound)
SEARCHED = (
    TASK,
    BOUND,
    VARIANT,
    number("capacity, one line per search", _interval_lines),
    number("tries, of them disturbed", _tries_lines),
    Column("intervals overlap", lambda line: {None: units.NOTHING, True: "yes", False: "no"}[line["overlap"]]),
    Column("why the next rate failed", lambda line: line["limit"]),
)


def table(found: pd.DataFrame) -> Table:
    """One row for each setting that was searched."""
    return table_of(SEARCHED, (line for _, line in found.iterrows()))


def evidence(found: pd.DataFrame, cells: pd.DataFrame) -> Table | None:
    """The outcome of the tries at each rate: the rates from `low` to `high` of every answer, and the higher rates at
    which a try met the bound. None if no answer records its rates."""
    rows = []
    for _, line in found.iterrows():
        tries = _tries(line, cells)
        for rate in sorted({one["rate"] for one in line["rates"]}):
            parts = [one for one in line["rates"] if one["rate"] == rate]
            kept = any(one["kept"] for one in parts)
            if line["low"] <= rate <= line["high"] or (rate > line["high"] and kept):
                identity = [column.cell(line) for column in (TASK, BOUND, VARIANT)]
                rows.append([*identity, *_outcome_cells(line, parts, tries[tries["rate"] == rate])])
    columns = ["task", "bound", "queue + transfer", "rate", "tries that met the bound"]
    columns += ["met it without the generator's lag", "with a late generator", "unsteady"]
    columns.append("disturbed" if _pooled(found) else "disturbed, not counted")
    return Table(columns, rows, {3, 5, 6, 7, 8}) if rows else None


def _pooled(found: pd.DataFrame) -> bool:
    """Whether all tries of a rate form one test. Answers before 2026-11-29 have a test for each part of the search, which
    leaves out disturbed tries."""
    return not any("part" in one for rates in found["rates"] for one in rates)


def _outcome_cells(line: pd.Series, parts: list[dict], tries: pd.DataFrame) -> list[str]:
    verdicts = [f"{part['kept']} of {part['tries']}: {part['verdict']}" for part in parts]
    verdicts = [f"again {text}" if part.get("part") else text for part, text in zip(parts, verdicts)]
    disturbed = (tries["status"] == "invalid") & (tries["cause"] == flags.DISTURBED)
    counted = tries[~disturbed] if "part" in parts[0] else tries
    without = counted.get(f"{line['percentile']}_without_own_lag", pd.Series(dtype=float))
    ran = (counted["status"] == "ok") | (disturbed[counted.index] & ~counted["behind"])
    prompt = int(((without <= line["bound_ns"]) & ran).sum())
    return [
        units.messages_per_second(parts[0]["rate"]),
        "\n".join(verdicts),
        f"{prompt} of {len(counted)}" if without.notna().any() else units.NOTHING,
        *(units.number(int(flags.having(counted, code).sum())) for code in (flags.LATE, flags.UNSTEADY)),
        units.number(int(disturbed.sum())),
    ]


_LISTED = (
    "The table lists the tries at each rate from the lower to the upper end of an answer, and at higher rates if a try "
    "met the bound."
)
_POOLED_NOTE = (
    f"{_LISTED} All tries of a rate form one test. “Sustained”: the tries reject that the bound is met in at most 70 % "
    "of tries. “Not sustained”: they reject that it is met in at least 95 %. “Undecided”: they reject both. “Open”: they "
    "reject neither, or there are fewer than ten."
)
_PARTS_NOTE = (
    f"{_LISTED} “Again”: the boundaries were judged a second time after all searches had ended. “Open”: the rate was not "
    "judged."
)


def evidence_note(found: pd.DataFrame, cells: pd.DataFrame) -> str:
    """An explanation of the table of `evidence`, and the number of disturbed tries."""
    pooled = _pooled(found)
    note = _POOLED_NOTE if pooled else _PARTS_NOTE
    tries = [(line["variant"], _tries(line, cells)) for _, line in found.iterrows()]
    lost = [(variant, int((some["cause"] == flags.DISTURBED).sum()), len(some)) for variant, some in tries]
    total, every = sum(count for _, count, _ in lost), sum(count for *_, count in lost)
    if not total:
        return note
    by_variant = ", ".join(f"{variant} {count} of {some}" for variant, count, some in lost if count)
    which = "disturbed; they count" if pooled else "disturbed and do not count"
    return f"{note} {total} of {every} tries were {which}: {by_variant}."
