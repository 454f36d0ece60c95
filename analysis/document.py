"""A report as a list of blocks, and its two renderings: one self-contained HTML file, and Markdown with PNG files."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from . import dark

PHONE = 700  # px; narrower screens show a figure in its narrow shape
WIDTHS = {"short": 16, "medium": 24}  # maximum characters of a cell's line, by CSS class
LONGEST = 60  # maximum characters of a value; longer ones are prose
NEWLINE = "\n"  # a line break in a table cell, in both renderings
FLAGS = ("unstable", "no clear difference", "unclear")  # first words of lines that warn about the figure above


@dataclass(frozen=True)
class Heading:
    text: str


@dataclass(frozen=True)
class Chapter:
    """The heading of one experiment's part in a report on several experiments."""

    text: str
    description: str = ""


@dataclass(frozen=True)
class Text:
    text: str
    kind: str = ""  # "", "note", "missing" or "warning"


@dataclass(frozen=True)
class Bullets:
    items: list[str]


@dataclass(frozen=True)
class Table:
    columns: list[str]
    rows: list[list["Cell"]]
    numbers: set[int] = field(default_factory=set)  # the columns aligned to the right


@dataclass(frozen=True)
class Link:
    """A cell that links to its evidence, which is too long for the cell."""

    text: str
    anchor: str
    evidence: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Anchor:
    """A cell that is the target of links."""

    text: str
    name: str

    def __str__(self) -> str:
        return self.text


Cell = str | Link | Anchor


@dataclass(frozen=True)
class Picture:
    name: str  # the PNG's file name without its extension
    caption: str
    broad: str  # SVG for wide screens and for paper
    slim: str  # SVG for phone screens


Block = Heading | Chapter | Text | Bullets | Table | Picture


def to_html(title: str, blocks: list[Block]) -> str:
    folder = FileSystemLoader(Path(__file__).parent)
    pages = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, loader=folder)
    pages.filters["kind"] = lambda block: type(block).__name__
    pages.filters |= {"width_class": _width_class, "value_class": _value_class}
    pages.tests["warning"] = lambda line: line.startswith(FLAGS)
    return pages.get_template("report.html.jinja").render(title=title, blocks=blocks, dark=dark, phone=PHONE)


def _width_class(line: str) -> str:
    """A CSS class that keeps a short text on one line and gives a long text a minimum width."""
    return next((name for name, most in WIDTHS.items() if len(line) <= most), "long")


def _value_class(value: str) -> str:
    return "prose" if len(value) > LONGEST else _width_class(value)


def evidence(blocks: list[Block]) -> list[Block]:
    """A table of the evidence that the links in the blocks refer to; empty if there are no links."""
    cells = [cell for block in blocks if isinstance(block, Table) for row in block.rows for cell in row]
    found = {cell.anchor: cell for cell in cells if isinstance(cell, Link)}
    rows = [[Anchor(link.text, link.anchor), *link.evidence.split(NEWLINE)] for link in found.values()]
    return [Heading("Evidence"), Table(["number", "row", "directory"], rows)] if rows else []


def without_links(table: Table) -> Table:
    """The table without its columns of links, for a document that does not include their targets."""
    kept = [
        place for place in range(len(table.columns)) if not any(isinstance(row[place], Link) for row in table.rows)
    ]
    return Table(
        [table.columns[place] for place in kept],
        [[row[place] for place in kept] for row in table.rows],
        {kept.index(place) for place in table.numbers if place in kept},
    )


def to_markdown(title: str, blocks: list[Block]) -> str:
    return f"# {_no_html(title)}\n\n" + "\n\n".join(markdown(block) for block in blocks) + "\n"


def markdown(block: Block) -> str:
    match block:
        case Heading(text):
            return f"## {_no_html(text)}"
        case Chapter(text, description):
            return _no_html(f"# {text}\n\n{description}")
        case Text(text, kind):
            return _no_html(f"> **{text}**" if kind == "warning" else text)
        case Bullets(items):
            return _no_html("\n".join(f"- {item}" for item in items))
        case Picture(name, caption, _, _):
            return _no_html(f"![{caption}]({name}.png)\n\n{caption}")
        case Table():
            return markdown_table(block)


def markdown_table(table: Table) -> str:
    def line(cells: list[Cell]) -> str:
        return "| " + " | ".join(map(_markdown_cell, cells)) + " |"

    rule = ["---:" if place in table.numbers else "---" for place in range(len(table.columns))]
    return "\n".join([line(table.columns), "|" + "|".join(rule) + "|", *map(line, table.rows)])


def _no_html(text: str) -> str:
    """Escapes HTML in text from rows, so that it does not become tags or comments of the page."""
    return re.sub(r"<(?=[A-Za-z!/?])", "&lt;", text)


def _markdown_cell(cell: Cell) -> str:
    text = _no_html(str(cell)).replace("|", "\\|").replace(NEWLINE, "<br>")
    match cell:
        case Link():
            return f"[{text}](#{cell.anchor})"
        case Anchor():
            return f'<a id="{cell.name}"></a>{text}'
    return text
