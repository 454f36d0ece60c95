"""Generated blocks of pages: this module writes all numbers in pages from result rows."""

from collections.abc import Callable
from pathlib import Path

from . import answer, plain, sections, stats
from .document import Block, Table, markdown, markdown_table, without_links
from .errors import BadInput
from .figures import links, pngs, standalone
from .files import write_all
from .load import FEEDING, Results, load, load_all
from .marked import rewrite
from .report import device_warning, told, where_line
from .feeding import advice, capacity, open_load, prices, questions, tails, timeouts, transfers
from .feeding.headline import front, front_note, headline, headline_note
from .feeding.plots import ALL, capacities, load_stages, offered
from .feeding.plots import headline as glance
from .feeding.plots import prices as drawn_prices
from .feeding.plots import timeouts as drawn_timeouts
from .feeding.plots import transfers as drawn_transfers
from .feeding.ring.block import pair_text, ring_text
from .handoff import story as handoff
from .handoff.plots import by_size
from .handoff.plots import several as drawn_several
from .overlap import axes as overlap_axes
from .overlap import story as overlap
from .overlap.plots import by_axis, by_strategy


def write_figures(directory: str, out: str) -> list[Path]:
    """Writes the PNGs of every experiment and, for feeding, headline.md and headline.svg; returns their paths."""
    target, contents = Path(out), {}
    for name, results in load_all([directory]).items():
        drawings = sections.of(name).draw(results)
        contents |= pngs(drawings, target)
        if name == FEEDING:
            contents[target / "headline.md"] = headline_text(results) + "\n"
            contents |= {
                target / f"{one.name}.svg": standalone(one) for one in drawings if one.name == glance.NAME and one.figure
            }
    if not contents:
        raise BadInput("DIR", directory, "no experiment in it has figures", "rows of feeding, overlap or handoff")
    return write_all(contents)


def headline_text(results: Results) -> str:
    """The headline table of each workload as Markdown, with the machine and versions."""
    warning, where = device_warning(results), where_line(results)
    results = results.closed
    measured = stats.points(results)
    parts = [f"**{warning}**"] if warning else []
    for work in sorted(results.cells["work"].unique(), key=lambda work: (work != "echo", work)):
        parts += [f"Workload {work}:", markdown_table(headline(results, measured, work))]
    return "\n\n".join([*parts, headline_note(results, measured), where])


def update_readme(directory: str, readme: str, block: str, figures: str | None, check: bool) -> int:
    """Rewrites one of the blocks in `BLOCKS`, or with `check` only checks it. Returns the exit code."""
    make = BLOCKS[block]
    return rewrite(readme, "README.md", block, lambda: make(directory, Path(readme), figures), check, directory)


def _pictures(directory: str, readme: Path, figures: str | None, drawn: tuple) -> list[str]:
    """Links to those of the drawn figures that were exported; raises BadInput if there are none."""
    folder = Path(figures or directory)
    pictures = _exported(folder, readme, drawn)
    if not pictures:
        raise BadInput(
            "--figures",
            folder,
            "has no figure",
            f"a folder that `python -m analysis figures {directory} --out {folder}` has written",
        )
    return pictures


def _exported(folder: Path, readme: Path, drawn: tuple) -> list[str]:
    files = [(figure.TITLE, folder / f"{figure.NAME}.png") for figure in drawn]
    return links(readme, [(title, file) for title, file in files if file.is_file()])


def _figures_block(directory: str, readme: Path, figures: str | None) -> str:
    return "\n\n".join([headline_text(load([directory])), *_pictures(directory, readme, figures, ALL)])


def _front_block(directory: str, readme: Path, figures: str | None) -> str:
    results = load([directory])
    table = front(results)
    parts = [markdown_table(table), front_note(results)] if table else []
    return told(results, _of(parts, directory, "has no row of feeding that counts", "rows of `feeding`"))


def _answer_block(directory: str, readme: Path, figures: str | None) -> str:
    results = load([directory])
    return told(results, [markdown(block) for block in questions.blocks(results)[1:]])


def _best_block(directory: str, readme: Path, figures: str | None) -> str:
    """The best variant for each question (or headline figure) of the folder's first experiment."""
    name, results = next(iter(load_all([directory]).items()))
    own = sections.of(name).answer
    found = own(results) if own else answer.blocks(results, answer.general(results.experiment))
    return told(results, [markdown(block) for block in found[1:]])


def _points_block(directory: str, readme: Path, figures: str | None) -> str:
    """Every point of the folder's first experiment, with its figures."""
    results = next(iter(load_all([directory]).values()))
    return told(results, [markdown(block) for block in plain.blocks(results)[1:]])


def _ring_block(directory: str, readme: Path, figures: str | None) -> str:
    return ring_text(load([directory]))


def _pair_block(directory: str, readme: Path, figures: str | None) -> str:
    return pair_text(load([directory]))


