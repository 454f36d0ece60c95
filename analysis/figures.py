"""Drawings onto disk, and into text."""

import io
import os
from dataclasses import dataclass
from pathlib import Path

from matplotlib.text import Text
from PIL import Image  # matplotlib brings it

from . import cores
from .plots.style import Drawing, plain

DOTS_PER_INCH = 160
COLOURS = 256


@dataclass(frozen=True)
class Rendered:
    """A drawing as what a page shows; `missing` says why there is none."""

    name: str
    title: str
    caption: str
    missing: str = ""
    svg: str = ""  # an element
    png: bytes = b""


def pngs(drawings: list[Drawing], directory: Path) -> dict[Path, bytes]:
    """`<name>.png` of every figure that has data, by its path in the directory."""
    return files(render(drawings, png=True), directory)


def files(rendered: list[Rendered], directory: Path) -> dict[Path, bytes]:
    return {directory / f"{one.name}.png": one.png for one in rendered if one.png}


def render(drawings: list[Drawing], shape: str | None = None, png: bool = False) -> list[Rendered]:
    """On all cores, since it takes longest of all that makes a report. `shape`, where SVGs are wanted: it is part of
    their ids, for several share one page."""

    def one(drawing: Drawing) -> Rendered:
        about = drawing.name, drawing.title, drawing.caption
        if drawing.figure is None:
            return Rendered(*about, drawing.missing)
        svg = "" if shape is None else _svg(drawing, shape)
        return Rendered(*about, svg=svg, png=_png(drawing) if png else b"")

    return cores.on_all(one, drawings)


def _png(drawing: Drawing) -> bytes:
    drawn, out = io.BytesIO(), io.BytesIO()
    _save(drawing, drawn, {}, format="png", dpi=DOTS_PER_INCH)
    # A figure has few colours and their shades: a palette of 256 shows them as well in a third of the bytes.
    picture = Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    picture.save(out, format="png", optimize=True)
    return out.getvalue()


def _svg(drawing: Drawing, shape: str) -> str:
    """The same bytes each time."""
    out = io.StringIO()
    settings = {"svg.hashsalt": drawing.name + shape, "svg.fonttype": "path"}
    _save(drawing, out, settings, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def _save(drawing: Drawing, target, settings, **options) -> None:
    # Texts of rows may have a $, which is no mathematics; formatters of ticks write theirs as such.
    for text in drawing.figure.findobj(lambda one: isinstance(one, Text) and "$" in one.get_text()):
        text.set_parse_math("mathdefault" in text.get_text())
    with plain(settings):
        drawing.figure.savefig(target, bbox_inches=drawing.box, **options)


def links(text: Path, pictures: list[tuple[str, Path]]) -> list[str]:
    """Markdown that shows the pictures (title, path) in the file `text`, wherever both are read from."""
    return [f"![{title}]({Path(os.path.relpath(picture, text.parent)).as_posix()})" for title, picture in pictures]
