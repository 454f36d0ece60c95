"""Small figures of the ring's axes, each for one question."""

from functools import partial

import pandas as pd

from ... import units
from ...load import Results
from ...plots.style import LIMIT_COLOUR, Drawing, at_least, log_axis, figure_style, mark_cpu, new_figure
from ...plots.style import shared_legend, value_axis
from ..plots.styles import error_bars, errors
from . import axes as tables
from . import points as ring
from .points import BYTES, P50, P99, RATE, Metric

# Okabe and Ito's colours, each with a marker. The n-th line of every figure has the same style.
STYLES = (("#D55E00", "o"), ("#0072B2", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#E69F00", "v"), ("#000000", "x"))
CEILINGS = ("sm_echo_bytes_per_second", "copy_engine_both_bytes_per_second")

Line = tuple[str, pd.DataFrame]  # a label and its points


def draw_all(results: Results) -> list[Drawing]:
    """The figures for which the rows have points."""
    points = ring.read(results)
    drawings = []
    with figure_style():
        for name, (title, draw) in FIGURES.items():
            figure = draw(points)
            if figure:
                mark_cpu(figure, results.devices)
                drawings.append(Drawing(name, title, "", figure))
    return drawings


def against(points: pd.DataFrame, axis: str, metrics=(RATE,), by: str | None = None, notify: str | None = None):
    """One panel per metric, with one line per payload and value of `by`."""
    points = ring.using(points, "notify", notify) if notify else points
    ladders = tables.ladders(points, tables.Sweep(axis, ring.many, metrics, by))
    if not ladders:
        return None
    first = [ladder.iloc[0]["settings"] for ladder in ladders]
    apart = [name for name in ("payload_bytes", "slots", "results") if len({one[name] for one in first}) > 1]
    shown = [name for name in dict.fromkeys([*apart, *([by] if by else [])]) if name != axis]
    labels = [ring.wording({name: settings[name] for name in shown}) for settings in first]
    figure, panels = _panels(list(zip(labels, ladders)), axis, metrics, shown, 5.2 if len(metrics) > 1 else 6.4)
    if shown:
        shared_legend(figure, panels)
    return figure


def lone(points: pd.DataFrame):
    """p50 and p99 of a lone message, with one line for each number of mirrors."""
    by_flags = ring.using(ring.lone(ring.of_ring(points)), "notify", "flags")
    found = ring.ladder(by_flags, ("pollers", "mirrors"), P50)
    if found.empty:
        return None
    lines = [(f"mirrors {mirrors}", some) for mirrors, some in found.groupby("mirrors")]
    figure, panels = _panels(lines, "pollers", (P50, P99), ["mirrors"])
    shared_legend(figure, panels)
    return figure


def granularity(points: pd.DataFrame):
    """Throughput against payload, one line for each granularity; the points are from the ladders of each payload."""
    ladders = tables.ladders(points, tables.Sweep("granularity", ring.many, (RATE,)))
    if not ladders:
        return None
    found = pd.concat(ladders)
    lines = [(value, found[found["granularity"] == value]) for value in ring.used(found, "granularity")]
    figure, (panel,) = _panels(lines, "payload_bytes", (RATE,), ["granularity"])
    panel.legend(fontsize=9)
    return figure


def idle(points: pd.DataFrame):
    """Cost of idling: latency of a lone message, and throughput of many messages."""
    found = [
        (ladders[0], metric)
        for regime, metrics in ((ring.lone, (P50, P99)), (ring.many, (RATE,)))
        if (ladders := tables.ladders(points, tables.Sweep("ring_idle", regime, metrics)))
        for metric in metrics
    ]
    if not found:
        return None
    figure, panels = new_figure(3.6 * len(found), 3.4, columns=len(found))
    for panel, (ladder, metric) in zip(panels, found):
        _bars(panel, [("", ladder)], "ring_idle", metric)
        named = ("payload_bytes", "window", "batch") if metric is RATE else ("payload_bytes",)
        words = ring.wording({axis: ladder.iloc[0]["settings"][axis] for axis in named})
        panel.set_title(words if metric is RATE else f"lone, {words}", loc="left", fontsize=9)
    return figure


def payload(points: pd.DataFrame):
    """The best byte rate with each kind of slots, below the ceilings of the bus and the copy engines."""
    found = ring.many(ring.of_ring(points)).sort_values(BYTES.column)
    curves = {slots: ring.using(found, "slots", slots) for slots in ring.ORDER["slots"]}
    curves = {
        slots: curve.drop_duplicates("payload_bytes", keep="last").sort_values("payload_bytes")
        for slots, curve in curves.items()
    }
    known = pd.concat(curves.values())
    if known["payload_bytes"].nunique() < 2:
        return None
    figure, (panel,) = new_figure(6.4, 4)
    for (slots, curve), (colour, marker) in zip(curves.items(), STYLES):
        if len(curve):
            _line(panel, curve, "payload_bytes", BYTES, color=colour, marker=marker, label=f"slots {slots}")
    value_axis(panel, known["payload_bytes"], units.size, "payload")
    log_axis(panel.yaxis, BYTES.tick)
    panel.set_ylabel(BYTES.label)
    ceilings = {name: value for name in CEILINGS if (value := known["limits"].iloc[0].get(name))}
    highest = known[["bytes_per_second", "bytes_per_second_high"]].max(axis=None)
    panel.set_ylim(0, 1.08 * max([highest, *ceilings.values()]))
    for name, value in ceilings.items():
        panel.axhline(value, color=LIMIT_COLOUR, linewidth=0.9, linestyle=(0, (6, 2)))
        panel.text(0.01, value, units.words(name), transform=panel.get_yaxis_transform(), va="bottom", fontsize=8.5)
    if crossing := crossover(curves["pinned"], curves["vram"]):
        panel.axvline(crossing, color=LIMIT_COLOUR, linewidth=1, linestyle=":")
        panel.annotate(
            f"copies faster\nfrom {units.size(crossing)}", (crossing, 0.04), xycoords=panel.get_xaxis_transform(),
            xytext=(5, 0), textcoords="offset points", fontsize=9,
        )  # fmt: skip
    panel.legend(fontsize=9, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    return figure


def crossover(pinned: pd.DataFrame, vram: pd.DataFrame) -> int | None:
    """The smallest payload at and above which the copy engines are faster at every payload measured both ways."""
    both = pinned.merge(vram, on="payload_bytes", suffixes=("_pinned", "_vram")).sort_values("payload_bytes")
    behind = both.loc[~(both["bytes_per_second_vram"] > both["bytes_per_second_pinned"]), "payload_bytes"].max()
    after = both.loc[~(both["payload_bytes"] <= behind), "payload_bytes"]
    return int(after.min()) if len(after) else None


def _panels(lines: list[Line], axis: str, metrics: tuple[Metric, ...], shown: list[str], width: float = 5.2):
    """A figure with one panel for each metric. The title names the settings that all points share, except `shown`."""
    figure, panels = new_figure(width * len(metrics), 3.6, columns=len(metrics))
    same = ring.common(settings for _, points in lines for settings in points["settings"])
    title = ring.wording(same, (axis, *shown, "block"))
    draw = _bars if isinstance(lines[0][1][axis].iloc[0], str) else _lines
    for panel, metric in zip(panels, metrics):
        draw(panel, lines, axis, metric)
        panel.set_title(title, loc="left", fontsize=9)
    return figure, panels


def _lines(panel, lines: list[Line], axis: str, metric: Metric) -> None:
    for (label, points), (colour, marker) in zip(lines, STYLES):
        _line(panel, points, axis, metric, color=colour, marker=marker, label=label)
    shown = pd.concat([points for _, points in lines])
    value_axis(panel, shown[axis], units.size if axis.endswith("_bytes") else "{:g}".format, tables.name(axis))
    values = shown[metric.column]
    if values.max() > 30 * values.min() > 0:
        panel.set_yscale("log")
    else:
        panel.set_ylim(bottom=0)
    log_axis(panel.yaxis, metric.tick)
    panel.set_ylabel(metric.label)


def _line(panel, points: pd.DataFrame, axis: str, metric: Metric, **style) -> None:
    error_bars(panel, points, axis, metric.column, **style)
    at_least(panel, points, axis, metric.column, style["color"], metric.larger)


def _bars(panel, lines: list[Line], axis: str, metric: Metric) -> None:
    values = sorted({value for _, points in lines for value in points[axis]}, key=ring.sort_key(axis))
    width = 0.8 / len(lines)
    for place, ((label, points), (colour, _)) in enumerate(zip(lines, STYLES)):
        at = [values.index(value) + (place - (len(lines) - 1) / 2) * width for value in points[axis]]
        whiskers = {"yerr": errors(points, metric.column), "ecolor": "#333333"}
        bars = panel.bar(at, points[metric.column], width * 0.92, color=colour, label=label, **whiskers)
        figures = [metric.formatted(point, metric.tick) for _, point in points.iterrows()]
        panel.bar_label(bars, figures, fontsize=8, padding=2)
    panel.set_xticks(range(len(values)), [value.replace("_", " ") for value in values])
    panel.grid(axis="x", visible=False)
    panel.margins(y=0.15)
    log_axis(panel.yaxis, metric.tick)
    panel.set_ylabel(metric.label)


# The title of each figure, and the function that draws it.
FIGURES = {
    "ring_lanes": ("Throughput against lanes", partial(against, axis="lanes")),
    "ring_pollers": ("Throughput against pollers, by counter", partial(against, axis="pollers", notify="counter")),
    "ring_lone": ("Lone messages against pollers and mirrors", lone),
    "ring_batch": ("Batch, by counter and by flags", partial(against, axis="batch", metrics=(RATE, P50), by="notify")),
    "ring_payload": ("Pulled by the GPU or moved by the copy engines", payload),
    "ring_granularity": ("Granularity by payload", granularity),
    "ring_results": ("Order of results", partial(against, axis="results", by="pollers")),
    "ring_idle": ("Idling", idle),
    "ring_slots": ("Slot size", partial(against, axis="slot_bytes", by="capacity")),
}
NAMES = {name: title for name, (title, _) in FIGURES.items()}
