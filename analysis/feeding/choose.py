"""Points of closed loads worth naming: lone messages, and the knee of each queue."""

import pandas as pd

from ..stats import best


def lone(measured: pd.DataFrame) -> pd.DataFrame:
    """For each variant its lone-message point: one message in flight, one producer, smallest payload, least p50."""
    alone = measured[(measured["window"] == 1) & (measured["producers"] == 1)]
    smallest = alone[alone["payload_bytes"] == alone.groupby("variant")["payload_bytes"].transform("min")]
    return best(smallest, "variant", "p50", largest=False)


def knee(measured: pd.DataFrame) -> pd.DataFrame:
    """For each variant the point of least p99 among those within 5 % of its most messages a second: deeper windows
    often add latency and nothing else."""
    rates = measured["messages_per_second"]
    near_peak = measured[rates >= 0.95 * rates.groupby(measured["variant"]).transform("max")]
    return best(near_peak, "variant", "p99", largest=False)
