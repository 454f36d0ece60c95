"""The catalogue that a run keeps next to its rows (`feedrate list --json`): experiments, their figures and axes, the
members of the axes, limits and units. It is the analysis's only source of knowledge about an experiment."""

import json
import lzma
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path

from . import sections, units
from .errors import BadInput
from .verdict import BUCKET_NOISE, Metric

FILE = "catalogue.json"
PACKED = f"{FILE}.xz"
PERCENTILES = ("min", "mean", "p50", "p90", "p99", "p999", "max")
TAILS = ("p99", "p999", "max")
JUDGED = ("p50", "p99")  # percentiles of a distribution that `compare` judges
DOES_NOT_APPLY = {0, "none"}


@dataclass(frozen=True)
class Axis:
    """A coordinate of a point. `owners`: the members that have it; if empty, every point has it."""

    key: str
    name: str
    owners: tuple[str, ...] = ()
    kind: str = "number"
    default: object = 0
    values: tuple[str, ...] = ()
    automatic: bool = False  # whether 0 means that the member chooses the value
    description: str = ""

    @property
    def nothing(self) -> object:
        """The value at a point to which the axis does not apply."""
        return 0 if self.kind == "number" else "none"

    @property
    def omitted(self) -> set:
        """The values that the prose leaves out: the axis does not apply, or the member's default is in effect."""
        return DOES_NOT_APPLY | ({"auto", self.default} if self.owners and self.kind == "word" else set())


@dataclass(frozen=True)
class Figure:
    """A figure that a cell measures: a number or a distribution."""

    name: str
    unit: str = ""
    higher: bool = True
    distribution: bool = False
    headline: bool = False
    unstable_from: object = None  # a factor, or a factor for each percentile
    description: str = ""

    @property
    def stem(self) -> str:
        return self.name.removesuffix("_ns")

    @property
    def judged(self) -> tuple[str, ...]:
        """The parts that `compare` judges: the percentiles of a distribution, or '' for the number itself."""
        if not self.headline:
            return ()
        return JUDGED if self.distribution else ("",)


@dataclass(frozen=True)
class Experiment:
    name: str
    description: str = ""
    variant: tuple[str, ...] = ()  # the axes that identify a variant
    rate: str = ""  # the figure of throughput
    time: str = ""  # the figure of latency
    figures: dict[str, Figure] = field(default_factory=dict)
    axes: dict[str, Axis] = field(default_factory=dict)  # in the catalogue's order
    members: dict[str, list[dict]] = field(default_factory=dict)  # the members of each axis
    kinds: dict[str, str] = field(default_factory=dict)  # unit -> kind of formatting

    def formatter(self, figure: str):
        return units.of_unit(self.figures[figure].unit, self.kinds)

    def column(self, figure: str, percentile: str = "") -> str:
        """The column of a figure in the cells. Percentiles of the main time are named without the figure."""
        if not percentile:
            return figure
        return percentile if figure == self.time else f"{self.figures[figure].stem}_{percentile}"

    def metric(self, figure: Figure, percentile: str = "") -> Metric:
        column = self.column(figure.name, percentile)
        bounds = figure.unstable_from
        return Metric(
            column,
            "throughput" if figure.name == self.rate else column,
            figure.higher,
            BUCKET_NOISE if percentile else 0.0,
            f"{figure.name}.{percentile}" if percentile else figure.name,
            bounds.get(percentile) if isinstance(bounds, dict) else bounds,
            percentile in TAILS,
        )

    @cached_property
    def compared(self) -> tuple[Metric, ...]:
        """The metrics that `compare` judges: the headline figures, unless the experiment's section overrides them."""
        known = sections.of(self.name).compared
        return tuple(
            self.metric(figure, percentile)
            for figure in self.figures.values()
            for percentile in known.get(figure.name, figure.judged)
        )

    @cached_property
    def judged(self) -> tuple[Metric, ...]:
        """The metrics that can make a point unstable: the main rate and time, which `feedrate` judges as well."""
        found = [
            self.metric(figure, percentile)
            for figure in self.figures.values()
            if figure.name in (self.rate, self.time)
            for percentile in (figure.unstable_from if isinstance(figure.unstable_from, dict) else ("",))
        ]
        return tuple(metric for metric in found if metric.unstable_from)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The cells' columns for all figures."""
        return tuple(
            self.column(figure.name, percentile)
            for figure in self.figures.values()
            for percentile in (PERCENTILES if figure.distribution else ("",))
        )

    @cached_property
    def idle(self) -> set[str]:
        """The members that do no work and therefore do not compete."""
        known = [one for axis in self.variant for one in self.members.get(axis, ())]
        return {one["name"] for one in known if not one.get("works", True)}

    def applies(self, axis: str, point) -> bool:
        """Whether the axis applies to a point."""
        owners = self.axes[axis].owners if axis in self.axes else ()
        return not owners or any(point.get(one) in owners for one in self.member_axes)

    @cached_property
    def member_axes(self) -> tuple[str, ...]:
        """The axes whose values are members; members may own other axes."""
        return tuple(dict.fromkeys([*self.variant, *(axis for axis in self.axes if axis in self.members)]))

    @cached_property
    def who(self) -> tuple[str, ...]:
        """The axes that a point's variant and work already include."""
        works = [one["name"] for one in self.members.get("workload", ())]
        own = [key for key, axis in self.axes.items() if axis.owners and set(axis.owners) <= set(works)]
        return (*self.variant, "workload", "device", *own)

    def missing(self, axis: str, point) -> object:
        """The value of an axis that a row lacks, because the axis did not exist yet or does not apply."""
        known = self.axes.get(axis)
        if known is None:
            return 0
        return known.default if self.applies(axis, point) else known.nothing

    def variant_name(self, point) -> str:
        """The name of a point's variant."""
        values = [str(point[axis]) for axis in self.variant]
        if any(value in self.idle for value in values):
            return f"{values[0]} (generator alone)"
        return " + ".join(value for value in values if value != "none") or self.name

    def rank(self, point) -> tuple:
        """A sort key for variants: the catalogue's order of the first axis, with members that do no work last."""
        values = [str(point[axis]) for axis in self.variant]
        first = list(self.axes[self.variant[0]].values) if values and self.variant[0] in self.axes else []
        place = first.index(values[0]) if values and values[0] in first else len(first)
        return (any(value in self.idle for value in values), place, *values)

    @property
    def what(self) -> str:
        """The heading for a column of variants."""
        return " + ".join(self.axes[axis].name if axis in self.axes else axis for axis in self.variant) or "variant"


