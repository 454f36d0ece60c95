"""The generated page block `ring`."""

from ...document import markdown_table
from ...load import Results
from ...report import with_origin
from ...stats import explained
from . import compared, peaks
from . import points as ring


def ring_text(results: Results) -> str:
    points = ring.read(results)
    parts = []
    for title, table in (
        ("The GPU ring against other queues with the same work:", compared.table(points) if len(points) else None),
        ("The ring's peaks by payload:", peaks.by_payload(points)),
        ("The ring's lone-message latency:", peaks.alone(points)),
    ):
        if table:
            parts += [title, markdown_table(table)]
    if points.empty or ring.of_ring(points).empty:
        parts.append("No row of gpu_ring is ok.")
    return with_origin(results, [*parts, " ".join([NOTE, *explained(results.closed)])])


NOTE = (
    "Figures are medians over repetitions, with the 95 % interval in brackets. Each figure is the best of the points "
    "measured for it; below it are that point and the number of points, because noise flatters the best of many. "
    "“Lone”: one message in flight. The number of collecting host threads equals that of producing ones. Bytes are "
    "payload bytes one way. “Of its ceiling” counts all bytes that cross the bus; “of both copy engines” counts only "
    "the payload and compares it with simultaneous copies in both directions."
)
