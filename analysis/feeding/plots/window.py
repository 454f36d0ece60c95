"""Cost and benefit of a deeper window: latency against messages in flight, and against throughput."""

import pandas as pd

from ... import stats, units
from ...load import Results
from ...plots.style import Drawing, log_axis, value_axis, whiskers
from .. import choose
from .styles import Styles, by_variant, error_bars

NAME, TITLE = "latency_window", "Latency against window"
CAPTION = (
    "Payload {}. For each window, the marker shows the point with the highest message rate over all other axes: the "
    "median of its repetitions, with whiskers for the 95 % interval. In the last panel each line follows the window "
    "upwards; the lower right is best."
)
MISSING = (
    "The sweep has only one window. To see how messages in flight affect latency, sweep several windows (for example "
    "1,16,256,4096)."
)


def draw(results: Results, measured: pd.DataFrame, styles: Styles) -> Drawing:
    if measured["window"].nunique() < 2:
        return Drawing(NAME, TITLE, "", None, MISSING)
    chosen = choose.main_work(measured)
    windows = chosen.groupby("payload_bytes")["window"].nunique()
    payload = int(windows[windows == windows.max()].index.min())  # the smallest payload with the most windows
    chosen = chosen[chosen["payload_bytes"] == payload]
    figure, panels = styles.figure(12, 4.6, columns=3, sharey=True)
    for variant, points in by_variant(chosen):
        line = stats.best(points, "window", "messages_per_second").sort_values("window")
        for axes, metric in zip(panels, ("p50", "p99")):
            error_bars(axes, line, "window", metric, **styles.line(variant))
        panels[2].plot(line["messages_per_second"], line["p99"], **styles.line(variant))
        for _, point in line.iterrows():
            whiskers(panels[2], point, "messages_per_second", "p99", styles.line(variant)["color"])
    for axes, metric in zip(panels, ("p50", "p99")):
        value_axis(axes, chosen["window"], lambda value: f"{value:g}", "window (messages in flight per producer)")
        axes.set_title(f"{metric} latency", loc="left")
    panels[2].set_xscale("log")
    log_axis(panels[2].xaxis, units.number)
    panels[2].set_xlabel("verified messages per second")
    panels[2].set_title("p99 latency against throughput", loc="left")
    panels[0].set_ylabel("latency")
    for axes in panels:
        axes.set_yscale("log")
        log_axis(axes.yaxis, units.nanoseconds)
    styles.legend(figure, panels)
    return Drawing(NAME, TITLE, CAPTION.format(units.size(payload)), figure)
