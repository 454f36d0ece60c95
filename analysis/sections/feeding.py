"""The section of the `feeding` experiment."""

from ..feeding import details, questions, section
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
    warnings=section.warnings,
    answer=questions.blocks,
    summary=section.summary,
    body=section.body,
)
