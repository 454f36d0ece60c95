"""The report's section on queues: which to use, their peaks, what those cost, and where the time goes."""

from types import ModuleType

import pandas as pd

from .. import stats, units
from ..document import Block, Heading, Text
from ..figures import Rendered
from ..load import Results
from ..report import picture
from . import advice, after_kernel, capacity, costs, open_load, tails, timeouts, transfers
from .details import COUNTS, WRONG
from .headline import headline, headline_note
from .plots import capacities, offered
from .plots import after_kernel as drawn_after_kernel
from .plots import timeouts as drawn_timeouts
from .plots import transfers as drawn_transfers


def warnings(results: Results) -> list[str]:
    totals = results.cells[[*WRONG]].sum()
    wrong = [f"{units.number(int(totals[name]))} {name}" for name in WRONG if totals[name]]
    if not wrong:
        return []
    return [f"Wrong answers: {', '.join(wrong)} messages. Their cells have no throughput and are listed below."]


def summary(results: Results) -> list[str]:
    sent, received, *rest = (units.number(int(results.cells[name].sum())) for name in COUNTS)
    named = ", ".join(f"{number} {name}" for number, name in zip(rest, COUNTS[2:]))
    return [f"Verified {received} of {sent} messages sent: {named}."]


def body(results: Results, drawings: list[Rendered], slim: list[Rendered]) -> list[Block]:
    closed = results.closed
    measured = stats.points(closed)
    pictures = {both[0].name: picture(*both) for both in zip(drawings, slim)}
    for figure, block in _beside(results):
        pictures.setdefault(figure.NAME, [Heading(figure.TITLE)]).append(block)
    glance = pictures.pop("headline", [])
    return [
        *advice.blocks(results),
        *glance,
        *(_headlines(closed, measured) if len(closed.cells) else []),
        *costs.blocks(results, measured),
        *(block for one in pictures.values() for block in one),
    ]


def _beside(results: Results) -> list[tuple[ModuleType, Block]]:
    """The tables and notes that belong to figures, each with the figure's module."""
    found: list[tuple[ModuleType, Block]] = []
    if len(loads := open_load.curves(open_load.points(results))):
        found += [(offered, open_load.saturation(loads)), (offered, Text(open_load.note(results), "note"))]
    if limits := tails.table(results, loads):
        found += [(offered, Text(tails.NOTE, "note")), (offered, limits)]
    if best := transfers.places(results):
        found += [(drawn_transfers, Text(transfers.NOTE, "note")), (drawn_transfers, transfers.table(results, best))]
    if len(held := timeouts.lines(results)):
        found += [(drawn_timeouts, Text(timeouts.NOTE, "note")), (drawn_timeouts, timeouts.table(results, held))]
    if len(lengths := after_kernel.lines(results)):
        found += [(drawn_after_kernel, Text(after_kernel.NOTE, "note")), (drawn_after_kernel, after_kernel.table(lengths))]
    if len(searched := capacity.answers(results)):
        found.append((capacities, capacity.table(searched)))
        if tries := capacity.evidence(searched, results.cells):
            note = Text(capacity.evidence_note(searched, results.cells), "note")
            found += [(capacities, tries), (capacities, note)]
    return found


def _headlines(results: Results, measured: pd.DataFrame) -> list[Block]:
    works = list(results.cells["work"].unique())
    main = stats.main_work(measured) if len(measured) else works[0]
    blocks: list[Block] = []
    for work in sorted(works, key=lambda work: (work != main, work)):
        blocks += [Heading(f"Headline: {work}"), headline(results, measured, work)]
    return [*blocks, Text(headline_note(results, measured), "note")]