def _load_block(directory: str, readme: Path, figures: str | None) -> str:
    results = load([directory])
    curves = open_load.curves(open_load.points(results))
    found = [open_load.saturation(curves), tails.table(results, curves)]
    pictures = _pictures(directory, readme, figures, (offered, load_stages))
    return told(results, [*(markdown_table(table) for table in found if table), open_load.note(results), *pictures])


def _capacity_block(directory: str, readme: Path, figures: str | None) -> str:
    results = load([directory])
    advised = [
        markdown(without_links(block) if isinstance(block, Table) else block) for block in advice.blocks(results)[1:]
    ]
    found = capacity.best_settings(capacity.answers(results))
    tries = capacity.evidence(found, results.cells)
    parts = [*advised, *([markdown_table(tries), capacity.evidence_note(found, results.cells)] if tries else [])]
    return told(results, [*parts, *_pictures(directory, readme, figures, (capacities,))])


def _prices_block(directory: str, readme: Path, figures: str | None) -> str:
    results = load([directory])
    found = prices.prices(results)
    if found.empty:
        raise BadInput("DIR", directory, "does not have redis_list and two other Redis queues", "rows of `guarantees`")
    told_of = [markdown_table(prices.table(found)), " ".join([prices.NOTE, *stats.explained(results)])]
    return told(results, [*told_of, *_pictures(directory, readme, figures, (drawn_prices,))])


def _transfers_block(directory: str, readme: Path, figures: str | None) -> str:
    results = load([directory])
    lacks = "does not have two transfers that searches found for one payload and batch"
    parts = _of(transfers.text(results), directory, lacks, "rows of `transfers`")
    return told(results, [*parts, *_exported(Path(figures or directory), readme, (drawn_transfers,))])


def _timeout_block(directory: str, readme: Path, figures: str | None) -> str:
    results = load([directory])
    lacks = "has no open load with two values of batch-timeout"
    parts = _of(timeouts.text(results), directory, lacks, "rows of `transfers`")
    return told(results, [*parts, *_exported(Path(figures or directory), readme, (drawn_timeouts,))])


def _strategies_block(directory: str, readme: Path, figures: str | None) -> str:
    results = load([directory], experiment="overlap")
    parts = _of(overlap.text(results), directory, "has no row of overlap that counts", "rows of `overlap`")
    return told(results, [*parts, *_exported(Path(figures or directory), readme, (by_strategy,))])


def _along_block(axis: overlap_axes.Axis) -> Callable[[str, Path, str | None], str]:
    """A function that makes the block with every strategy at the values of one axis."""

    def make(directory: str, readme: Path, figures: str | None) -> str:
        results = load([directory], experiment="overlap")
        lacks = f"has no strategy with two values of {axis.name}"
        parts = _of(overlap.text(results, axis), directory, lacks, "rows of `overlap`")
        drawn = tuple(figure for figure in by_axis.ALL if figure.axis is axis)
        return told(results, [*parts, *_exported(Path(figures or directory), readme, drawn)])

    return make


def _handoff_block(
    make: Callable[[Results], list[Block]], lacks: str, drawn: tuple = ()
) -> Callable[[str, Path, str | None], str]:
    """A function that makes the block with one part of the report on hand-offs and its figures."""

    def block(directory: str, readme: Path, figures: str | None) -> str:
        results = load([directory], experiment="handoff")
        parts = _of([markdown(one) for one in make(results)], directory, lacks, "rows of `handoff`")
        return told(results, [*parts, *_exported(Path(figures or directory), readme, drawn)])

    return block


def _of(parts: list[str], directory: str, lacks: str, allowed: str) -> list[str]:
    """The parts of a block; raises BadInput if there are none."""
    if not parts:
        raise BadInput("DIR", directory, lacks, allowed)
    return parts


BLOCKS = {
    "front": _front_block,
    "best": _best_block,
    "points": _points_block,
    "answer": _answer_block,
    "figures": _figures_block,
    "ring": _ring_block,
    "one_pair": _pair_block,
    "load": _load_block,
    "capacity": _capacity_block,
    "prices": _prices_block,
    "transfers": _transfers_block,
    "batch_timeout": _timeout_block,
    "strategies": _strategies_block,
    "by_depth": _along_block(overlap_axes.DEPTH),
    "by_item": _along_block(overlap_axes.ITEM),
    "by_balance": _along_block(overlap_axes.BALANCE),
    "cheapest": _handoff_block(handoff.cheapest_blocks, "has no row of handoff that counts", by_size.ALL),
    "ways": _handoff_block(handoff.ways_blocks, "has no row of handoff that counts"),
    "two_gpus": _handoff_block(handoff.two_gpus_blocks, "has no row of handoff to another GPU that counts"),
    "several": _handoff_block(
        handoff.several_blocks, "has no way with two numbers of tensors or readers", (drawn_several,)
    ),
}
