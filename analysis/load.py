"""Loads result directories into tables: the cells, searches and limits of each experiment."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from . import bounds, catalogue, flags, rows, sections
from .catalogue import Catalogue, Experiment
from .errors import BadInput
from .rows import RUN, STATUSES  # noqa: F401  (other modules import STATUSES from here)
from .withdrawn import withdraw

NAN = float("nan")
COST = ("host_threads", "spinning_threads", "sms", "service_cores")
MACHINE = ("own_cores", "power_w")
FEEDING = "feeding"


@dataclass(frozen=True, eq=False)
class Results:
    """All results of one experiment from one or more result directories. Derived tables are cached because a report
    uses them many times."""

    experiment: Experiment
    directories: list[Path]
    cells: pd.DataFrame  # one row per repetition; see `_cell`
    capacities: pd.DataFrame  # one row per capacity search; see `_capacity`
    tries: list[float]  # duration in seconds of each try of a search for the best settings
    limits: pd.DataFrame  # one row per limit; see `_limit`
    environments: list[dict]  # the distinct environments, in order of appearance
    runs: list[dict]  # the distinct run settings
    axes: list[str]
    notes: list[str]  # problems found in the files
    tried: list[dict]  # the parameters of these tries

    @property
    def devices(self) -> list[str]:
        return sorted(self.cells["device"].unique())

    @cached_property
    def contest(self) -> set[str]:
        """The competing variants: all except those that deliver nothing and, if there are GPU rows, CPU-device ones."""
        known = pd.concat([lines[["variant", "idle", "device"]] for lines in (self.cells, self.capacities)])
        device = "cuda" if "cuda" in self.devices else "cpu"
        return set(known.loc[~known["idle"].astype(bool) & (known["device"] == device), "variant"])

    @cached_property
    def counted(self) -> pd.DataFrame:
        """The cells that figures use. A verdict on a change uses only the ok cells."""
        return self.cells[flags.counting(self.cells)]

    @cached_property
    def contending(self) -> "Results":
        """These results with only the cells of the competing variants."""
        return replace(self, cells=self.cells[self.cells["variant"].isin(self.contest)])

    @cached_property
    def closed(self) -> "Results":
        """These results with only the closed-load cells, which keep their window full. Only they show a queue's maximum
        rate and the latency of a lone message; in an open load the rate is given."""
        return replace(self, cells=self.cells[~self.cells["open"]])


def require_once(argument: str, folders: Sequence[str]) -> None:
    """Raises BadInput if a folder is given twice, because it would count as two independent runs."""
    if repeated := [folder for folder in folders if folders.count(folder) > 1]:
        raise BadInput(argument, repeated[0], "is given twice", "each run once")


def require_alike(runs: Sequence[Results]) -> None:
    """Raises BadInput if the runs differ in their revision or kind of device."""
    for what, key in (("revision", "revision"), ("kind of GPU", "gpu")):
        values = {str(one.get(key)) for run in runs for one in run.environments}
        if len(values) > 1:
            raise BadInput("DIR", ", ".join(sorted(values)), f"these runs differ in their {what}", f"runs of one {what}")


def load(directories: Iterable[str | Path], argument: str = "DIR", experiment: str = FEEDING) -> Results:
    """The results of one experiment in the directories; `argument` is the command-line argument, for messages."""
    paths = [Path(directory) for directory in directories]
    found = load_all(paths, argument)
    if experiment not in found:
        raise BadInput(
            argument, ", ".join(map(str, paths)), f"has only rows of {', '.join(found)}", f"rows of {experiment}"
        )
    return found[experiment]


def load_all(directories: Iterable[str | Path], argument: str = "DIR") -> dict[str, Results]:
    """The results in the directories by experiment, in order of appearance."""
    paths = [Path(directory) for directory in directories]
    notes: list[str] = []
    read = [(path, row) for path in paths for row in rows.read(path, argument, notes)]
    known = catalogue.merged(catalogue.read(path, argument) for path in paths)
    by_experiment: dict[str, list[tuple[Path, dict]]] = {}
    for path, row in read:
        by_experiment.setdefault(rows.experiment(row), []).append((path, row))
    measured = {name: some for name, some in by_experiment.items() if any(_is_measured(row) for _, row in some)}
    if not measured:
        tries = " except tries of a search" if any(row["kind"] == "cell" for _, row in read) else ""
        allowed = "a directory in which a sweep measured at least one cell"
        raise BadInput(argument, ", ".join(map(str, paths)), f"rows.jsonl has no cell row{tries}", allowed)
    # Problems in a file are reported once, with the first experiment.
    first = next(iter(measured))
    return {name: _results(known, name, paths, some, notes if name == first else []) for name, some in measured.items()}


LEAST_AFRESH = 2  # a single repetition has no interval


def without_choosing_rows(cells: pd.DataFrame, axes: list[str]) -> pd.DataFrame:
    """The cells without those by which a point was chosen as the best, if the point was then measured afresh: they are
    too good by chance. If that was interrupted after fewer than LEAST_AFRESH repetitions, all of the point's cells
    count, and it is treated as not measured afresh."""
    if cells["afresh_of"].isna().all():
        return cells
    groups = cells.groupby(["directory", *axes], sort=False, dropna=False)["afresh_of"]
    afresh = groups.transform("count")
    enough = afresh >= (groups.transform("size") - afresh).clip(upper=LEAST_AFRESH)
    cells = cells.assign(afresh_of=cells["afresh_of"].where(enough))
    return cells[cells["afresh_of"].notna() | ~enough]


def _is_measured(row: dict) -> bool:
    """Whether a row is a cell and not a try. A try is a short measurement for choosing settings; the chosen settings
    are measured again in separate rows."""
    return row["kind"] == "cell" and "search" not in row


def _results(
    known: Catalogue, name: str, paths: list[Path], mine: list[tuple[Path, dict]], notes: list[str]
) -> Results:
    experiment, section = known.experiment(name), sections.of(name)
    tries = [row for _, row in mine if row["kind"] == "cell" and "search" in row]
    measured = [(path, row) for path, row in mine if _is_measured(row)]
    cells = [(path, row) for path, row in measured if not row[RUN].get("settings", {}).get("traced")]
    traced = len(measured) - len(cells)
    if traced:
        notes.append(f"{traced} row(s) were measured with an activity recorder (--trace) and are left out")
    searches = [(path, row) for path, row in mine if row["kind"] == "capacity"]
    named = {axis for _, row in cells + searches for axis in row["params"]} | {*experiment.variant, "device"}
    axes = [axis for axis in experiment.axes if axis in named]
    axes += sorted(named - set(axes))
    frame = pd.DataFrame(
        [_cell(path, row, axes, experiment, section) for path, row in cells],
        columns=None if cells else list(_cell(Path(), _NOTHING, axes, experiment, section)),
    )
    limits = pd.DataFrame(
        [_limit(row, known) for _, row in mine if row["kind"] == "limit"],
        columns=list(_limit({"limit": {}, "status": "", RUN: {}}, known)),
    )
    capacities = pd.DataFrame(
        [_capacity(path, row, axes, experiment) for path, row in searches],
        columns=list(_capacity(Path(), _NOTHING, axes, experiment)),  # so that the columns exist even without a search
    )
    last = _last_limits(mine)
    frame["limits"] = [
        first | last.get((directory, row[RUN].get("id"), device), {})
        for (_, row), first, directory, device in zip(cells, frame["limits"], frame["directory"], frame["device"])
    ]
    frame["flags"] = _with_disturbed(frame, ["directory", "machine", *axes])
    if not section.explains_limits:
        withdraw(frame, experiment)
    doubted = frame.pop("doubt")
    for reason, some in doubted[doubted != ""].groupby(doubted):
        notes.append(f"{len(some)} row(s) have status ok although {reason}; they count as invalid")
    return Results(
        experiment,
        paths,
        *_name_variants(experiment, section, frame, capacities),
        [row.get("time", {}).get("duration_seconds", 0.0) for row in tries],
        limits,
        _distinct(row[RUN].get("environment", {}) for _, row in mine),
        _distinct(row[RUN]["settings"] for _, row in cells if row[RUN].get("settings")),
        axes,
        notes,
        [row["params"] for row in tries],
    )


_NOTHING = {"params": {}, "status": "skipped", RUN: {}}


def _cell(directory: Path, row: dict, axes: list[str], experiment: Experiment, section: sections.Section) -> dict:
    """One row as a flat dictionary. Missing numbers are NaN; figures are in the catalogue's units."""
    figures, cost, known_bounds, state = (row.get(name) or {} for name in ("figures", "cost", "bounds", "machine"))
    status, cause, reason = row["status"], row.get("cause", ""), row.get("reason", "")
    if status == "invalid" and cause == "generator":  # older rows have this cause instead of a flag
        status, cause, reason = "ok", "", ""
    doubt = section.doubt(row) if status == "ok" else None
    if doubt:
        status, (cause, reason) = "invalid", doubt
    flat = _identity(directory, row, axes, experiment)
    flat |= {"status": status, "cause": cause, "reason": reason, "doubt": doubt[1] if doubt else ""}
    flat["contradictions"] = section.contradictions(row)
    flat["flags"] = flags.of(row, experiment) + [flags.CONTRADICTED] * bool(flat["contradictions"])
    flat |= {f"ab_{name}": (row.get("ab") or {}).get(name, -1) for name in ("point", "start")}
    flat["afresh_of"] = (row.get("afresh") or {}).get("of", NAN)
    flat["ab_slices"] = (row.get("ab") or {}).get("slices", [])
    for figure in experiment.figures.values():
        value = figures.get(figure.name)
        percentiles = catalogue.PERCENTILES if figure.distribution else ("",)
        for which in percentiles:
            number = value.get(which, NAN) if which and isinstance(value, dict) else value
            flat[experiment.column(figure.name, which)] = NAN if number is None or isinstance(number, dict) else number
        bound = known_bounds.get(figure.name, {})
        flat[f"{figure.name}_bound"] = bounds.words(bound.get("bound"))
        flat[f"{figure.name}_ceiling"] = bounds.ceiling(bound.get("bound"))
        flat[f"{figure.name}_ratio"] = bound.get("ratio", NAN)
    flat["distributions"] = {
        name: value for name, value in figures.items() if isinstance(value, dict) and name in experiment.figures
    }
    main = flat["distributions"].get(experiment.time, {})
    flat |= {"histogram": main.get("histogram"), "sampled_every": main.get("sampled_every", 1)}
    flat["samples"] = main.get("samples", 1)
    flat |= {name: cost.get(name, NAN) for name in COST}
    flat["delivery"] = cost.get("delivery", "")
    flat["limits"] = row[RUN].get("limits") or {}
    flat["chosen"] = row.get("chosen") or {}
    flat["time"] = row.get("time") or {}
    flat["own_cores"] = state.get("host", {}).get("own_cores", NAN)
    flat["power_w"] = state.get("gpu", {}).get("power_w", NAN)
    flat["disturbances"] = state.get("disturbances") or []
    flat["stop"] = row.get("stop") or {}
    return flat | _open_load(row) | section.columns(row)


