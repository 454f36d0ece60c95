"""The report's section on hand-offs: sentences and a table on the cheapest ways, the cost of each way, rows with two
GPUs, several tensors and readers, and the figures. Pages use the same parts as blocks."""

from ..document import Block, Bullets, Heading, Text
from ..figures import Rendered
from ..load import Results
from ..report import picture
from . import changes, cheapest, several, ways

WAYS, TWO_GPUS, SEVERAL = "Cost of each way", "Hand-off to another GPU", "Several tensors or readers"


def body(results: Results, drawings: list[Rendered], slim: list[Rendered]) -> list[Block]:
    parts = ((WAYS, ways_blocks), (TWO_GPUS, two_gpus_blocks), (SEVERAL, several_blocks))
    told: list[Block] = []
    for title, make in parts:
        found = make(results)
        told += [Heading(title), *found] if found else []
    return [*told, *(block for both in zip(drawings, slim) for block in picture(*both))]


# Each of these functions returns an empty list if the rows have no data for it.


def cheapest_blocks(results: Results) -> list[Block]:
    found = cheapest.places(results)
    if not found:
        return []
    said = changes.sentences(results, found)
    return [
        *([Bullets(said)] if said else []),
        Text(cheapest.where(results, found)),
        cheapest.table(results, found),
        Text(cheapest.note(results, found), "note"),
    ]


def two_gpus_blocks(results: Results) -> list[Block]:
    """The table of rows whose readers compute on another GPU, with the way in which they reach the tensors."""
    found = cheapest.places(results, "other")
    if not found:
        return []
    table, note = cheapest.table(results, found, ("reach",)), cheapest.note(results, found)
    return [Text(cheapest.where(results, found)), table, Text(note, "note")]


def ways_blocks(results: Results) -> list[Block]:
    some = ways.found(results)
    if some.empty:
        return []
    return [Text(ways.where(results, some)), ways.table(results, some), Text(ways.note(results), "note")]


def several_blocks(results: Results) -> list[Block]:
    found = several.found(results)
    told: list[Block] = []
    for steps in found:
        told += [Text(f"All figures are for {several.where(results, steps)}."), several.table(results, steps)]
    return [*told, Text(several.note(results), "note")] if found else []
