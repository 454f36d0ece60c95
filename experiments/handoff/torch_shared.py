#!/usr/bin/env python3
"""Compares PyTorch's way of handing a GPU tensor to another process (torch.multiprocessing) with ways of the `handoff`
experiment, in turn, on one machine in one run:

    python experiments/handoff/torch_shared.py FEEDRATE [--seconds S] [--repetitions N] > torch_shared.jsonl

FEEDRATE is the executable. Each output line is a repetition: the way, bytes, use, and medians in nanoseconds of
`handoff_ns` and `to_start_ns` (README.md in this folder). Both sides of PyTorch's way poll for messages without
sleeping, as the experiment does. The reader's sum over the entire tensor is checked every time; one wrong sum ends
the run.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

import torch
import torch.multiprocessing

SIZES = (1 << 10, 1 << 20, 64 << 20, 1 << 30)
USES = ("cached", "first")
WAYS = ("ipc_legacy", "store")
WARM_UP = 3


def await_message(connection):
    while not connection.poll(0):
        pass
    return connection.recv()


def reader(connection) -> None:
    """Sums the received or the known tensor. Replies with the times at which its first kernel could start and its sum
    was done."""
    tensor, started = None, torch.cuda.Event()
    while (message := await_message(connection)) != "end":
        if message == "close":
            tensor = None
            connection.send(None)
            continue
        if message != "again":
            tensor = message
        message = None
        started.record()
        total = tensor.sum()
        while not started.query():
            pass
        started_ns = time.monotonic_ns()
        torch.cuda.synchronize()
        connection.send((started_ns, time.monotonic_ns(), total.item()))
    tensor = None
    connection.send(None)


class Exporter:
    """This process's side: tensors of 64-bit integers, all filled with the round number."""

    def __init__(self) -> None:
        self.connection, theirs = torch.multiprocessing.Pipe()
        self.process = torch.multiprocessing.Process(target=reader, args=(theirs,), daemon=True)
        self.process.start()
        self.round = 0

    def measure(self, size: int, use: str, seconds: float) -> dict:
        """Measures one repetition, as the experiment does: hand-offs until the time is up, but at least one."""
        handoffs, starts, tensor = [], [], None
        end = None
        while end is None or time.monotonic() < end or not handoffs:
            fresh = tensor is None
            if fresh:
                tensor = torch.zeros(size // 8, dtype=torch.int64, device="cuda")
            self.round += 1
            tensor.fill_(self.round)
            torch.cuda.synchronize()
            ready = time.monotonic_ns()
            self.connection.send(tensor if fresh else "again")
            started, read, total = await_message(self.connection)
            if total != self.round * tensor.numel():
                raise SystemExit(f"wrong sum: {total} was read, expected {self.round * tensor.numel()}")
            if end is not None:
                handoffs.append(read - ready)
                starts.append(started - ready)
            if use == "first":
                tensor = self.let_go()
            if end is None and self.round % WARM_UP == 0:
                end = time.monotonic() + seconds
        if tensor is not None:
            tensor = self.let_go()
        return figures("torch_shared", size, use, statistics.median(handoffs), statistics.median(starts), len(handoffs))

    def let_go(self) -> None:
        """Makes the reader close its mapping, so that the next tensor is new to it. PyTorch keeps the exporter's memory
        for the next tensor; the caller drops its reference by assigning this function's result."""
        self.connection.send("close")
        await_message(self.connection)
        torch.cuda.ipc_collect()
        return None

    def end(self) -> None:
        self.connection.send("end")
        await_message(self.connection)
        self.process.join()


def figures(way: str, size: int, use: str, handoff: float, start: float, samples: int) -> dict:
    return {"way": way, "bytes": size, "use": use, "handoff_ns": handoff, "to_start_ns": start, "samples": samples}


def by_feedrate(feedrate: str, way: str, size: int, use: str, seconds: float) -> dict:
    words = ["run", "--experiment", "handoff", "--device", "cuda", "--way", way, "--bytes", str(size), "--use", use]
    words += ["--seconds", str(seconds), "--repetitions", "1", "--floor-rounds", "0", "--json"]
    done = subprocess.run([feedrate, *words], capture_output=True, text=True, check=True)
    row = next(row for row in map(json.loads, done.stdout.splitlines()) if row["kind"] == "cell")
    if row["status"] != "ok":
        raise SystemExit(f"{way} of {size} bytes, {use}: {row['reason']}")
    told = row["figures"]
    handoff = told["handoff_ns"]
    return figures(way, size, use, handoff["p50"], told["to_start_ns"]["p50"], handoff["samples"])


def main() -> None:
    parser = argparse.ArgumentParser(description="Compares PyTorch's way of sharing a GPU tensor with Feedrate's.")
    parser.add_argument("feedrate", metavar="FEEDRATE", help="the executable")
    parser.add_argument("--seconds", type=float, default=0.1, help="duration of each repetition (default: 0.1)")
    parser.add_argument("--repetitions", type=int, default=3, help="repetitions of each way, in turn (default: 3)")
    parser.add_argument("--most-bytes", type=int, default=SIZES[-1], help="largest tensor to measure, in bytes")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.exit(2, "PyTorch finds no GPU on this machine\n")
    torch.multiprocessing.set_start_method("spawn")
    version = subprocess.run([options.feedrate, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    where = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "feedrate": version}
    exporter = Exporter()
    for repetition in range(options.repetitions):
        for size in (size for size in SIZES if size <= options.most_bytes):
            for use in USES:
                measured = [exporter.measure(size, use, options.seconds)]
                torch.cuda.empty_cache()
                measured += [by_feedrate(options.feedrate, way, size, use, options.seconds) for way in WAYS]
                for one in measured:
                    print(json.dumps(one | {"repetition": repetition} | where), flush=True)
    exporter.end()


if __name__ == "__main__":
    sys.exit(main())
