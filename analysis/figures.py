"""Drawings onto disk, and into text."""

import io
import os
from pathlib import Path

import matplotlib
from PIL import Image  # matplotlib brings it

from .plots.style import Drawing

DOTS_PER_INCH = 160
COLOURS = 256


def pngs(drawings: list[Drawing], directory: Path) -> dict[Path, bytes]:
    """`<name>.png` of every figure that has data, by its path in the directory."""
    return {directory / f"{drawing.name}.png": _png(drawing) for drawing in drawings if drawing.figure}


def _png(drawing: Drawing) -> bytes:
    drawn, out = io.BytesIO(), io.BytesIO()
    _save(drawing, drawn, format="png", dpi=DOTS_PER_INCH)
    # A figure has few colours and their shades: a palette of 256 shows them as well in a third of the bytes.
    picture = Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    picture.save(out, format="png", optimize=True)
    return out.getvalue()


def inline_svg(drawing: Drawing, shape: str = "") -> str:
    """The figure as an SVG element, the same bytes each time. Its name and shape salt the ids, for several share one
    page."""
    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": drawing.name + shape, "svg.fonttype": "path"}):
        _save(drawing, out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def _save(drawing: Drawing, target, **options) -> None:
    drawing.figure.savefig(target, bbox_inches=drawing.box, **options)


def links(text: Path, pictures: list[tuple[str, Path]]) -> list[str]:
    """Markdown that shows the pictures (title, path) in the file `text`, wherever both are read from."""
    return [f"![{title}]({Path(os.path.relpath(picture, text.parent)).as_posix()})" for title, picture in pictures]
