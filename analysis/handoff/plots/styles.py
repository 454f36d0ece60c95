"""The style of each way, the same in every figure: a colour and a marker. Ways that share GPU memory are blue and
violet, ways that move bytes have warm colours, and Redis is green as elsewhere."""

import pandas as pd
from matplotlib.axes import Axes

STYLES = {
    "redis_value": ("#009E73", "^"),
    "shm_copy": ("#E69F00", "v"),
    "shm_pinned": ("#D55E00", "o"),
    "ipc_vmm": ("#0072B2", "s"),
    "ipc_pool": ("#56B4E9", "P"),
    "ipc_legacy": ("#CC79A7", "D"),
    "ipc_memfd": ("#7F7F7F", "x"),
    "store": ("#000000", "*"),
}
OTHER = ("#8A7F00", "h")
LARGEST, SMALLEST = 9, 4  # marker sizes in points


def lines(axes: Axes, points: pd.DataFrame, x: str, y: str) -> None:
    """Draws one line per way, with the 95 % intervals as whiskers. Later ways have smaller markers, so that those below
    them stay visible: the ways that share memory take the same time."""
    for number, (variant, line) in enumerate(points.dropna(subset=[y]).groupby("variant", sort=False)):
        line = line.sort_values(x)
        colour, marker = STYLES.get(line["way"].iloc[0], OTHER)
        reach = [(line[y] - line[f"{y}_low"]).to_numpy(), (line[f"{y}_high"] - line[y]).to_numpy()]
        where, heights = line[x].to_numpy(), line[y].to_numpy()
        axes.errorbar(where, heights, yerr=reach, fmt="none", color=colour, elinewidth=1, capsize=2, alpha=0.6)
        size = max(LARGEST - 0.8 * number, SMALLEST)
        axes.plot(where, heights, color=colour, marker=marker, markersize=size, linewidth=1.5, label=variant)