def _open_load(row: dict) -> dict:
    """The columns of an open load; they are NaN for a closed one, except `open`."""
    load = (row.get("details") or {}).get("load") or {}
    without = load.get("without_own_lag_ns", {})  # older rows lack this field
    return {
        "open": row["params"].get("arrivals", "closed") != "closed",
        "due_per_second": load.get("due_per_second", NAN),
        **{f"{name}_without_own_lag": without.get(name, NAN) for name in ("p50", "p99")},
        "behind": bool(load.get("behind")),
    }


def _last_limits(mine: list[tuple[Path, dict]]) -> dict[tuple[str, str | None, str], dict[str, float]]:
    """The limits from the limit rows by directory, run and device. A run row only has the limits known when the run
    started; limits that were measured again have a later row. If several limits have the same name, the first is that
    of the run's own GPU."""
    found: dict[tuple[str, str | None, str], dict[str, float]] = {}
    for path, row in mine:
        if row["kind"] == "limit" and row["status"] == "ok" and "value" in row["limit"]:
            key = (str(path), row[RUN].get("id"), row.get("device", ""))
            found.setdefault(key, {}).setdefault(row["limit"]["name"], row["limit"]["value"])
    return found


def _with_disturbed(cells: pd.DataFrame, keys: list[str]) -> pd.Series:
    """The cells' flags, with DISTURBED added to disturbed cells of points that have no other result. If such cells were
    left out, a machine that is never quiet would lose its best variants and rank others first."""
    result = cells["status"].isin(["ok", "unsustainable"]) | flags.limited(cells)
    lacking = ~result.groupby([cells[key] for key in keys], dropna=False).transform("any")
    disturbed = lacking & (cells["status"] == "invalid") & (cells["cause"] == flags.DISTURBED)
    codes = [[*some, flags.DISTURBED] if add else some for some, add in zip(cells["flags"], disturbed)]
    return pd.Series(codes, cells.index, dtype=object)


