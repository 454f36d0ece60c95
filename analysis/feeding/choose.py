"""Notable points of closed loads."""

import pandas as pd

from ..stats import best, counted
from ..stats import main_work as _main_work


def main_work(measured: pd.DataFrame) -> pd.DataFrame:
    """The points with the main workload."""
    return measured[measured["work"] == _main_work(measured)] if len(measured) else measured


def alone(measured: pd.DataFrame) -> pd.DataFrame:
    """The points with one message in flight."""
    return measured[(measured["window"] == 1) & (measured["producers"] == 1)]


def lone(measured: pd.DataFrame) -> pd.DataFrame:
    """For each variant, its lone-message point: one message in flight, smallest payload, lowest p50."""
    some = counted(alone(measured))
    smallest = some[some["payload_bytes"] == some.groupby("variant")["payload_bytes"].transform("min")]
    return best(smallest, "variant", "p50", largest=False)


def knee(measured: pd.DataFrame) -> pd.DataFrame:
    """For each variant, the point with the lowest p99 among those within 5 % of its highest message rate: a deeper
    window often adds latency without adding throughput."""
    rates = measured["messages_per_second"]
    near_peak = measured[rates >= 0.95 * rates.groupby(measured["variant"]).transform("max")]
    return best(near_peak, "variant", "p99", largest=False)
