"""The section of the experiment `handoff`."""

from ..handoff import details, questions, story
from ..handoff.plots import draw_all
from . import Section

SECTION = Section(
    columns=details.columns,
    numbers=details.NUMBERS,
    doubt=details.doubt,
    names=details.NAMES,
    said=details.SAID,
    draw=draw_all,
    answer=questions.blocks,
    body=story.body,
)
