"""The cheapest way by size; times of different sizes, uses or numbers of tensors are not comparable."""

from ..answer import TITLE
from ..document import Block, Heading
from ..load import Results
from . import story


def blocks(results: Results) -> list[Block]:
    """The heading and the blocks on the cheapest ways; empty if no row counts."""
    found = story.cheapest_blocks(results)
    return [Heading(TITLE), *found] if found else []
