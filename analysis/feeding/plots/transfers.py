"""The best transfer for each payload and batch: a grid coloured by transfer, with the ratio to the runner-up."""

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from ... import figure_text, units
from ...load import Results
from ...plots.style import Drawing
from .. import transfers
from .heatmap import UNSTABLE
from .styles import ON_BRIGHT, ON_DIM, Styles

NAME, TITLE = "transfers", "The best transfer by payload and batch"
# Colours of a cell and its text. The cell also names the transfer, so the colours only make regions visible.
COLOURS = {
    "pinned": ("#0072B2", ON_DIM),
    "mapped": ("#E69F00", ON_BRIGHT),
    "double_buffer": ("#56B4E9", ON_BRIGHT),
    "ring_buffer": ("#009E73", ON_BRIGHT),
    "graph": ("#D55E00", ON_BRIGHT),
    "batched_copy": ("#CC79A7", ON_BRIGHT),
    "gather": ("#F0E442", ON_BRIGHT),
    "bulk_async": ("#8A7F00", ON_BRIGHT),
    "stream_ordered": ("#999999", ON_BRIGHT),
}
OTHER = ("#7F7F7F", ON_BRIGHT)
LONGEST = 15  # maximum characters of a line that fits a cell on a phone
CAPTION = (
    "Each cell names the transfer with the most verified messages per second, with the settings that a search found "
    "for this payload and batch; the figures are medians from a separate measurement. Below the rate: how many times "
    "faster it is than the runner-up, or “unclear” if their 95 % intervals overlap. Combinations without a cell were "
    "not measured."
)
WITH_AUTO = " “auto”: the rate of the transfer chosen by the machine's limits, divided by the best one's."


def draw(results: Results, styles: Styles) -> Drawing | None:
    found = transfers.places(results)
    if not found:
        return None
    queues = list(dict.fromkeys(place.queue for place in found))
    payloads = sorted({place.payload for place in found})
    batches = sorted({place.batch for place in found})
    shape = (1.4 + 2.1 * len(batches)) * len(queues), 1 + 1.15 * len(payloads)
    figure, panels = styles.figure(*shape, columns=len(queues))
    for axes, queue in zip(panels, queues):
        for place in found:
            if place.queue == queue:
                _cell(axes, batches.index(place.batch), payloads.index(place.payload), place)
        axes.set_xlim(-0.5, len(batches) - 0.5)
        axes.set_ylim(-0.5, len(payloads) - 0.5)
        axes.set_xticks(range(len(batches)), [f"{batch:g}" for batch in batches])
        axes.set_yticks(range(len(payloads)), [units.size(payload) for payload in payloads])
        axes.set(xlabel="batch (messages)", ylabel="payload")
        axes.set_title(queue, loc="left")
        axes.grid(visible=False)
    caption = CAPTION + (WITH_AUTO if any(place.auto is not None for place in found) else "")
    caption += UNSTABLE if any("throughput" in place.best["unstable"] for place in found) else ""
    return Drawing(NAME, TITLE, caption, figure)


def _cell(axes: Axes, column: int, row: int, place: transfers.Place) -> None:
    colour, ink = COLOURS.get(place.best["transfer"], OTHER)
    axes.add_patch(Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, facecolor=colour, edgecolor="none"))
    lines = _cell_lines(place)
    axes.text(column, row, "\n".join(["", *lines[1:]]), ha="center", va="center", fontsize=8.5, color=ink)
    above = 0.6 * 8.5 * 1.2 * (len(lines) - 1)  # points from the middle of the text to the first line
    axes.annotate(
        lines[0], (column, row), (0, above), textcoords="offset points", ha="center", va="center", fontsize=9.5,
        fontweight="bold", color=ink,
    )  # fmt: skip


def _cell_lines(place: transfers.Place) -> list[str]:
    best, second = place.best, place.second
    lines = [best["transfer"], figure_text.sign(best, True) + units.messages_per_second(best[transfers.METRIC])]
    if "throughput" in best["unstable"]:
        lines.append("unstable")
    if second is None:
        lines.append("no other")
    else:
        times = f"{units.ratio(best[transfers.METRIC] / second[transfers.METRIC])} ×" if place.clear else "unclear:"
        line = f"{times} {second['transfer']}"
        lines += [line] if len(line) <= LONGEST else [times, second["transfer"]]
    if place.auto is not None:
        lines.append(f"auto {units.ratio(place.auto[transfers.METRIC] / best[transfers.METRIC])}")
    return lines
