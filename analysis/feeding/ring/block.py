"""README's block about the ring."""

from ...document import markdown_table
from ...load import Results
from ...report import told
from ...stats import explained
from . import compared, peaks
from . import points as ring


def ring_text(results: Results) -> str:
    points = ring.read(results)
    parts = []
    for title, table in (
        ("GPU ring against others doing the same work:", compared.table(points) if len(points) else None),
        ("The ring's peaks by payload:", peaks.by_payload(points)),
        ("The ring's lone messages:", peaks.alone(points)),
    ):
        if table:
            parts += [title, markdown_table(table)]
    if points.empty or ring.of_ring(points).empty:
        parts.append("No row of gpu_ring is ok.")
    return told(results, [*parts, " ".join([NOTE, *explained(results.closed)])])


NOTE = (
    "Medians over repetitions, in brackets the 95 % interval; each figure is the best of the points measured for it; "
    "which, and of how many, stands below it: the best of many is flattered by noise. Lone: one message in flight. "
    "As many host threads collect as produce. Bytes are payload bytes one way; “of its ceiling” counts all that crosses "
    "the bus, “of both copy engines” the payload alone, beside copies both ways at once."
)
