"""Timelines of several runs in one figure."""

import math
from collections.abc import Sequence
from pathlib import Path

from . import dark, trace
from .errors import BadInput
from .figures import render
from .files import write_all
from .plots import timeline
from .plots.style import looks

MOST = 20_000  # maximum number of bars; more make the SVG slow to display and are thinner than a line


def write_timeline(files: Sequence[str], out: str, milliseconds: float | None) -> Path:
    """Writes the SVG; returns its path."""
    traces = [trace.read(file) for file in files]
    if milliseconds is not None:
        if not (math.isfinite(milliseconds) and milliseconds > 0):
            raise BadInput("--milliseconds", milliseconds, "invalid value", "more than 0")
        traces = [trace.window(one, 1e3 * milliseconds) for one in traces]
    bars = sum(len(track.work) for one in traces for track in one.tracks)
    if bars > MOST:
        raise BadInput("TRACE", ", ".join(files), f"{bars} kernels and copies are too many", "--milliseconds N")
    with looks():
        (drawn,) = render([timeline.draw(traces)], timeline.NAME)
    return write_all({Path(out): alone(drawn.svg)})[0]


def alone(svg: str) -> str:
    """Turns an SVG element into a self-contained file with its own rules for dark mode."""
    rules = f"@media screen and (prefers-color-scheme:dark){{svg{{fill:{dark.TEXT}}}\n{dark.figure_rules()}}}"
    end = svg.index(">") + 1
    return f'<?xml version="1.0" encoding="utf-8"?>\n{svg[:end]}\n<style>{rules}</style>{svg[end:]}'