@dataclass(frozen=True)
class Limit:
    name: str
    unit: str = ""
    method: str = ""


@dataclass(frozen=True)
class Catalogue:
    experiments: dict[str, Experiment]
    limits: dict[str, Limit]

    def experiment(self, name: str) -> Experiment:
        """The experiment with this name. An experiment that the catalogue lacks has no figures, so a report can only
        list the statuses of its rows."""
        return self.experiments.get(name) or Experiment(name)


def read(directory: Path, argument: str) -> dict:
    """The catalogue document in the results directory."""
    file, packed = directory / FILE, directory / PACKED
    allowed = f"the output of `feedrate list --json` from the executable that wrote the rows, saved as {file}"
    if not file.is_file() and not packed.is_file():
        raise BadInput(argument, directory, f"has no {FILE}, which describes its rows", allowed)
    try:
        document = json.loads(file.read_bytes() if file.is_file() else lzma.decompress(packed.read_bytes()))
        Catalogue(_experiments([document]), _limits([document]))
    except (lzma.LZMAError, ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"{FILE} is not a catalogue ({type(error).__name__}: {error})"
        raise BadInput(argument, directory, problem, allowed) from error
    return document


def merged(documents: Iterable[dict]) -> Catalogue:
    """The catalogue of several folders: entries that only a later folder has are added to the entries of the first."""
    known = list(documents)
    return Catalogue(_experiments(known), _limits(known))


def _limits(documents: list[dict]) -> dict[str, Limit]:
    found: dict[str, Limit] = {}
    for one in (limit for document in documents for limit in document.get("limits", ())):
        found.setdefault(one["name"], Limit(**_fields(Limit, one)))
    return found


def _experiments(documents: list[dict]) -> dict[str, Experiment]:
    found: dict[str, Experiment] = {}
    for document in documents:
        for one in document["experiments"]:
            new = _experiment(document, one)
            old = found.get(new.name, new)
            found[new.name] = Experiment(
                old.name,
                old.description,
                old.variant,
                old.rate,
                old.time,
                old.figures | new.figures | old.figures,  # the first folder's order and values
                old.axes | new.axes | old.axes,
                new.members | old.members,
                new.kinds | old.kinds,
            )
    return found


def _experiment(document: dict, one: dict) -> Experiment:
    axes = [axis for axis in document.get("axes", ()) if axis.get("experiment", one["name"]) == one["name"]]
    keys = {axis["name"]: axis["key"] for axis in axes}
    names = [name for name in document if isinstance(document[name], list) and name.endswith("s")]
    return Experiment(
        one["name"],
        one.get("description", ""),
        tuple(keys.get(name, name) for name in one.get("variant", ())),
        one.get("rate") or "",
        one.get("time") or "",
        {figure["name"]: _figure(figure) for figure in one["figures"]},
        {axis["key"]: _axis(axis) for axis in axes},
        {name.removesuffix("s"): document[name] for name in names if name.removesuffix("s") in keys},
        document.get("units", {}),
    )


def _figure(one: dict) -> Figure:
    return Figure(**_fields(Figure, one) | {"higher": one["better"] == "higher"})


def _axis(one: dict) -> Axis:
    kind = "number" if one.get("kind", "number") == "number" else "word"
    read = {
        "owners": tuple(one.get("owners", ())),
        "kind": kind,
        "default": one.get("default", 0 if kind == "number" else "none"),
        "values": tuple(map(str, one.get("values", ()))),
        "automatic": "automatic" in one,
    }
    return Axis(**_fields(Axis, one) | read)


def _fields(of: type, one: dict) -> dict:
    """The fields of a data class that a JSON object has under the same names."""
    return {field.name: one[field.name] for field in fields(of) if field.name in one}
