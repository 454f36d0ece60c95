"""The style of each strategy, the same in every figure: a colour and a marker."""

import numpy as np
import pandas as pd

STYLES = {
    "serial": ("#7F7F7F", "x"),
    "two_stream": ("#CC79A7", "D"),
    "ping_pong": ("#E69F00", "v"),
    "ring": ("#D55E00", "o"),
    "graph": ("#0072B2", "s"),
    "pdl": ("#56B4E9", "P"),
    "persistent": ("#009E73", "^"),
    "peer_copy": ("#8A7F00", "h"),
    "peer_load": ("#000000", "*"),
}
OTHER = ("#999999", "p")
EDGE = "#555555"  # lines at no overlap and at full overlap
LEAST = -0.5  # lower values are drawn here, labelled; a strategy that loses a lot would compress the others


def reach(point: pd.Series, column: str) -> tuple[float, float]:
    """The ends of the interval, or of the range if some repetitions had nothing to save and there is no interval."""
    low, high = (point[f"{column}_{end}"] for end in ("low", "high"))
    return (low, high) if low == low else (point[f"{column}_least"], point[f"{column}_greatest"])


def clipped(values) -> np.ndarray:
    return np.maximum(np.asarray(values, float), LEAST)
