"""The report's part about overlap: a table a pipeline, and the figures."""

from ..document import Block, Heading, Text, markdown
from ..figures import Rendered
from ..load import Results
from ..report import picture
from . import strategies


def body(results: Results, drawings: list[Rendered], slim: list[Rendered]) -> list[Block]:
    return [*strategies.blocks(results), *(block for both in zip(drawings, slim) for block in picture(*both))]


def text(results: Results) -> list[str]:
    """The tables as a page's block has them; nothing where no row counts."""
    return [f"**{block.text}**" if isinstance(block, Heading) else markdown(block) for block in strategies.blocks(results)]
