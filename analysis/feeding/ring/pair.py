"""Message rate of one producing and one collecting thread by batch, for the ring and for the load generator alone."""

import pandas as pd

from ... import figure_text, units
from ...document import Table, markdown_table
from ...load import Results
from ...report import with_origin
from . import points as ring
from ...stats import explained
from .compared import best_said

NOTE = (
    "One thread produces and one collects. Figures are medians over repetitions, with the 95 % interval in brackets. "
    "The load generator alone (null) moves no messages: its rate is the rate at which these two threads can write and "
    "verify."
)
SHARED = ("payload_bytes", "window", "batch")  # axes with separate columns


def pair_text(results: Results) -> str:
    found = table(ring.read(results))
    said = markdown_table(found) if found else "No row of gpu_ring with one pair of threads is ok."
    return with_origin(results, [said, " ".join([NOTE, *explained(results.closed)])])


def table(points: pd.DataFrame) -> Table | None:
    """One line for each payload, batch and window with which the ring was measured."""
    found = ring.many(points)
    found = found[found["producers"] == 1] if len(found) else found
    rows = []
    for shared, at in found.groupby(list(SHARED)) if len(found) else ():
        of_ring, null = ring.of_ring(at), at[at["queue"] == "null"]
        if of_ring.empty:
            continue
        own, alone = (ring.best(some, "messages_per_second") for some in (of_ring, null))
        said = [
            best_said(some, point, "messages_per_second", units.messages_per_second, True, (*SHARED, "producers"))
            for some, point in ((of_ring, own), (null, alone))
        ]
        share = units.NOTHING
        if alone is not None:
            share = figure_text.bound(own, True) + units.percent(own["messages_per_second"] / alone["messages_per_second"])
        payload, window, batch = shared
        rows.append([units.size(payload), str(batch), str(window), *said, share])
    columns = ["payload", "batch", "window", "gpu_ring", "null (generator alone)", "ring / null"]
    return Table(columns, rows, {1, 2, 3, 4, 5}) if rows else None
