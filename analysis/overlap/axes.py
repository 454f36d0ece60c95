"""The axes along which tables and figures show how the overlap changes."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from . import details

BALANCES = ("even", "first", "middle", "last", "rising")


@dataclass(frozen=True)
class Axis:
    """`moving`: what changes along with it; `step`: what a value is called; `key`: by which values are ordered."""

    name: str
    label: str
    step: Callable[[pd.Series], str]
    moving: tuple[str, ...] = ()
    moves: str = ""  # a sentence about that
    key: Callable = lambda value: value


BALANCE = Axis(
    "balance", "how the cost is spread over the stages",
    step=lambda point: point["balance"], key=lambda one: BALANCES.index(one) if one in BALANCES else len(BALANCES),
)  # fmt: skip
ITEM = Axis(
    "item_bytes", "bytes in an item, cost of a kernel",
    step=lambda point: details.size_and_cost(point["item_bytes"], point["cost_us"]), moving=("cost_us", "items"),
    moves=" The cost of a kernel grows along with the item, and the number of items falls.",
)  # fmt: skip
DEPTH = Axis("depth", "buffers between two stages", step=lambda point: f"{point['depth']:g}")
