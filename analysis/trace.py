"""Reads timelines that `feedrate run --trace` wrote: the work on the GPU's tracks, labelled by the range that launched
it."""

import json
import lzma
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .errors import BadInput

ALLOWED = "a timeline that `feedrate run --trace` wrote on a GPU"
# Ranges that name a phase of the measurement rather than the launched work.
PHASES = {"warm-up", "timed"}


@dataclass(frozen=True)
class Work:
    """A kernel or copy. Times are in microseconds since the first work of the trace."""

    label: str
    begin: float
    end: float


@dataclass(frozen=True)
class Track:
    """The kernels or the copies of one stream, in order of time. Work that overlaps within a stream, such as branches
    of a graph, is on an additional track without a name."""

    name: str
    work: list[Work]


@dataclass(frozen=True)
class Trace:
    title: str
    tracks: list[Track]
    length: float  # microseconds from the first work to the end of the last, even if a window shows less


def content(argument: str, file: str, allowed: str = ALLOWED) -> bytes:
    """A file's bytes, decompressed if its name ends in .xz."""
    path = Path(file)
    if not path.is_file():
        raise BadInput(argument, file, "no such file", allowed)
    try:
        return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    except lzma.LZMAError as error:
        raise BadInput(argument, file, f"is not compressed by xz ({error})", allowed) from error


def read(file: str) -> Trace:
    """Raises BadInput if the file is not a timeline or has no GPU work."""
    path = Path(file)
    packed = content("TRACE", file)
    try:
        document = json.loads(packed)
        events, other = document["traceEvents"], document.get("otherData") or {}
        gpu = _process(events, "GPU")
        tracks = _tracks(events, gpu)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput("TRACE", file, f"is not a timeline ({type(error).__name__}: {error})", ALLOWED) from error
    if not tracks:
        raise BadInput("TRACE", file, "has no GPU work", ALLOWED)
    return Trace(_title(other.get("params") or {}, path), tracks, max(one.end for some in tracks for one in some.work))


def window(trace: Trace, microseconds: float) -> Trace:
    """The work that begins within this time after the first work, cut off at the end of the window. Empty tracks are
    kept."""
    tracks = [
        Track(
            track.name,
            [Work(one.label, one.begin, min(one.end, microseconds)) for one in track.work if one.begin < microseconds],
        )
        for track in trace.tracks
    ]
    return Trace(trace.title, tracks, trace.length)


def _title(params: dict, path: Path) -> str:
    """The strategy and its depth; for other experiments, the file's name."""
    if "strategy" not in params:
        return path.name.removesuffix(".xz").removesuffix(".json")
    depth = f", depth {params['depth']:g}" if params.get("depth") else ""
    return f"{params['strategy']}{depth}"


def _process(events: list[dict], name: str) -> int | None:
    named = (one for one in events if one["ph"] == "M" and one["name"] == "process_name")
    return next((one["pid"] for one in named if one["args"]["name"] == name), None)


def _tracks(events: list[dict], gpu: int | None) -> list[Track]:
    """The GPU's tracks by number: in the order of the streams, kernels before copies."""
    complete = [one for one in events if one["ph"] == "X"]
    mine = [one for one in complete if one["pid"] == gpu]
    if not mine:
        return []
    names = {
        one["tid"]: one["args"]["name"]
        for one in events
        if one["ph"] == "M" and one["name"] == "thread_name" and one["pid"] == gpu
    }
    asked = _launch_ranges([one for one in complete if one["pid"] != gpu])
    first = min(one["ts"] for one in mine)
    tracks: dict[int, list[Work]] = {}
    for one in sorted(mine, key=lambda event: (event["tid"], event["ts"])):
        own = short(one["name"]) if one.get("cat") == "kernel" else one["name"]
        label = asked.get((one.get("args") or {}).get("correlation")) or own
        begin = one["ts"] - first
        tracks.setdefault(one["tid"], []).append(Work(label, begin, begin + one["dur"]))
    named = [(names.get(number, f"track {number}"), work) for number, work in tracks.items()]
    return [track for name, work in named for track in _split_overlaps(name, work)]


def _split_overlaps(name: str, work: list[Work]) -> list[Track]:
    lanes: list[list[Work]] = []
    for one in work:
        free = next((lane for lane in lanes if lane[-1].end <= one.begin), None)
        if free is None:
            lanes.append([one])
        else:
            free.append(one)
    return [Track(name if place == 0 else "", lane) for place, lane in enumerate(lanes)]


def short(name: str) -> str:
    """A kernel without its namespaces, arguments and template parameters."""
    bare, depth = "", 0
    for letter in name.replace("(anonymous namespace)", ""):
        depth += (letter in "<(") - (letter in ">)")
        if depth == 0 and letter not in ">)":
            bare += letter
    return bare.strip().split("::")[-1].split(" ")[-1] or name


def _launch_ranges(host: Iterable[dict]) -> dict[int, str]:
    """The name of the innermost range around each launching call, by correlation id. A pipeline's stages launch the
    same kernel, so only the ranges name the stages."""
    found: dict[int, str] = {}
    threads: dict[int, list[dict]] = {}
    for one in host:
        threads.setdefault(one["tid"], []).append(one)
    for events in threads.values():
        # If events begin together, the longer one encloses the other, and a range encloses a call.
        events.sort(key=lambda one: (one["ts"], -one["dur"], one.get("cat") != "range"))
        around: list[dict] = []
        for one in events:
            around = [outer for outer in around if outer["ts"] + outer["dur"] >= one["ts"] + one["dur"]]
            if one.get("cat") == "range":
                around.append(one)
            elif around and around[-1]["name"] not in PHASES:
                # A runtime call and the driver call inside it share a correlation id; the outer call comes first.
                found.setdefault((one.get("args") or {}).get("correlation", 0), around[-1]["name"])
    found.pop(0, None)
    return found
