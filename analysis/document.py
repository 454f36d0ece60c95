"""A report as a list of blocks, and its two renderings: one self-contained HTML file, and Markdown beside its PNGs."""

from dataclasses import dataclass, field
from html import escape

from . import dark

NEWLINE = "\n"  # in a table's cell: a line break in either rendering
STYLE = f"""
:root{{color-scheme:light;--text:#111;--paper:#fff;--soft:#444;--softer:#555;--line:#ddd;--rule:#888;--head:#f5f5f5;
--warned:#fdf1e8;--missing:#f4f4f4}}
body{{font:16px/1.5 system-ui,sans-serif;color:var(--text);background:var(--paper);max-width:84rem;margin:2rem auto;
padding:0 1.5rem}}
h1{{margin-bottom:.2rem}}
h2{{margin-top:2.6rem;border-bottom:2px solid var(--line);padding-bottom:.2rem}}
table{{border-collapse:collapse;font-size:.86rem;margin:1rem 0}}
th,td{{padding:.35rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}}
th{{border-bottom:2px solid var(--rule);background:var(--head);vertical-align:bottom}}
.number{{text-align:right;font-variant-numeric:tabular-nums}}
td.number .value{{white-space:nowrap}}
td .more{{display:block;color:var(--softer);font-size:.9em}}
.wide{{overflow-x:auto}}
.warning{{border-left:.5rem solid #D55E00;background:var(--warned);padding:.7rem 1rem;margin:1rem 0;font-weight:600}}
.missing{{border-left:.5rem solid #999;background:var(--missing);padding:.7rem 1rem;margin:1rem 0}}
figure{{margin:1rem 0}}
figure svg{{width:100%;height:auto}}
figcaption,.note{{color:var(--soft);font-size:.9rem}}
.summary li{{font-size:1.1rem;margin:.3rem 0}}
@media screen and (prefers-color-scheme:dark){{
:root{{color-scheme:dark;--text:{dark.TEXT};--paper:{dark.PAPER};--soft:#b8bec5;--softer:#a6adb5;--line:#3a3f45;
--rule:#7d848c;--head:#20252b;--warned:#3a2415;--missing:#20252b}}
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
class Text:
    text: str
    kind: str = ""  # "", "note", "missing" or "warning"


@dataclass(frozen=True)
class Bullets:
    items: list[str]


@dataclass(frozen=True)
class Table:
    columns: list[str]
    rows: list[list[str]]
    numbers: set[int] = field(default_factory=set)  # the columns aligned to the right


@dataclass(frozen=True)
class Picture:
    name: str  # the PNG's file name without its ending
    caption: str
    svg: str


Block = Heading | Text | Bullets | Table | Picture


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
        case Text(text, kind):
            return f'<p class="{kind}">{escape(text)}</p>'
        case Bullets(items):
            return '<ul class="summary">' + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"
        case Picture(_, caption, svg):
            said = escape(caption)
            return f'<figure role="img" aria-label="{said}">{svg}<figcaption>{said}</figcaption></figure>'
        case Table(columns, rows, numbers):
            body = "".join(_html_row(row, "td", numbers) for row in rows)
            head = _html_row(columns, "th", numbers)
            return f'<div class="wide"><table><thead>{head}</thead><tbody>{body}</tbody></table></div>'


def _html_row(cells: list[str], tag: str, numbers: set[int]) -> str:
    starts = [f'<{tag} class="number">' if place in numbers else f"<{tag}>" for place in range(len(cells))]
    return "<tr>" + "".join(f"{start}{_html_cell(cell)}</{tag}>" for start, cell in zip(starts, cells)) + "</tr>"


def _html_cell(cell: str) -> str:
    """The first line is the value; further ones explain it, smaller."""
    value, *more = escape(cell).split(NEWLINE)
    return f'<span class="value">{value}</span>' + "".join(f'<span class="more">{line}</span>' for line in more)


def to_markdown(title: str, blocks: list[Block]) -> str:
    return f"# {title}\n\n" + "\n\n".join(markdown(block) for block in blocks) + "\n"


def markdown(block: Block) -> str:
    match block:
        case Heading(text):
            return f"## {text}"
        case Text(text, kind):
            return f"> **{text}**" if kind == "warning" else text
        case Bullets(items):
            return "\n".join(f"- {item}" for item in items)
        case Picture(name, caption, _):
            return f"![{caption}]({name}.png)\n\n{caption}"
        case Table():
            return markdown_table(block)


def markdown_table(table: Table) -> str:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace(NEWLINE, "<br>") for cell in cells) + " |"

    rule = ["---:" if place in table.numbers else "---" for place in range(len(table.columns))]
    return "\n".join([line(table.columns), "|" + "|".join(rule) + "|", *map(line, table.rows)])
