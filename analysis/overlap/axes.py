"""Axes along which tables and figures show how the overlap changes."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from . import details

BALANCES = ("even", "first", "middle", "last", "rising")


@dataclass(frozen=True)
class Axis:
    """An axis. `moving`: axes that change with it; `step`: the name of a value; `key`: the sort key of values."""

    name: str
    label: str
    step: Callable[[pd.Series], str]
    moving: tuple[str, ...] = ()
    moves: str = ""  # a sentence about the moving axes
    key: Callable = lambda value: value


BALANCE = Axis(
    "balance", "distribution of the cost over the stages",
    step=lambda point: point["balance"], key=lambda one: BALANCES.index(one) if one in BALANCES else len(BALANCES),
)  # fmt: skip
ITEM = Axis(
    "item_bytes", "bytes per item, cost per kernel",
    step=lambda point: details.size_and_cost(point["item_bytes"], point["cost_us"]), moving=("cost_us", "items"),
    moves=" The cost per kernel grows with the item size, and the number of items falls.",
)  # fmt: skip
DEPTH = Axis("depth", "buffers between two stages", step=lambda point: f"{point['depth']:g}")
