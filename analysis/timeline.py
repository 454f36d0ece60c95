"""Timelines of several runs in one figure."""

import math
from collections.abc import Sequence
from pathlib import Path

from . import trace
from .errors import BadInput
from .figures import standalone
from .files import write_all
from .plots import timeline
from .plots.style import figure_style

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
    with figure_style():
        svg = standalone(timeline.draw(traces))
    return write_all({Path(out): svg})[0]
