"""Notable points of closed loads: the lone message and the knee of each variant."""

import pandas as pd

from ..stats import best


def lone(measured: pd.DataFrame) -> pd.DataFrame:
    """For each variant, its lone-message point: one message in flight, one producer, smallest payload, lowest p50."""
    alone = measured[(measured["window"] == 1) & (measured["producers"] == 1)]
    smallest = alone[alone["payload_bytes"] == alone.groupby("variant")["payload_bytes"].transform("min")]
    return best(smallest, "variant", "p50", largest=False)


def knee(measured: pd.DataFrame) -> pd.DataFrame:
    """For each variant, the point with the lowest p99 among those within 5 % of its highest message rate: a deeper
    window often adds latency without adding throughput."""
    rates = measured["messages_per_second"]
    near_peak = measured[rates >= 0.95 * rates.groupby(measured["variant"]).transform("max")]
    return best(near_peak, "variant", "p99", largest=False)
