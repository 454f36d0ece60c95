"""The figures and the table in the page about the ring."""

from pathlib import Path

from ...document import markdown_table
from ...errors import BadInput
from ...figures import links, pngs
from ...files import say, write_all
from ...load import Results, load
from ...marked import rewrite
from ...report import with_origin
from . import axes, plots
from . import points as ring


def write_ring(directory: str, out: str | None, note: str | None, check: bool) -> int:
    """Writes the PNGs into `out` and the `axes` block into `note`; with `check`, only checks the block."""
    if not out and not note:
        raise BadInput("ring", directory, "neither --out nor --note is given", "--out DIR, --note NOTE.md or both")
    results = load([directory])
    if out and not check:
        say("\n".join(map(str, write_all(pngs(plots.draw_all(results), Path(out))))))
    if not note:
        return 0
    return rewrite(note, "--note", "axes", lambda: axes_text(results, Path(note), out), check, directory)


def axes_text(results: Results, note: Path, figures: str | None) -> str:
    points = ring.read(results)
    table = axes.table(points)
    how = f"{NOTE} {BOUNDS}" if len(points) and points["limited"].any() else NOTE
    parts = [markdown_table(table), how] if table else [NOTHING]
    pictures = [(title, Path(figures) / f"{name}.png") for name, title in plots.NAMES.items()] if figures else []
    shown = [(title, picture) for title, picture in pictures if picture.is_file()]
    return "\n\n".join([with_origin(results, parts), *links(note, shown)])


NOTHING = "The rows have no two points that differ only in one axis of the ring."
NOTE = (
    "Figures are medians over repetitions. The points of a row differ only in the axis. Of several such groups, the "
    "row shows the one with the most values and, among equals, the best. Values left to the queue are shown as the "
    "queue chose them."
)
BOUNDS = "≥ (at least) and ≤ (at most): in at least one repetition the load generator was the limit, not the ring."
