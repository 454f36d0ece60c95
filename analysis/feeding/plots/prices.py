"""Price of a delivery guarantee in throughput and latency, for each queue against `redis_list`."""

from ... import units
from ...load import Results
from ...plots.style import Drawing
from .. import prices
from .styles import Styles

NAME, TITLE = "prices", "What a delivery guarantee costs"
_MARKERS = ("o", "s", "D", "^")  # one per payload


def draw(results: Results, styles: Styles) -> Drawing | None:
    """The figure; None without `redis_list` to compare with, or with fewer than two other queues."""
    found = prices.prices(results)
    if found.empty:
        return None
    lines = list(dict.fromkeys(found["line"]))[::-1]
    measures = [name for name, *_ in prices.MEASURES if name in set(found["measure"])]
    payloads = sorted(found["payload"].unique())
    size = 2.2 + 3.6 * len(measures), 1.4 + 0.5 * len(lines)
    figure, panels = styles.figure(*size, columns=len(measures), sharey=True)
    for axes, measure in zip(panels, measures):
        for one in found[found["measure"] == measure].itertuples():
            shift = 0.14 * (2 * payloads.index(one.payload) - len(payloads) + 1)
            place = lines.index(one.line) + shift
            marker = _MARKERS[payloads.index(one.payload) % len(_MARKERS)]
            colour = styles.line(one.point["variant"])["color"]
            axes.plot([one.share_low, one.share_high], [place, place], color=colour, linewidth=1)
            label = units.size(one.payload)
            axes.plot([one.share], [place], marker=marker, color=colour, linestyle="none", label=label)
            side = "left" if one.share < 0.1 else "center"
            axes.annotate(
                units.ratio(one.share), (one.share, place), (0, 5), textcoords="offset points", ha=side, fontsize=8
            )
        axes.axvline(1, color="#555555", linewidth=1)
        axes.set_xlim(left=0)
        axes.set_yticks(range(len(lines)), lines)
        axes.set_xlabel(f"{measure}, × {prices.AGAINST}")
        axes.grid(axis="y", visible=False)
    styles.legend(figure, list(panels))
    caption = f"{prices.NOTE} Thin lines are the 95 % intervals of the ratios. In the last panel lower is better."
    return Drawing(NAME, TITLE, caption, figure)
