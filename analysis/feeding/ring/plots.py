"""Figures of the ring's axes: small, with one question each."""

from functools import partial

import numpy as np
import pandas as pd

from ... import figure_text, units
from ...load import Results
from ...plots.style import LIMIT_COLOUR, Drawing, at_least, log_axis, figure_style, mark_cpu, new_figure
from ...plots.style import shared_legend, value_axis
from . import axes as tables
from . import points as ring

# Okabe and Ito's colours, each with a marker. The n-th line of every figure has the same style.
LOOKS = (("#D55E00", "o"), ("#0072B2", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#E69F00", "v"), ("#000000", "x"))
CEILINGS = ("sm_echo_bytes_per_second", "copy_engine_both_bytes_per_second")
NAMES = {
    "ring_lanes": "Throughput against lanes",
    "ring_pollers": "Throughput against pollers, by counter",
    "ring_lone": "Lone messages against pollers and mirrors",
    "ring_batch": "Batch, by counter and by flags",
    "ring_payload": "Pulled by the GPU or moved by the copy engines",
    "ring_granularity": "Granularity by payload",
    "ring_results": "Order of results",
    "ring_idle": "Idling",
    "ring_slots": "Slot size",
}
RATE = ("messages_per_second", units.number, "verified messages per second")
P50, P99 = ("p50", units.nanoseconds, "p50 latency"), ("p99", units.nanoseconds, "p99 latency")


def draw_all(results: Results) -> list[Drawing]:
    """The figures for which the rows have points."""
    points = ring.read(results)
    drawings = []
    with figure_style():
        for name, draw in FIGURES.items():
            figure = draw(points)
            if figure:
                mark_cpu(figure, results.devices)
                drawings.append(Drawing(name, NAMES[name], "", figure))
    return drawings


def against(points: pd.DataFrame, axis: str, regime, metrics: tuple, by: str | None = None, only: dict | None = None):
    """One panel for each metric, and in it one line for each payload and value of `by`."""
    found = regime(ring.of_ring(points))
    for name, value in (only or {}).items():
        found = ring.using(found, name, value)
    kind = tables.RATE if metrics[0] is RATE else tables.P50
    ladders = tables.lines(found, tables.Sweep(axis, regime, (kind,), by))
    if not ladders:
        return None
    figure, panels = new_figure(5.2 * len(metrics) if len(metrics) > 1 else 6.4, 3.6, columns=len(metrics))
    first = [ring.told(ladder.iloc[0]) for ladder in ladders]
    apart = [name for name in ("payload_bytes", "slots", "results") if len({one[name] for one in first}) > 1]
    shown = [name for name in dict.fromkeys([*apart, *([by] if by else [])]) if name != axis]
    entries = [(_label(ladder.iloc[0], shown), ladder) for ladder in ladders]
    for panel, metric in zip(panels, metrics):
        if isinstance(ladders[0][axis].iloc[0], str):
            _bars(panel, entries, axis, *metric)
        else:
            _lines(panel, entries, axis, *metric)
        panel.set_title(_place(ladders, axis, shown), loc="left", fontsize=9)
    if shown:
        shared_legend(figure, panels)
    return figure


def _label(point, shown: list[str]) -> str:
    told = ring.told(point)
    return ring.said({name: told[name] for name in shown})


def _place(ladders: list[pd.DataFrame], axis: str, shown: list[str]) -> str:
    """The axis values that all points of a figure share, in words."""
    told = [ring.told(point) for ladder in ladders for _, point in ladder.iterrows()]
    same = {
        name: value
        for name, value in told[0].items()
        if name not in (axis, *shown, "block") and all(one[name] == value for one in told)
    }
    return ring.said(same)


def _lines(panel, entries, axis: str, metric: str, formatter, label: str) -> None:
    for (text, ladder), (colour, marker) in zip(entries, LOOKS):
        _line(panel, ladder, axis, metric, color=colour, marker=marker, label=text)
    values = [value for _, ladder in entries for value in ladder[axis]]
    value_axis(panel, values, units.size if axis.endswith("_bytes") else "{:g}".format, tables.name(axis))
    _scale(panel, [ladder[metric] for _, ladder in entries], formatter, label)


def _line(panel, points: pd.DataFrame, axis: str, metric: str, **style) -> None:
    at, error = points[metric].to_numpy(), _error(points, metric)
    panel.errorbar(points[axis].to_numpy(), at, yerr=error, capsize=2, elinewidth=1, **style)
    at_least(panel, points, axis, metric, style["color"], metric in tables.RATES)


def _error(points: pd.DataFrame, metric: str) -> list:
    """The lengths of the error bars: the distances of the 95 % interval's ends from the median."""
    at, low, high = (points[f"{metric}{end}"].to_numpy() for end in ("", "_low", "_high"))
    return [np.abs(at - low), np.abs(high - at)]


def _bars(panel, entries, axis: str, metric: str, formatter, label: str) -> None:
    values = sorted({value for _, ladder in entries for value in ladder[axis]}, key=ring.sort_key(axis))
    width = 0.8 / len(entries)
    for place, ((text, ladder), (colour, _)) in enumerate(zip(entries, LOOKS)):
        at = [values.index(value) + (place - (len(entries) - 1) / 2) * width for value in ladder[axis]]
        error = _error(ladder, metric)
        bars = panel.bar(at, ladder[metric], width * 0.92, color=colour, label=text, yerr=error, ecolor="#333333")
        labels = [tables.said(formatter, point, metric) for _, point in ladder.iterrows()]
        panel.bar_label(bars, labels, fontsize=8, padding=2)
    panel.set_xticks(range(len(values)), [value.replace("_", " ") for value in values])
    panel.grid(axis="x", visible=False)
    panel.margins(y=0.15)
    log_axis(panel.yaxis, formatter)
    panel.set_ylabel(label)


def _scale(panel, columns: list[pd.Series], formatter, label: str) -> None:
    """Sets a linear axis from zero, or a logarithmic one if the values span more than a factor of 30."""
    values = pd.concat(columns)
    if values.max() > 30 * values.min() > 0:
        panel.set_yscale("log")
    else:
        panel.set_ylim(bottom=0)
    log_axis(panel.yaxis, formatter)
    panel.set_ylabel(label)


def lone(points: pd.DataFrame):
    """p50 and p99 of a lone message, with one line for each number of mirrors."""
    by_flags = ring.using(ring.lone(ring.of_ring(points)), "notify", "flags")
    found = ring.alike(by_flags, ("pollers", "mirrors"), "p50", False)
    if found.empty:
        return None
    entries = [(f"mirrors {mirrors}", some) for mirrors, some in found.groupby("mirrors")]
    figure, panels = new_figure(10.4, 3.6, columns=2)
    for panel, metric in zip(panels, (P50, P99)):
        _lines(panel, entries, "pollers", *metric)
        panel.set_title(_place([found], "pollers", ["mirrors"]), loc="left", fontsize=9)
    shared_legend(figure, panels)
    return figure


def granularity(points: pd.DataFrame):
    """Throughput against payload, one line for each granularity; the points are from the ladders of each payload."""
    sweep = tables.Sweep("granularity", ring.many, (tables.RATE,))
    ladders = tables.lines(points, sweep)
    if not ladders:
        return None
    found = pd.concat(ladders)
    figure, (panel,) = new_figure(5.2, 3.6)
    values = [value for value in ring.ORDER["granularity"] if (found["granularity"] == value).any()]
    entries = [(value, found[found["granularity"] == value]) for value in values]
    _lines(panel, entries, "payload_bytes", *RATE)
    panel.set_title(_place(ladders, "granularity", ["payload_bytes"]), loc="left", fontsize=9)
    panel.legend(fontsize=9)
    return figure


def payload(points: pd.DataFrame):
    """The best byte rate with each kind of slots, below the ceilings of the bus and the copy engines."""
    found = ring.many(ring.of_ring(points))
    curves = {slots: _widest(ring.using(found, "slots", slots)) for slots in ring.ORDER["slots"]}
    known = pd.concat(curves.values())
    if known.empty or known["payload_bytes"].nunique() < 2:
        return None
    figure, (panel,) = new_figure(6.4, 4)
    for (slots, curve), (colour, marker) in zip(curves.items(), LOOKS):
        if len(curve):
            style = {"color": colour, "marker": marker, "label": f"slots {slots}"}
            _line(panel, curve, "payload_bytes", "bytes_per_second", **style)
    value_axis(panel, known["payload_bytes"], units.size, "payload")
    log_axis(panel.yaxis, units.bytes_per_second)
    panel.set_ylabel("payload bytes per second, one way")
    ceilings = {name: value for name in CEILINGS if (value := known["limits"].iloc[0].get(name))}
    panel.set_ylim(0, 1.08 * max([known[["bytes_per_second", "bytes_per_second_high"]].max(axis=None), *ceilings.values()]))
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


def _widest(points: pd.DataFrame) -> pd.DataFrame:
    """For each payload, the point with the most bytes per second."""
    if points.empty:
        return points
    ranked = points.sort_values("bytes_per_second").drop_duplicates("payload_bytes", keep="last")
    return ranked.sort_values("payload_bytes")


def crossover(pinned: pd.DataFrame, vram: pd.DataFrame) -> int | None:
    """The smallest payload at and above which the copy engines are faster at every payload measured both ways."""
    if pinned.empty or vram.empty:
        return None
    both = pinned.merge(vram, on="payload_bytes", suffixes=("_pinned", "_vram")).sort_values("payload_bytes")
    ahead = both["bytes_per_second_vram"] > both["bytes_per_second_pinned"]
    behind = both.loc[~ahead, "payload_bytes"].max() if (~ahead).any() else -1
    after = both.loc[both["payload_bytes"] > behind, "payload_bytes"]
    return int(after.min()) if len(after) else None


def idle(points: pd.DataFrame):
    """Cost of idling: latency of a lone message, and throughput of many messages."""
    found = [
        (lines[0], metric)
        for regime, metrics, kind in ((ring.lone, (P50, P99), tables.P50), (ring.many, (RATE,), tables.RATE))
        if (lines := tables.lines(points, tables.Sweep("ring_idle", regime, (kind,))))
        for metric in metrics
    ]
    if not found:
        return None
    figure, panels = new_figure(3.6 * len(found), 3.4, columns=len(found))
    for panel, (ladder, metric) in zip(panels, found):
        _bars(panel, [("", ladder)], "ring_idle", *metric)
        told = ring.told(ladder.iloc[0])
        shown = ("payload_bytes",) if metric is not RATE else ("payload_bytes", "window", "batch")
        words = ring.said({axis: told[axis] for axis in shown})
        panel.set_title(words if metric is RATE else f"lone, {words}", loc="left", fontsize=9)
    return figure


FIGURES = {
    "ring_lanes": partial(against, axis="lanes", regime=ring.many, metrics=(RATE,)),
    "ring_pollers": partial(against, axis="pollers", regime=ring.many, metrics=(RATE,), only={"notify": "counter"}),
    "ring_lone": lone,
    "ring_batch": partial(against, axis="batch", regime=ring.many, metrics=(RATE, P50), by="notify"),
    "ring_payload": payload,
    "ring_granularity": granularity,
    "ring_results": partial(against, axis="results", regime=ring.many, metrics=(RATE,), by="pollers"),
    "ring_idle": idle,
    "ring_slots": partial(against, axis="slot_bytes", regime=ring.many, metrics=(RATE,), by="capacity"),
}
