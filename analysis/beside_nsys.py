"""Comparison of Nsight Systems with `feedrate run --trace` for the same point."""

import csv
import io
import json
from collections.abc import Iterable
from statistics import fmean

from . import units
from .document import Table, markdown_table
from .errors import BadInput
from .trace import content, short

ALLOWED = "a report from `nsys stats --format csv --report cuda_gpu_trace` (`gputrace` in versions of 2022)"
COPIES = {"[CUDA memcpy HtoD]": "copy to device", "[CUDA memcpy DtoH]": "copy to host"}
NOTE = (
    "The table compares two runs of one point, one under each tool, because only one tool at a time can use CUPTI. "
    "Rows are matched by stream number. nsys captured all runs of the timed phase; --trace keeps one. “Ratio”: the "
    "mean of --trace divided by that of nsys."
)

Means = dict[tuple[str, str], tuple[int, float]]  # (stream, work) -> (count, mean in ns)


def beside_text(trace: str, report: str) -> str:
    """The table and its explanation. Raises BadInput for files of another format and for files that share no stream."""
    own, theirs = _of_trace(trace), _of_nsys(report)
    both = [where for where in own if where in theirs]
    if not both:
        raise BadInput("GPUTRACE.csv", report, "has no work on the streams of the trace", "a report of the same point")
    rows = []
    for where in both:
        (count, mean), (their_count, their_mean) = own[where], theirs[where]
        of_nsys = [units.number(their_count), units.nanoseconds(their_mean)]
        of_trace = [units.number(count), units.nanoseconds(mean)]
        rows.append([*where, *of_nsys, *of_trace, units.ratio(mean / their_mean)])
    columns = ["stream", "work", "nsys: count", "nsys: mean", "--trace: count", "--trace: mean", "ratio"]
    return f"{markdown_table(Table(columns, rows, {2, 3, 4, 5, 6}))}\n\n{NOTE}"


def _means(found: Iterable[tuple[str, str, float]]) -> Means:
    some: dict[tuple[str, str], list[float]] = {}
    for stream, work, duration_ns in found:
        some.setdefault((stream, work), []).append(duration_ns)
    return {where: (len(durations), fmean(durations)) for where, durations in sorted(some.items())}


def _of_trace(file: str) -> Means:
    try:
        events = json.loads(content("TRACE", file))["traceEvents"]
        names = {
            (one["pid"], one["tid"]): one["args"]["name"]
            for one in events
            if one["ph"] == "M" and one["name"] == "thread_name"
        }
        return _means(
            (
                names[one["pid"], one["tid"]].split()[1],
                short(one["name"]) if one["cat"] == "kernel" else one["name"],
                1e3 * one["dur"],
            )
            for one in events
            if one["ph"] == "X" and one.get("cat") in ("kernel", "copy")
        )
    except (ValueError, KeyError, TypeError, IndexError) as error:
        allowed = "a timeline that `feedrate run --trace` wrote"
        raise BadInput("TRACE", file, f"is not a timeline ({error!r})", allowed) from error


def _of_nsys(file: str) -> Means:
    try:
        lines = csv.DictReader(io.StringIO(content("GPUTRACE.csv", file, ALLOWED).decode()))
        return _means(
            (one["Strm"], COPIES.get(one["Name"]) or short(one["Name"].replace("<unnamed>", "")), float(duration))
            for one in lines
            if (duration := one["Duration (ns)"])
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput("GPUTRACE.csv", file, f"is not such a report ({error!r})", ALLOWED) from error
