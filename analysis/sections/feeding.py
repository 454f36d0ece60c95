"""The section of the experiment `feeding`."""

from ..feeding import details, questions, story
from ..feeding.plots import draw_all, headline
from . import Section

SECTION = Section(
    columns=details.columns,
    numbers=details.NUMBERS,
    doubt=details.doubt,
    compared=details.COMPARED,
    names=details.NAMES,
    value_labels=details.SAID,
    draw=draw_all,
    headline=headline.NAME,
    warnings=story.warnings,
    answer=questions.blocks,
    summary=story.summary,
    body=story.body,
)
