"""Generated blocks of pages: this module writes all numbers in pages from result rows."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import answer, points_table, sections, stats
from .document import Block, Heading, Table, markdown, markdown_table, without_links
from .errors import BadInput
from .figures import links, pngs, standalone
from .files import write_all
from .load import FEEDING, Results, load, load_all
from .marked import rewrite
from .report import device_warning, where_line, with_origin
from .feeding import advice, after_kernel, capacity, open_load, prices, questions, tails, timeouts, transfers
from .feeding.headline import front, front_note, headline, headline_note
from .feeding.plots import ALL, capacities, load_stages, offered
from .feeding.plots import after_kernel as drawn_after_kernel
from .feeding.plots import headline as glance
from .feeding.plots import prices as drawn_prices
from .feeding.plots import timeouts as drawn_timeouts
from .feeding.plots import transfers as drawn_transfers
from .feeding.ring.block import pair_text, ring_text
from .handoff import cheapest, several, ways
from .handoff.plots import by_size
from .handoff.plots import several as drawn_several
from .kernels import conditions, errors, fastest, libraries
from .kernels import table as ladder_tables
from .kernels.plots import by_rung, error_by_depth
from .kernels.plots import roofline as drawn_roofline
from .overlap import along, strategies
from .overlap.plots import by_axis, by_strategy
from .sections.handoff import cheapest_blocks
from .storage import against_fio, best, cpu, gpudirect, paths, under_load
from .storage.plots import by_block, cpu_cost
from .storage.plots import under_load as drawn_load


def write_figures(directory: str, out: str) -> list[Path]:
    """Writes the PNGs of every experiment and, for feeding, headline.md and headline.svg; returns their paths."""
    target, contents = Path(out), {}
    for name, results in load_all([directory]).items():
        drawings = sections.of(name).draw(results)
        contents |= pngs(drawings, target)
        if name == FEEDING:
            contents[target / "headline.md"] = headline_text(results) + "\n"
            headlines = [one for one in drawings if one.name == glance.NAME and one.figure]
            contents |= {target / f"{one.name}.svg": standalone(one) for one in headlines}
    if not contents:
        raise BadInput("DIR", directory, "no experiment in it has figures", "rows of feeding, overlap, handoff, storage or kernels")
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


@dataclass(frozen=True)
class PageBlock:
    """A generated block with the origin of its numbers. `make` returns Markdown or blocks; the result is empty if the
    rows have no data for the block, as `lacks` and `allowed` explain. Without `experiment`, the first experiment in the
    folder is used. `figures`: modules whose figures follow if exported; `illustrated`: one must exist."""

    make: Callable[[Results], Sequence[str | Block]]
    experiment: str
    lacks: str
    allowed: str
    figures: tuple = ()
    illustrated: bool = False

    def __call__(self, directory: str, page: Path, figures: str | None) -> str:
        first = next(iter(load_all([directory])))
        results = load([directory], experiment=self.experiment or first)
        parts = [part if isinstance(part, str) else markdown(part) for part in self.make(results)]
        if not parts:
            raise BadInput("DIR", directory, self.lacks, self.allowed)
        pictures = _pictures if self.illustrated else _exported
        return with_origin(results, [*parts, *pictures(Path(figures or directory), page, self.figures, directory)])


def update_readme(directory: str, readme: str, block: str, figures: str | None, check: bool) -> int:
    """Rewrites one of the blocks in `BLOCKS`, or with `check` only checks it. Returns the exit code."""
    page = Path(readme)

    def make() -> str:
        return BLOCKS[block](directory, page, figures or _folder_shown(page, block))

    return rewrite(readme, "README.md", block, make, check, directory)


def _folder_shown(page: Path, block: str) -> str | None:
    """The folder of the pictures that the page's block shows; None if it shows none."""
    _, _, rest = page.read_text(encoding="utf-8").partition(f"<!-- {block}:begin -->")
    picture = re.search(r"^!\[.*\]\((.+)\)\s*$", rest.partition(f"<!-- {block}:end -->")[0], re.MULTILINE)
    return str((page.parent / picture[1]).parent) if picture else None


def _pictures(folder: Path, page: Path, drawn: tuple, directory: str) -> list[str]:
    """Links to the drawn figures that were exported; raises BadInput if there are none."""
    pictures = _exported(folder, page, drawn, directory)
    if not pictures:
        allowed = f"a folder that `python -m analysis figures {directory} --out {folder}` has written"
        raise BadInput("--figures", folder, "has no figure", allowed)
    return pictures


def _exported(folder: Path, page: Path, drawn: tuple, directory: str) -> list[str]:
    files = [(figure.TITLE, folder / f"{figure.NAME}.png") for figure in drawn]
    return links(page, [(title, file) for title, file in files if file.is_file()])


def _figures_block(directory: str, page: Path, figures: str | None) -> str:
    text = headline_text(load([directory]))
    return "\n\n".join([text, *_pictures(Path(figures or directory), page, ALL, directory)])


def _front(results: Results) -> list[Block | str]:
    table = front(results)
    return [table, front_note(results)] if table else []


def _load(results: Results) -> list[Block | str]:
    curves = open_load.curves(open_load.points(results))
    found = [open_load.saturation(curves), tails.table(results, curves)]
    return [*(table for table in found if table), open_load.note(results)]