def _identity(directory: Path, row: dict, axes: list[str], experiment: Experiment) -> dict:
    """A row's origin and the axes of its point."""
    point = row["params"]
    return {
        "directory": str(directory),
        "id": row.get("id", ""),
        "repetition": row.get("repetition", 0),
        "machine": _machine(row[RUN].get("environment", {})),
        **{axis: point[axis] if axis in point else experiment.missing(axis, point) for axis in axes},
    }


def _capacity(directory: Path, row: dict, axes: list[str], experiment: Experiment) -> dict:
    """One search as a flat dictionary. `low` is 0 if no rate is sustained; `high` is infinite if all rates are. If the
    search is undecided, there may be such rates that were not judged. Rows before 2026-11-29 do not record it."""
    found, slo = row.get("capacity") or {}, row.get("slo") or {}
    return _identity(directory, row, axes, experiment) | {
        "status": row["status"],
        "reason": row.get("reason", ""),
        "slo": slo.get("text", "?"),
        "percentile": slo.get("percentile", "?"),
        "bound_ns": slo.get("bound_ns", NAN),
        "low": found.get("low", NAN),
        "high": found.get("high") or float("inf"),
        "undecided": found.get("undecided", False),
        "limit": found.get("limit", ""),
        "probes": [one["id"] for one in found.get("probes", ())],
        "disturbed": sum(one.get("disturbed", False) for one in found.get("probes", ())),
        "rates": found.get("rates", []),
    }


