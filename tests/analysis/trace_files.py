"""Made-up timelines in exactly the format of experiments/timeline/timeline.cpp: pipelines that no GPU ran."""

import json
from dataclasses import dataclass, field

KERNEL = "feedrate::(anonymous namespace)::stage_kernel(feedrate::StageWork, std::byte const*, std::byte*, bool)"
GPU, HOST, MESSAGES = 1, 2, 3
THREAD = 4711


@dataclass
class Writer:
    """Events as `EventWriter` writes them, one a line; times in ns."""

    lines: list[str] = field(default_factory=list)
    zero: int = 5_000

    def event(self, phase: str, process: int, track: int, ns: int, name: str, more: str = "") -> None:
        since = ns - self.zero
        at = f"{since // 1000}.{since % 1000:03}"
        self.lines.append(
            f'{{"ph": "{phase}", "pid": {process}, "tid": {track}, "ts": {at}, "name": {json.dumps(name)}{more}}}'
        )

    def named(self, what: str, process: int, track: int, name: str) -> None:
        self.event("M", process, track, self.zero, what, f', "args": {{"name": {json.dumps(name)}}}')

    def work(self, process: int, track: int, begin: int, end: int, name: str, kind: str, correlation: int = 0) -> None:
        length = end - begin
        args = f'"correlation": {correlation}' if correlation else ""
        more = f', "cat": "{kind}", "dur": {length // 1000}.{length % 1000:03}, "args": {{{args}}}'
        self.event("X", process, track, begin, name, more)

    def text(self, other: dict) -> str:
        events = ",\n".join(self.lines)
        told = json.dumps({"dropped_records": 0, "params": other, "untimed_records": 0, "zero_ns": self.zero})
        return f'{{"displayTimeUnit": "ns", "traceEvents": [\n{events}\n], "otherData": {told}}}\n'


def pipeline(strategy: str, items: int = 6, stages=("decode", "normalise", "reduce"), cost_ns: int = 60_000, **params) -> str:
    """A run: all on one stream (`serial`), or a stream a stage. A copying stage has a track of its own in its stream."""
    serial, out = strategy == "serial", Writer()
    for process, name in ((GPU, "GPU"), (HOST, "host"), (MESSAGES, "messages")):
        out.named("process_name", process, 1, name)
    streams = [13 if serial else 13 + place for place in range(len(stages))]
    tracks = [2 * stream + (2 if name.startswith("copy") else 1) for stream, name in zip(streams, stages)]
    for track, stream, name in sorted(set(zip(tracks, streams, (one.startswith("copy") for one in stages)))):
        out.named("thread_name", GPU, track, f"stream {stream} {'copies' if name else 'kernels'}")
    out.named("thread_name", HOST, THREAD, f"thread {THREAD}")
    out.work(HOST, THREAD, 5_000, 90_000_000, "timed", "range")
    at, correlation, free = 5_100, 100, [20_000] * len(stages)
    for item in range(items):
        for place, name in enumerate(stages):
            correlation += 1
            copies = name.startswith("copy")
            out.work(HOST, THREAD, at, at + 900, name, "range")
            out.work(HOST, THREAD, at + 100, at + 800, "cudaLaunchKernel", "api", correlation)
            begin = max(free) if serial else max(free[place], free[place - 1] if place else 0)
            free[place] = begin + cost_ns
            kind, what = ("copy", "copy to device") if copies else ("kernel", KERNEL)
            out.work(GPU, tracks[place], begin, free[place], what, kind, correlation)
            out.event("s", HOST, THREAD, at + 100, "launch", f', "cat": "launch", "id": {correlation}')
            out.event("f", GPU, tracks[place], begin, "launch", f', "cat": "launch", "id": {correlation}, "bp": "e"')
            at += 1_000
    return out.text({"pipeline": "chain", "strategy": strategy} | params)


def cpu() -> str:
    """What is written where there is no GPU."""
    out = Writer()
    for process, name in ((GPU, "GPU"), (HOST, "host"), (MESSAGES, "messages")):
        out.named("process_name", process, 1, name)
    return out.text({"strategy": "ring", "device": "cpu"})
