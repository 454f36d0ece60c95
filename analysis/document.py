"""A report as a list of blocks, and its two renderings: one self-contained HTML file, and Markdown with PNG files."""

import re
from dataclasses import dataclass, field
from html import escape

from . import dark

PHONE = 700  # px; narrower screens show a figure in its narrow shape
ROOM = {"short": 16, "plain": 24}  # maximum characters of a cell's line, by CSS class
LONGEST = 60  # maximum characters of a value; longer ones are prose
NEWLINE = "\n"  # a line break in a table cell, in both renderings
FLAGS = ("unstable", "no clear difference", "unclear")  # first words of lines that warn about the figure above
STYLE = f"""
:root{{color-scheme:light;--text:#111;--paper:#fff;--soft:#444;--softer:#555;--line:#ddd;--rule:#888;--head:#f5f5f5;
--warned:#fdf1e8;--missing:#f4f4f4;--shade:#999999;--flag:#a33f00;--link:#00508c}}
body{{font:16px/1.5 system-ui,sans-serif;color:var(--text);background:var(--paper);max-width:84rem;margin:2rem auto;
padding:0 1.5rem}}
h1{{margin-bottom:.2rem}}
h2{{margin-top:2.6rem;border-bottom:2px solid var(--line);padding-bottom:.2rem}}
table{{border-collapse:collapse;font-size:.86rem}}
th,td{{padding:.35rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}}
th{{border-bottom:2px solid var(--rule);background:var(--head);vertical-align:bottom}}
.number{{text-align:right;font-variant-numeric:tabular-nums}}
td .more{{display:block;color:var(--softer);font-size:.9em}}
td .flag{{color:var(--flag);font-weight:600}}
.wide{{margin:1rem 0;overflow-x:auto;scrollbar-width:thin;background:
linear-gradient(to right,var(--paper) 30%,transparent) 0 0/3rem 100% no-repeat local,
linear-gradient(to left,var(--paper) 30%,transparent) 100% 0/3rem 100% no-repeat local,
linear-gradient(to right,var(--shade),transparent) 0 0/1rem 100% no-repeat scroll,
linear-gradient(to left,var(--shade),transparent) 100% 0/1rem 100% no-repeat scroll}}
.warning{{border-left:.5rem solid #D55E00;background:var(--warned);padding:.7rem 1rem;margin:1rem 0;font-weight:600}}
.missing{{border-left:.5rem solid #999;background:var(--missing);padding:.7rem 1rem;margin:1rem 0}}
.short{{white-space:nowrap}}
.long{{display:block;min-width:8rem}}
.prose{{display:block;min-width:14rem}}
td.number .value{{white-space:nowrap;min-width:0}}
table:has(th:nth-child(12)){{font-size:.76rem}}
table:has(th:nth-child(12)) :is(th,td){{padding:.3rem}}
table:has(th:nth-child(12)) .long{{min-width:6rem}}
table:has(th:nth-child(12)) th .value{{white-space:normal}}
figure{{margin:1rem 0}}
figure svg{{width:100%;max-width:72rem;height:auto}}
figcaption,.note{{color:var(--soft);font-size:.9rem}}
.summary li{{font-size:1.1rem;margin:.3rem 0}}
a{{color:var(--link)}}
.slim{{display:none}}
@media screen and (max-width:{PHONE}px){{
body{{padding:0 .8rem;margin:1rem auto}}
h1{{font-size:1.5rem}}
.broad{{display:none}}
.slim{{display:block}}
}}
@media screen and (prefers-color-scheme:dark){{
:root{{color-scheme:dark;--text:{dark.TEXT};--paper:{dark.PAPER};--soft:#b8bec5;--softer:#a6adb5;--line:#3a3f45;
--rule:#7d848c;--head:#20252b;--warned:#3a2415;--missing:#20252b;--shade:#7d848c;--flag:#ff9248;--link:#6cb8ee}}
{dark.figure_rules()}
}}
@page{{size:A4 landscape;margin:12mm}}
@media print{{
body{{max-width:none;margin:0;padding:0;font-size:11px}}
figure,tr{{break-inside:avoid}}
h2{{break-after:avoid;margin-top:1.5rem}}
figure svg{{max-height:110mm}}
table{{font-size:9px}}
.wide{{overflow:visible}}
}}
"""


@dataclass(frozen=True)
class Heading:
    text: str


@dataclass(frozen=True)
class Chapter:
    """The heading of one experiment's part in a report on several experiments."""

    text: str
    told: str = ""


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
    body = "\n".join(_html(block) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{STYLE}</style></head>\n'
        f"<body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def _html(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h2>{escape(text)}</h2>"
        case Chapter(text, told):
            return f'<h1>{escape(text)}</h1>\n<p class="note">{escape(told)}</p>'
        case Text(text, kind):
            return f'<p class="{kind}">{escape(text)}</p>'
        case Bullets(items):
            return '<ul class="summary">' + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"
        case Picture(_, caption, broad, slim):
            said = escape(caption)
            drawn = f'<div class="broad">{broad}</div><div class="slim">{slim}</div>'
            return f'<figure role="img" aria-label="{said}">{drawn}<figcaption>{said}</figcaption></figure>'
        case Table(columns, rows, numbers):
            body = "".join(_html_row(row, "td", numbers) for row in rows)
            head = _html_row(columns, "th", numbers)
            return f'<div class="wide" tabindex="0"><table><thead>{head}</thead><tbody>{body}</tbody></table></div>'


def _html_row(cells: list[Cell], tag: str, numbers: set[int]) -> str:
    starts = [f'<{tag} class="number">' if place in numbers else f"<{tag}>" for place in range(len(cells))]
    return "<tr>" + "".join(f"{start}{_html_cell(cell)}</{tag}>" for start, cell in zip(starts, cells)) + "</tr>"


def _html_cell(cell: Cell) -> str:
    """The HTML of a cell: its first line is the value; further lines are smaller and explain the value or warn."""
    value, *more = escape(str(cell)).split(NEWLINE)
    match cell:
        case Link():
            value = f'<a href="#{cell.anchor}">{value}</a>'
        case Anchor():
            value = f'<span id="{cell.name}">{value}</span>'
    said = "".join(f'<span class="more{" flag" * line.startswith(FLAGS)} {_room(line)}">{line}</span>' for line in more)
    text = str(cell).partition(NEWLINE)[0]
    return f'<span class="value {"prose" if len(text) > LONGEST else _room(text)}">{value}</span>{said}'


def _room(line: str) -> str:
    """A CSS class that keeps a short text on one line and gives a long text a minimum width."""
    return next((name for name, most in ROOM.items() if len(line) <= most), "long")


def evidence(blocks: list[Block]) -> list[Block]:
    """A table of the evidence that the links in the blocks refer to; empty if there are no links."""
    cells = [cell for block in blocks if isinstance(block, Table) for row in block.rows for cell in row]
    found = {cell.anchor: cell for cell in cells if isinstance(cell, Link)}
    rows = [[Anchor(link.text, link.anchor), *link.evidence.split(NEWLINE)] for link in found.values()]
    return [Heading("Evidence"), Table(["number", "row", "directory"], rows)] if rows else []


def without_links(table: Table) -> Table:
    """The table without its columns of links, for a text that does not include their targets."""
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
        case Chapter(text, told):
            return _no_html(f"# {text}\n\n{told}")
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
