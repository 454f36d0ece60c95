"""The style of each variant, the same in every figure: the queue sets the colour and the marker, the transfer sets the
line style and the marker's fill."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...plots.style import NARROW, STACKED, new_figure, shared_legend

QUEUES = {
    "gpu_ring": ("#D55E00", "o"),
    "host_polled": ("#0072B2", "s"),
    "redis_list": ("#009E73", "^"),
    "redis_stream": ("#CC79A7", "D"),
    "null": ("#7F7F7F", "x"),
}
OTHER_QUEUES = (("#E69F00", "v"), ("#56B4E9", "P"), ("#000000", "*"), ("#8A7F00", "h"))
TRANSFERS = {"none": ("-", "full"), "pinned": ("-", "full"), "pageable": ("--", "none"), "mapped": (":", "left")}
ON_BRIGHT, ON_DIM = "#111111", "#F8F8F8"  # text on coloured cells; not black and white, because dark mode swaps those
OTHER_TRANSFERS = (("-.", "right"), ((0, (5, 1, 1, 1, 1, 1)), "top"))


class Styles:
    """The line style of each variant; a queue has the same style in every figure of every report."""

    def __init__(self, variants, narrow: bool = False):
        """`variants`: lines with variant, rank, queue and transfer, such as the cells themselves. `narrow`: stacks
        the panels vertically and puts the legend below them."""
        self.narrow = narrow
        known = variants.drop_duplicates("variant").sort_values("rank")
        spare_queues = [name for name in known["queue"].unique() if name not in QUEUES]
        spare_transfers = [name for name in known["transfer"].unique() if name not in TRANSFERS]
        seen: dict[tuple[str, str], int] = {}
        self._lines: dict[str, dict] = {}
        for line in known.itertuples():
            colour, marker = QUEUES.get(line.queue) or OTHER_QUEUES[spare_queues.index(line.queue) % len(OTHER_QUEUES)]
            dash, filling = (
                TRANSFERS.get(line.transfer)
                or OTHER_TRANSFERS[spare_transfers.index(line.transfer) % len(OTHER_TRANSFERS)]
            )
            # A repeated queue and transfer is from another device or machine: draw it paler; the legend names it.
            again = seen.get((line.queue, line.transfer), 0)
            seen[line.queue, line.transfer] = again + 1
            self._lines[line.variant] = {
                "color": colour,
                "marker": marker,
                "linestyle": dash,
                "fillstyle": filling,
                "alpha": (1.0, 0.55, 0.35)[min(again, 2)],
                "label": line.variant,
            }

    def figure(self, width: float, height: float, rows: int = 1, columns: int = 1, **options) -> tuple[Figure, list]:
        """A figure and its axes, row by row. The size refers to the wide layout, in inches."""
        if not self.narrow:
            return new_figure(width, height, rows, columns, **options)
        if options.get("sharey") == "row":
            del options["sharey"]  # the panels of a row are in separate rows now
        figure, axes = new_figure(NARROW, height * columns * STACKED, rows * columns, **options)
        figure.set_layout_engine("tight")  # sufficient for one column, and takes half the time
        return figure, axes

    def legend(self, figure: Figure, axes: list[Axes], order: Iterable[str] = ()) -> None:
        shared_legend(figure, axes, order, below=self.narrow)

    def line(self, variant: str) -> dict:
        return self._lines[variant]

    def marker(self, variant: str) -> dict:
        return self._lines[variant] | {"linestyle": "none"}


def by_variant(points: pd.DataFrame):
    """The variants and their points, in the variants' order."""
    return points.sort_values("rank", kind="stable").groupby("variant", sort=False)


def errors(points: pd.DataFrame, metric: str) -> list[np.ndarray]:
    """The lengths of error bars: the distances of the 95 % interval's ends from the median."""
    at, low, high = (points[f"{metric}{end}"].to_numpy() for end in ("", "_low", "_high"))
    return [np.abs(at - low), np.abs(high - at)]


def error_bars(axes: Axes, points: pd.DataFrame, x: str, y: str, **style) -> None:
    """Draws the medians of `y` in this style, with their 95 % intervals."""
    axes.errorbar(
        points[x].to_numpy(), points[y].to_numpy(), yerr=errors(points, y), capsize=2, elinewidth=1, **style
    )
