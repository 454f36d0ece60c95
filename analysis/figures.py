"""Renders drawings as PNG and SVG, and links pictures in Markdown."""

import io
import os
from dataclasses import dataclass
from pathlib import Path

from matplotlib.text import Text
from PIL import Image  # a dependency of matplotlib

from . import cores, dark
from .plots.style import Drawing, only_settings

DOTS_PER_INCH = 160
COLOURS = 256


@dataclass(frozen=True)
class Rendered:
    """A drawing rendered for a page; `missing` states why there is no figure."""

    name: str
    title: str
    caption: str
    missing: str = ""
    svg: str = ""  # an element
    png: bytes = b""


def pngs(drawings: list[Drawing], directory: Path) -> dict[Path, bytes]:
    """The PNG of every figure that has data, by its path `<name>.png` in the directory."""
    return files(render(drawings, png=True), directory)


def files(rendered: list[Rendered], directory: Path) -> dict[Path, bytes]:
    return {directory / f"{one.name}.png": one.png for one in rendered if one.png}


def render(drawings: list[Drawing], shape: str | None = None, png: bool = False) -> list[Rendered]:
    """Renders the drawings on all cores, because this is the slowest part of a report. `shape` requests SVGs and is
    part of their ids, because several SVGs share one page."""

    def one(drawing: Drawing) -> Rendered:
        about = drawing.name, drawing.title, drawing.caption
        if drawing.figure is None:
            return Rendered(*about, drawing.missing)
        svg = "" if shape is None else _svg(drawing, shape)
        return Rendered(*about, svg=svg, png=_png(drawing) if png else b"")

    return cores.on_all(one, drawings)


def standalone(drawing: Drawing) -> str:
    """An SVG file with its own rules for dark mode. Its text remains text, which takes less room than outlines."""
    svg = _svg(drawing, "", text="none")
    rules = f"@media screen and (prefers-color-scheme:dark){{svg{{fill:{dark.TEXT}}}\n{dark.figure_rules()}}}"
    end = svg.index(">") + 1
    return f'<?xml version="1.0" encoding="utf-8"?>\n{svg[:end]}\n<style>{rules}</style>{svg[end:]}'


def _png(drawing: Drawing) -> bytes:
    drawn, out = io.BytesIO(), io.BytesIO()
    _save(drawing, drawn, {}, format="png", dpi=DOTS_PER_INCH)
    # A figure has few colours and shades, so a palette of 256 shows no difference and takes a third of the bytes.
    picture = Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    picture.save(out, format="png", optimize=True)
    return out.getvalue()


def _svg(drawing: Drawing, shape: str, text: str = "path") -> str:
    """The SVG element; the same drawing always gives the same bytes."""
    out = io.StringIO()
    settings = {"svg.hashsalt": drawing.name + shape, "svg.fonttype": text}
    _save(drawing, out, settings, format="svg", metadata={"Date": None})
    written = out.getvalue()
    return written[written.index("<svg") :]


def _save(drawing: Drawing, target, settings, **options) -> None:
    # Text from rows may contain a $ that is not mathematics; tick formatters write real mathematics.
    for text in drawing.figure.findobj(lambda one: isinstance(one, Text) and "$" in one.get_text()):
        text.set_parse_math("mathdefault" in text.get_text())
    with only_settings(settings):
        drawing.figure.savefig(target, bbox_inches=drawing.box, **options)


def links(text: Path, pictures: list[tuple[str, Path]]) -> list[str]:
    """Markdown image links to the pictures (title, path), relative to the file `text`."""
    return [f"![{title}]({Path(os.path.relpath(picture, text.parent)).as_posix()})" for title, picture in pictures]
