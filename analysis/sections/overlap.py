"""The section of the experiment `overlap`."""

from ..overlap import details, questions, story
from ..overlap.plots import draw_all
from . import Section

SECTION = Section(
    columns=details.columns,
    doubt=details.doubt,
    linear=details.LINEAR,
    compared=details.COMPARED,
    said=details.SAID,
    draw=draw_all,
    answer=questions.blocks,
    body=story.body,
)
