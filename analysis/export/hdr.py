"""HdrHistogram's interval logs (version 1.3): one file per point, one interval per repetition and distribution; the tag
identifies the distribution.

Rows store their counts in the same array as HdrHistogram with two significant digits (256 sub-buckets), so the V2
payload is that array and no sample changes its bucket. This module does not use the `hdrhistogram` package, because
Debian lacks it and its log writer does not support tags; the tests read the logs back with it.
"""

import base64
import hashlib
import os
import re
import struct
import zlib
from collections import Counter
from datetime import datetime
from pathlib import Path

import pandas as pd

from ..errors import BadInput
from ..files import write_all
from ..histogram import Histogram
from ..load import Results

BITS, DIGITS = 8, 2  # HdrHistogram uses 2^8 sub-buckets for two significant digits
LONGEST_NAME = 255  # maximum bytes of a name on Linux file systems
LARGEST = 1 << 40  # ns, the end of the range in experiments/harness/measure/histogram.hpp
_V2, _COMPRESSED = 0x1C849313, 0x1C849314  # the cookies of version 2
_LEGEND = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'


def write(experiments: list[tuple[dict[str, pd.DataFrame], Results]], out: Path) -> list[Path]:
    groups = {point: group for points, _ in experiments for point, group in points.items()}
    names = file_names(list(groups), ".hlog")
    return write_all({out / names[point]: _log(point, group) for point, group in groups.items()})


def file_names(points: list[str], ending: str) -> dict[str, str]:
    """A file name of at most 255 bytes for each point. A name that would be longer, or equal to that of another point
    (ignoring case), ends with a hash of its point."""
    names = {point: re.sub(r"[/\x00-\x1f\x7f]", "_", point).replace(":", "-") for point in points}
    shared = Counter(name.casefold() for name in names.values())
    for point, name in names.items():
        if shared[name.casefold()] > 1 or len(os.fsencode(name + ending)) > LONGEST_NAME:
            tail = "~" + hashlib.sha256(point.encode(errors="surrogateescape")).hexdigest()[:12]
            head = os.fsencode(name)[: LONGEST_NAME - len(tail + ending)]
            name = head.decode(errors="ignore") + tail
        names[point] = name + ending
    return names


def _log(point: str, group: pd.DataFrame) -> str:
    started = [_seconds(time) for time in group["time"]]
    begin = min(started)
    lines = [
        f"#[Feedrate: {point}; nanoseconds, Interval_Max in milliseconds]",
        "#[Histogram log format version 1.3]",
        f"#[BaseTime: {begin:.3f} (seconds since epoch)]",
        f"#[StartTime: {begin:.3f} (seconds since epoch), {datetime.fromtimestamp(begin).astimezone().isoformat()}]",
        _LEGEND,
    ]
    for start, (_, cell) in zip(started, group.iterrows()):
        for tag, summary in cell["distributions"].items():
            if "histogram" in summary:
                lines += _interval(tag, summary, start - begin, cell)
    return "\n".join(lines) + "\n"


def _interval(tag: str, summary: dict, start: float, cell: pd.Series) -> list[str]:
    counted = Histogram.from_row(summary["histogram"])
    if counted.bits != BITS:
        raise BadInput(
            "DIR", cell["directory"], f"row {cell['id']}: {tag} has 2^{counted.bits} sub-buckets", f"2^{BITS}"
        )
    largest = (counted.middles()[-1] if len(counted.index) else 0) / 1e6
    length = cell["time"].get("duration_seconds", 0.0)
    lines = [f"Tag={tag},{start:.3f},{length:.3f},{largest:.3f},{encode(counted)}"]
    if counted.overflow:  # these samples have no bucket
        lines.insert(0, f"#[repetition {cell['repetition']}: {counted.overflow} more of {tag} above {LARGEST} ns]")
    return lines


def encode(counted: Histogram) -> str:
    """The compressed V2 payload in base64; see AbstractHistogram in https://github.com/HdrHistogram/HdrHistogram."""
    body = _counts(counted)
    packed = zlib.compress(struct.pack(">iiiiqqd", _V2, len(body), 0, DIGITS, 1, LARGEST, 1.0) + body)
    return base64.b64encode(struct.pack(">ii", _COMPRESSED, len(packed)) + packed).decode("ascii")


def _counts(counted: Histogram) -> bytes:
    """Counts by ascending index as zigzag LEB128; a negative number is the length of a run of empty buckets."""
    words, expected = bytearray(), 0
    for index, count in zip(counted.index.tolist(), counted.counts.tolist()):
        if count:
            words += (_word(expected - index) if index > expected else b"") + _word(count)
            expected = index + 1
    return bytes(words)


def _word(value: int) -> bytes:
    left = value * 2 if value >= 0 else -value * 2 - 1
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def _seconds(time: dict) -> float:
    """Start time of a repetition in seconds since the epoch; 0 if the row does not have it."""
    return datetime.fromisoformat(time["started"].replace("Z", "+00:00")).timestamp() if "started" in time else 0.0
