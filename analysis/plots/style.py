"""The style of every figure: colours that colour-blind readers can distinguish (Okabe and Ito), and markers and lines
that make the same distinctions in black and white. analysis/dark.py lists the colours for dark mode."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import Bbox

from .. import figure_text, units

MARGIN = 0.1  # inches around a figure
NARROW = 5.0  # inches; on a phone's screen of 420 px the text keeps its size
STACKED = 0.85  # height of a stacked panel relative to a panel next to others
LIMIT_COLOUR = "#555555"

SETTINGS = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.labelsize": 11,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 6,
    "legend.frameon": False,
    "hatch.linewidth": 0.4,
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Drawing:
    """A figure, or the reason for its absence."""

    name: str
    title: str
    caption: str
    figure: Figure | None
    missing: str = ""

    @cached_property
    def box(self) -> Bbox:
        """The bounding box of the drawing in inches. Layout and box are computed once, because that takes as long as
        drawing and a figure is saved twice."""
        self.figure.get_layout_engine().execute(self.figure)
        self.figure.set_layout_engine("none")
        return self.figure.get_tightbbox().padded(MARGIN)


@contextmanager
def only_settings(settings: Mapping | None = None) -> Iterator[None]:
    """A context with matplotlib's defaults and these settings; a user's matplotlibrc has no effect inside it."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings or {})
        yield


def figure_style():
    """The settings as a context for drawing; matplotlib reads them when it creates each artist."""
    return only_settings(SETTINGS)


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1, **options) -> tuple[Figure, list]:
    """A figure and its axes, row by row. The size is in inches."""
    figure = Figure(figsize=(width, height))
    return figure, list(figure.subplots(rows, columns, squeeze=False, **options).flat)


def panels(count: int, width: float, height: float, narrow: bool, **options) -> tuple[Figure, list[Axes]]:
    """Panels side by side or, if `narrow`, one below another. The size is the size of one panel in inches."""
    if not narrow:
        return new_figure(width * count, height, columns=count, **options)
    figure, axes = new_figure(NARROW, height * count * STACKED, rows=count, **options)
    figure.set_layout_engine("tight")
    return figure, axes


def log_axis(axis, formatter) -> None:
    """Labels the decades of a logarithmic axis with the formatter's units."""
    short = units.tick(formatter)
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: short(value) if _is_short(axis) else ""))
    if axis.get_scale() == "log":
        axis.set_minor_locator(LogLocator(subs=(2, 5)))  # all ticks from 2 to 9 would dominate the drawing time


def _is_short(axis) -> bool:
    """Whether the axis is too short for two decade labels, so that 2 and 5 need labels, too."""
    low, high = axis.get_view_interval()
    return axis.get_scale() == "log" and high < 30 * low


def whiskers(axes: Axes, point, x: str | float, y: str | float, colour: str) -> None:
    """Draws the 95 % intervals of the columns that `x` or `y` name; a number is a fixed position."""
    ends = {
        f"{side}err": [[point[name] - point[f"{name}_low"]], [point[f"{name}_high"] - point[name]]]
        for side, name in (("x", x), ("y", y))
        if isinstance(name, str)
    }
    at = [[point[place]] if isinstance(place, str) else [place] for place in (x, y)]
    axes.errorbar(*at, **ends, fmt="none", color=colour, elinewidth=1, capsize=2.5)


def at_least(axes: Axes, points, x: str, y: str, colour: str, larger: bool = True) -> None:
    """Adds a sign to the points that are only bounds."""
    for _, point in points.iterrows():
        sign = figure_text.sign(point, larger)
        if sign:
            place = (point[x], point[y])
            axes.annotate(sign, place, (0, 8), textcoords="offset points", ha="center", color=colour, fontsize=10)


def value_axis(axes: Axes, values, formatter, label: str) -> None:
    """A logarithmic x axis with ticks at measured values, far enough apart that their labels do not collide."""
    values = sorted(value for value in set(values) if value > 0)
    closest = (values[-1] / values[0]) ** (1 / 6.5)  # at most seven labels fit
    ticks = values[:1]
    for value in values[1:]:
        if value >= ticks[-1] * closest:
            ticks.append(value)
    if ticks[-1] != values[-1]:
        ticks[max(len(ticks) - 1, 1) :] = values[-1:]  # both ends always have labels
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(FixedLocator(values))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: formatter(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(label)


def shared_legend(figure: Figure, axes: list[Axes], order: Iterable[str] = (), below: bool = False) -> None:
    """Adds one legend beside or below all panels, with each entry once, in the order of the panels or of `order`. The
    legend is outside the figure; saving crops to the drawing."""
    entries = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    entries = {label: entries[label] for label in [*order, *entries] if label in entries}
    beside = {"bbox_to_anchor": (1, 1), "handlelength": 3.2}
    beneath = {"bbox_to_anchor": (0, 0), "handlelength": 2.6, "ncols": 2, "columnspacing": 1, "fontsize": 10}
    figure.legend(entries.values(), entries.keys(), loc="upper left", **beneath if below else beside)


def mark_cpu(figure: Figure, devices: list[str]) -> None:
    """Marks figures of the CPU device as such, because figures are also used outside their report."""
    if devices == ["cpu"]:
        figure.suptitle("CPU device: these are not GPU results", color="#B34700", fontsize=12, fontweight="bold")
