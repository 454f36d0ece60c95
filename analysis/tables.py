"""Tables of every report: axes, limits, cells that are not ok, and the environment; also axis values in words."""

import re
from collections.abc import Callable

import pandas as pd

from . import sections, units
from .catalogue import DOES_NOT_APPLY, Figure
from .document import Table
from .load import Results
from .sections import Section

_MAY_DIFFER = {"command"}  # changes with every resume, without an effect on the rows


def place(results: Results, point, shown: list[str]) -> str:
    """A point's position in the sweep: the given axes, without those that it lacks, do not apply or have their default."""
    axes = results.experiment.axes
    named = [
        axis
        for axis in shown
        if pd.notna(point[axis]) and point[axis] not in (axes[axis].omitted if axis in axes else DOES_NOT_APPLY)
    ]
    return ", ".join(value_label(results, axis, point[axis]) for axis in named)


def value_label(results: Results, axis: str, value) -> str:
    section = sections.of(results.experiment.name)
    return axis_value_label(section, name(results, axis), axis, value)


def axis_value_label(section: Section, name: str, axis: str, value) -> str:
    """A value of an axis in words: 'window 8', '64 B'."""
    if axis in section.value_labels:
        return section.value_labels[axis](value)
    if axis.endswith("_bytes"):
        return f"{name} {units.size(value)}"
    return f"{name} {value:g}" if isinstance(value, (int, float)) else f"{name} {value}".replace("_", " ")


def name(results: Results, axis: str) -> str:
    """The name of an axis in prose."""
    known = results.experiment.axes.get(axis)
    own = known.name if known and axis.endswith("_bytes") else axis
    return sections.of(results.experiment.name).names.get(axis, own)


def figure_name(figure: Figure, percentile: str = "") -> str:
    """The name of a figure in prose: 'messages per second', 'round trip p50'."""
    return f"{figure.stem} {percentile}".strip().replace("_", " ")


def varying(*several: Results) -> list[str]:
    """The axes that distinguish the points of a variant: those with more than one value among the points to which they
    apply."""
    experiment = several[0].experiment
    cells = pd.concat([results.cells for results in several])

    def varies(axis: str) -> bool:
        known = experiment.axes.get(axis)
        if known and known.owners:
            members = cells[[one for one in experiment.member_axes if one in cells]]
            own = members.isin(known.owners).any(axis=1)
            return cells.loc[own, axis].nunique() > 1
        if known and known.automatic:  # 0 is a value: the member chose
            return cells[axis].nunique() > 1
        return len(set(cells[axis]) - DOES_NOT_APPLY) > 1

    known = dict.fromkeys(axis for results in several for axis in results.axes)
    return [axis for axis in known if axis not in experiment.who and varies(axis)]


def axes(results: Results) -> Table:
    """Every axis of the sweep with all its values in the rows."""
    return Table(
        ["axis", "values"],
        [[name(results, axis), _values(results, axis, results.cells[axis])] for axis in results.axes],
    )


def _values(results: Results, axis: str, column: pd.Series) -> str:
    """The axis's values in ascending order, without the values that mean “does not apply”."""
    labels = sections.of(results.experiment.name).value_labels
    formatter = labels.get(axis, lambda value: _count(value) if isinstance(value, (int, float)) else str(value))
    formatter = units.size if axis.endswith("_bytes") else formatter
    values = sorted(set(column) - DOES_NOT_APPLY, key=lambda value: (isinstance(value, str), value))
    return ", ".join(map(formatter, values)) or "does not apply"


def _count(value: float) -> str:
    return f"{value:g}" if value < 100_000 else units.tick(units.number)(value)


def limits(results: Results) -> Table:
    """The limits by scope, machine and device: the median of each limit's readings, with their range."""
    found = results.limits
    several = [of for of in ("device", "machine") if found[of].nunique() > 1]
    rows = []
    for (name, scope, machine, device), group in found.groupby(["name", "scope", "machine", "device"], sort=False):
        ok = group[group["status"] == "ok"]
        unit = group["unit"].iloc[0]
        formatter = units.of_unit(unit, results.experiment.kinds) if unit else units.unit_of(name)
        value = (
            units.spread(formatter, ok["value"].median(), ok["least"].min(), ok["greatest"].max())
            if len(ok)
            else f"{group['status'].iloc[-1]}: {group['reason'].iloc[-1]}"
        )
        where = {"device": device, "machine": machine}
        rows.append([units.words(name), value, scope, group["method"].iloc[0], *(where[of] for of in several)])
    return Table(["limit", "value", "scope", "how it is measured", *several], rows, {1})


def not_ok(results: Results) -> Table:
    """Every cell that is not ok. Reasons that differ only in numbers share a line, which shows the first of them."""
    bad = results.cells[results.cells["status"] != "ok"]
    bad = bad.assign(pattern=bad["reason"].str.replace(r"\d+(\.\d+)?", "#", regex=True))
    shown, axes = varying(results), results.experiment.axes
    order = {"failed": 0, "invalid": 1, "unsustainable": 2, "skipped": 3}
    groups = sorted(bad.groupby(["status", "pattern", "variant"], sort=False), key=lambda item: order[item[0][0]])
    rows = []
    for (status, _, variant), group in groups:
        others = group["reason"].nunique() - 1
        reason = group["reason"].iloc[0] + (f"\n(and {others} more with other numbers)" if others else "")
        where = "; ".join(
            f"{name(results, axis)} {_values(results, axis, group[axis])}"
            for axis in shown
            if set(group[axis]) - (axes[axis].omitted if axis in axes else DOES_NOT_APPLY)
        )
        rows.append([status, reason, variant, str(len(group)), where or "the only point"])
    return Table(["status", "reason", results.experiment.what, "rows", "parameters"], rows, {3})


def not_measured(cells: pd.DataFrame, axis: str, key: Callable, columns: int) -> list[list[str]]:
    """A line for each variant of these cells, with the reason of its first cell. `key`: the sort key of the axis."""
    firsts = sorted(cells.drop_duplicates("variant").to_dict("records"), key=lambda cell: key(cell[axis]))
    return [
        [cell["variant"], f"{cell['status']}: {cell['reason']}", *[units.NOTHING] * (columns - 2)] for cell in firsts
    ]


def environment(results: Results) -> tuple[Table, list[str]]:
    """The environment table, and the names of facts that differ between rows although they should be equal."""
    flat = [flatten(one) for one in results.environments]
    rows, differing = [], []
    for name in dict.fromkeys(name for one in flat for name in one):
        values = list(dict.fromkeys(_fact(name, one[name]) for one in flat if name in one))
        if len(values) > 1 and name not in _MAY_DIFFER:
            differing.append(name)
        if len(values) > 1:
            values = values if len(values) <= 6 else [*values[:6], f"and {len(values) - 6} more"]
        rows.append([name, "\n".join(values), "differs" if len(values) > 1 else ""])
    return Table(["fact", "value", ""], rows), differing


def flatten(nested: dict, prefix: str = "") -> dict:
    """{"redis": {"version": 7}} as {"redis.version": 7}."""
    flat = {}
    for name, value in nested.items():
        if isinstance(value, dict):
            flat |= flatten(value, prefix if name == "services" else f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def _fact(name: str, value) -> str:
    if value is None:
        return units.NOTHING
    if name.endswith("_bytes"):
        return units.size(value)
    text = f"{value}"
    return re.sub(r"\s+", " ", text) if text else '""'