def _limit(row: dict, known: Catalogue) -> dict:
    limit = row["limit"]
    name = limit.get("name", "?")
    described = known.limits.get(name, catalogue.Limit(name))
    scope = limit.get("scope") or {}
    return {
        "name": name,
        "value": limit.get("value", NAN),
        "least": limit.get("least", limit.get("value", NAN)),
        "greatest": limit.get("greatest", limit.get("value", NAN)),
        "unit": described.unit or limit.get("unit", ""),
        "scope": " ".join(part for part in (scope.get("of", ""), scope.get("which", "")) if part),
        "status": row["status"],
        "reason": row.get("reason", ""),
        "method": limit.get("method", "") or described.method,
        "device": row.get("device", ""),
        "machine": _machine(row[RUN].get("environment", {})),
    }


def _machine(environment: dict) -> str:
    """A name for the hardware, which makes rows comparable; the host name changes with every container."""
    parts = (environment.get("gpu"), environment.get("cpu"), environment.get("cores"))
    return ", ".join(f"{part} cores" if isinstance(part, int) else str(part) for part in parts if part)


def machine_letters(cells: pd.DataFrame) -> dict[str, str]:
    """A letter for each machine, in order of appearance, because machine names are too long for a legend."""
    return {machine: chr(ord("A") + place) for place, machine in enumerate(cells["machine"].unique())}


def _name_variants(experiment: Experiment, section: sections.Section, *frames: pd.DataFrame) -> list[pd.DataFrame]:
    """Adds to all frames, consistently: `variant` (its name, with marks if there are several machines or devices), its
    `rank` for a stable order, `idle` (whether it does no work), and `work` (the workload with the axes that workloads
    own)."""
    columns = [*experiment.variant, "device", "machine"]
    known = pd.concat([frame[columns] for frame in frames]).drop_duplicates()
    letters = machine_letters(known)
    mark_device = known["device"].nunique() > 1
    own = [axis for axis in experiment.who if axis not in (*experiment.variant, "device", "workload")]

    def variant(cell) -> str:
        machine = f" @{letters[cell['machine']]}" if len(letters) > 1 else ""
        device = " [cpu]" if mark_device and cell["device"] == "cpu" else ""
        return experiment.variant_name(cell) + machine + device

    def rank(cell) -> tuple:
        return (*experiment.rank(cell), cell["device"], cell["machine"])

    def work(cell) -> str:
        stated = [axis for axis in own if cell.get(axis, 0) not in catalogue.DOES_NOT_APPLY]
        labels = [section.value_labels.get(axis, str)(cell[axis]) for axis in stated]
        return ", ".join([str(cell.get("workload", "")), *labels])

    order = {key: position for position, key in enumerate(sorted({rank(cell) for cell in known.to_dict("records")}))}
    needed = [*columns, "workload", *own]
    named = []
    for frame in frames:
        cells = frame[[column for column in needed if column in frame]].to_dict("records")
        named.append(
            frame.assign(
                variant=[variant(cell) for cell in cells],
                rank=[order[rank(cell)] for cell in cells],
                idle=[any(str(cell[axis]) in experiment.idle for axis in experiment.variant) for cell in cells],
                work=[work(cell) for cell in cells],
            )
        )
    return named


def _distinct(items: Iterable[dict]) -> list[dict]:
    return list({json.dumps(item, sort_keys=True): item for item in items}.values())
