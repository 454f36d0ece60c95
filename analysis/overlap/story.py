"""The report's section on overlap: one table per pipeline, and the figures. Pages also have tables along an axis."""

from ..document import Block, Heading, markdown
from ..figures import Rendered
from ..load import Results
from ..report import picture
from . import along, strategies
from .axes import Axis


def body(results: Results, drawings: list[Rendered], slim: list[Rendered]) -> list[Block]:
    return [*strategies.blocks(results), *(block for both in zip(drawings, slim) for block in picture(*both))]


def text(results: Results, axis: Axis | None = None) -> list[str]:
    """The tables for a page's block, for all strategies at one setting or along an axis; empty if no row counts."""
    blocks = along.blocks(results, axis) if axis else strategies.blocks(results)
    return [f"**{block.text}**" if isinstance(block, Heading) else markdown(block) for block in blocks]