def _capacity(results: Results) -> list[Block | str]:
    advised = [without_links(block) if isinstance(block, Table) else block for block in advice.blocks(results)[1:]]
    found = capacity.best_settings(capacity.answers(results))
    tries = capacity.evidence(found, results.cells)
    return [*advised, *([tries, capacity.evidence_note(found, results.cells)] if tries else [])]


def _prices(results: Results) -> list[Block | str]:
    found = prices.prices(results)
    return [] if found.empty else [prices.table(found), " ".join([prices.NOTE, *stats.explained(results)])]


def _inline(blocks: list[Block]) -> list[Block | str]:
    """The blocks with bold lines instead of headings, because headings would appear in the page's contents."""
    return [f"**{block.text}**" if isinstance(block, Heading) else block for block in blocks]


def _of_feeding(make: Callable, lacks: str, spec: str = "feeding", *figures, illustrated: bool = False) -> PageBlock:
    return PageBlock(make, FEEDING, lacks, f"rows of `{spec}`", figures, illustrated)


def _of_overlap(axis: along.Axis) -> PageBlock:
    """The block with every strategy at the values of one axis."""
    drawn = tuple(figure for figure in by_axis.ALL if figure.axis is axis)
    lacks = f"has no strategy with two values of {axis.name}"
    return PageBlock(lambda results: _inline(along.blocks(results, axis)), "overlap", lacks, "rows of `overlap`", drawn)


def _of_handoff(make: Callable, lacks: str, *figures) -> PageBlock:
    return PageBlock(make, "handoff", lacks, "rows of `handoff`", figures)


def _of_storage(make: Callable, lacks: str, *figures) -> PageBlock:
    return PageBlock(make, "storage", lacks, "rows of `storage`", figures)


def _of_kernels(make: Callable, lacks: str, *figures) -> PageBlock:
    return PageBlock(lambda results: _inline(make(results)), "kernels", lacks, "rows of `kernels`", figures)


NO_ROW = "has no row{} that counts"
BLOCKS: dict[str, Callable[[str, Path, str | None], str]] = {
    "front": _of_feeding(_front, NO_ROW.format(" of feeding")),
    "best": PageBlock(lambda results: answer.of(results)[1:], "", NO_ROW.format(""), "rows of any experiment"),
    "points": PageBlock(
        lambda results: points_table.blocks(results)[1:], "", NO_ROW.format(""), "rows of any experiment"
    ),
    "answer": _of_feeding(lambda results: questions.blocks(results)[1:], NO_ROW.format(" of feeding")),
    "figures": _figures_block,
    "ring": lambda directory, *_: ring_text(load([directory])),
    "one_pair": lambda directory, *_: pair_text(load([directory])),
    "load": _of_feeding(_load, "has no open load", "load", offered, load_stages, illustrated=True),
    "capacity": _of_feeding(_capacity, "has no load that is ok", "capacity", capacities, illustrated=True),
    "prices": _of_feeding(
        _prices, "does not have redis_list and two other Redis queues", "guarantees", drawn_prices, illustrated=True
    ),
    "transfers": _of_feeding(
        transfers.text, "does not have two transfers that searches found for one payload and batch", "transfers",
        drawn_transfers,
    ),
    "batch_timeout": _of_feeding(
        timeouts.text, "has no open load with two values of batch-timeout", "transfers", drawn_timeouts
    ),
    "after_kernel": _of_feeding(
        after_kernel.text, "has no lone messages with kernels of many lengths", "after_kernel", drawn_after_kernel,
        illustrated=True,
    ),
    "strategies": PageBlock(
        lambda results: _inline(strategies.blocks(results)), "overlap", NO_ROW.format(" of overlap"),
        "rows of `overlap`", (by_strategy,),
    ),
    "by_depth": _of_overlap(along.DEPTH),
    "by_item": _of_overlap(along.ITEM),
    "by_balance": _of_overlap(along.BALANCE),
    "cheapest": _of_handoff(cheapest_blocks, NO_ROW.format(" of handoff"), *by_size.ALL),
    "ways": _of_handoff(ways.blocks, NO_ROW.format(" of handoff")),
    "two_gpus": _of_handoff(cheapest.two_gpus_blocks, NO_ROW.format(" of handoff to another GPU")),
    "several": _of_handoff(several.blocks, "has no way with two numbers of tensors or readers", drawn_several),
    "engines": _of_storage(best.blocks, NO_ROW.format(" of storage"), by_block),
    "against_fio": _of_storage(against_fio.blocks, "has no row with O_DIRECT and a limit from fio"),
    "cpu_cost": _of_storage(cpu.blocks, NO_ROW.format(" of storage"), cpu_cost),
    "latency_under_load": _of_storage(under_load.blocks, "has no open load", drawn_load),
    "paths": _of_storage(paths.blocks, NO_ROW.format(" of storage")),
    "gpudirect": _of_storage(gpudirect.blocks, NO_ROW.format(" of storage")),
    "fastest_rung": _of_kernels(fastest.blocks, NO_ROW.format(" of kernels"), by_rung),
    "ladders": _of_kernels(ladder_tables.blocks, NO_ROW.format(" of kernels"), drawn_roofline),
    "libraries": _of_kernels(libraries.blocks, "has no rung that took turns with a library"),
    "conditions": _of_kernels(conditions.blocks, "has no rung under two conditions"),
    "error_by_depth": _of_kernels(errors.blocks, "has no rung at two depths", error_by_depth),
}  # fmt: skip
