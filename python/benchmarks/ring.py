"""Measures the performance of the Python ring on this machine and prints one JSON line per figure.

The figures are single calls compared with lone messages of the C++ ring, views, asyncio, `gpuqueue`, memory use over 10⁸
messages, a custom kernel, tensors, and PyTorch in the same process. `python python/benchmarks/table.py rows.jsonl`
prints them as a table.

    python python/benchmarks/ring.py [--device cuda] [--scale 1.0] [--out rows.jsonl]

Every result is compared with the message; a wrong or missing result fails the measurement. `--scale` changes the length
of all measurements.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import resource
import statistics
import sys
import tempfile
import threading
import time

import numpy as np

import feedrate
import gpuqueue

OFFSETS = np.arange(8, dtype=np.uint64) << np.uint64(40)


def rss_mib() -> float:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def percentiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {"p50_us": 1e6 * statistics.median(ordered), "p99_us": 1e6 * ordered[int(0.99 * (len(ordered) - 1))]}


def calls(device: str, n: int) -> dict[str, float]:
    """Sends one message of 64 bytes at a time and checks each result."""
    payloads = [np.random.bytes(64) for _ in range(64)]
    times = []
    with feedrate.Ring("echo", message_bytes=64, lanes=1, device=device) as ring:
        for i in range(n + 1000):
            payload = payloads[i % 64]
            start = time.perf_counter()
            answer = ring.call(payload)
            times.append(time.perf_counter() - start)
            assert answer == payload
    return percentiles(times[1000:])


def cpp_lone(device: str) -> float:
    """Measures the p50 latency of lone messages in the C++ ring with the harness, in microseconds."""
    row = feedrate.run(queue="gpu_ring", device=device, payload=64, window=1, batch=1, producers=1, lanes=1, pollers=8,
                       notify="flags", mirrors=8 if device == "cuda" else 1, seconds=0.5, keep_disturbed=True)  # fmt: skip
    return row["figures"]["latency_ns"]["p50"] / 1e3


def views(device: str, n: int, block: int = 32768, lanes: int = 2, longest_stay: float = 1.0) -> dict[str, float]:
    """Measures blocks with one producing and one collecting thread. All 64 bytes of each message are written and checked.
    The result also has the share of time that each thread waits, in the ring and for the interpreter.

    NumPy is slow if rows of eight words are not contiguous. Therefore the threads process slots including their headers:
    ten words, of which the second, with length and checksum, is equal in all messages and not checked in results."""
    numbers = np.zeros((block, 10), np.uint64)  # contents of the slots of the first block
    numbers[:, 0] = np.arange(block)
    numbers[:, 1] = 64
    numbers[:, 2:] = numbers[:, :1] + OFFSETS
    numbers = numbers.ravel()
    with feedrate.Ring(
        "echo", message_bytes=64, lanes=lanes, capacity=2 * block, device=device, longest_stay=longest_stay
    ) as ring:
        waited = {"produce": 0.0, "collect": 0.0}
        ended = 0.0
        failure: list[BaseException] = []

        def produce() -> None:
            sent = 0
            while sent < n and not failure:
                begin = time.perf_counter()
                with ring.reserve(min(block, n - sent), timeout=30) as messages:
                    waited["produce"] += time.perf_counter() - begin
                    slots = messages.slots.view(np.uint64)
                    np.add(numbers[: len(slots)], slots[0], out=slots)
                    slots[1::10] = 64
                    sent += len(messages)

        def collect() -> None:
            nonlocal ended
            words, right = np.empty_like(numbers), np.empty(len(numbers), bool)
            received = total = 0
            try:
                while received < n:
                    begin = time.perf_counter()
                    with ring.poll(block, timeout=30) as answers:
                        waited["collect"] += time.perf_counter() - begin
                        assert not answers.status.any()
                        slots = answers.slots.view(np.uint64)
                        for at, end in runs(answers.id):
                            many, much = end - at, slice(10 * (end - at))
                            first = int(slots[10 * at])
                            np.subtract(slots[10 * at : 10 * end], numbers[much], out=words[much])
                            np.equal(words[much], first, out=right[much])
                            right[1 : 10 * many : 10] = True
                            assert right[much].all()
                            total += many * first + many * (many - 1) // 2
                        received += len(answers)
                assert total == n * (n - 1) // 2, "a message was lost or arrived twice"
            except BaseException as error:
                failure.append(error)
            ended = time.perf_counter()

        before = rss_mib()
        threads = [threading.Thread(target=one) for one in (produce, collect)]
        start = time.perf_counter()
        for one in threads:
            one.start()
        middle = 0.0
        while any(one.is_alive() for one in threads):
            time.sleep(0.05)
            middle = middle or rss_mib()
        seconds = ended - start
        if failure:
            raise failure[0]
        return {"messages": n, "block": block, "lanes": lanes, "messages_per_second": n / seconds,
                "producer_waits": waited["produce"] / seconds, "collector_waits": waited["collect"] / seconds, "rss_before_mib": before, "rss_started_mib": middle,
                "rss_after_mib": rss_mib()}  # fmt: skip


def runs(ids: np.ndarray) -> list[tuple[int, int]]:
    """Returns ranges of consecutive ids: usually one range, or the end of one block and the beginning of the next."""
    if int(ids[-1]) - int(ids[0]) == len(ids) - 1:
        return [(0, len(ids))]  # the later check covers the ids in between
    breaks = np.flatnonzero(np.diff(ids) != 1) + 1
    return list(itertools.pairwise([0, *breaks.tolist(), len(ids)]))


def tasks(device: str, n: int, at_once: int = 1000) -> dict[str, float]:
    """Runs `at_once` asyncio tasks, each of which sends one message after another."""

    async def main() -> float:
        with feedrate.Ring("echo", message_bytes=64, lanes=4, device=device) as ring:

            async def one(number: int) -> None:
                payload = number.to_bytes(8, "little") * 8
                for _ in range(n // at_once):
                    assert await ring.acall(payload) == payload

            start = time.perf_counter()
            await asyncio.gather(*(one(i) for i in range(at_once)))
            return n // at_once * at_once / (time.perf_counter() - start)

    return {"round_trips_per_second": asyncio.run(main())}


def queue(device: str, n: int) -> dict[str, float]:
    """Measures gpuqueue with one message at a time: enqueue, then try_dequeue_result until the result arrives."""
    gpuqueue.init(0)
    payload, times = bytes(range(64)), []
    with gpuqueue.GpuQueue() as one:
        start = time.perf_counter()
        for _ in range(n):
            began = time.perf_counter()
            number = one.enqueue(payload)
            while not (found := one.try_dequeue_result(number))[0]:
                pass
            times.append(time.perf_counter() - began)
            assert found[1] == payload
        seconds = time.perf_counter() - start
    return {"round_trips_per_second": n / seconds, **percentiles(times)}


SCALE = """
struct Scale {
  float factor = 1;
  template <class Group>
  void operator()(const Group& group, const Vec16* in, std::size_t bytes, Vec16* out) const {
    for (std::size_t i = group.rank(); i < bytes / 16; i += group.size()) {
      Vec16 piece = in[i];
      for (auto& word : piece.word) word = __float_as_uint(__uint_as_float(word) * factor);
      out[i] = piece;
    }
  }
};
"""


def own_kernel() -> dict[str, float]:
    """Measures the first call of a kernel with an empty cache and from the cache. The GPU context already exists."""
    with feedrate.Ring("echo", device="cuda") as ring:
        ring.call(b"x")
    found = {}
    previous = os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for which in ("first_call_s", "from_the_cache_s"):
            start = time.perf_counter()
            with feedrate.Ring(feedrate.kernel(SCALE, factor=2.5), message_bytes=64, device="cuda") as ring:
                answer = ring.call(np.arange(16, dtype=np.float32))
                found[which] = time.perf_counter() - start
                assert (np.frombuffer(answer, np.float32) == np.arange(16) * 2.5).all()
        os.environ.pop("XDG_CACHE_HOME")
    if previous is not None:
        os.environ["XDG_CACHE_HOME"] = previous
    return found


def tensors(size: int, n: int) -> dict[str, float]:
    """Measures a tensor on the GPU, by address and through the host: to host memory, through a ring, and back."""
    import torch

    scale = feedrate.kernel(SCALE, factor=2.5)
    source = torch.rand(size // 4, device="cuda")
    out, wanted = torch.empty_like(source), source * 2.5
    here, there = [], []
    with (
        feedrate.TensorRing(scale, device="cuda", lanes=1) as by_address,
        feedrate.Ring(scale, message_bytes=size, lanes=1, capacity=4, device="cuda") as ring,
    ):
        for _ in range(n):
            out.zero_()
            start = time.perf_counter()
            by_address.call(source, out)
            here.append(time.perf_counter() - start)
            assert torch.equal(out, wanted)
            start = time.perf_counter()
            answer = ring.call(source.cpu().numpy())
            back = torch.frombuffer(bytearray(answer), dtype=torch.float32).to("cuda")
            torch.cuda.current_stream().synchronize()
            there.append(time.perf_counter() - start)
            assert torch.equal(back, wanted)
    return {"bytes": size, "p50_us": percentiles(here)["p50_us"], "over_the_host_p50_us": percentiles(there)["p50_us"]}


def beside_torch(seconds: float, parked: bool) -> dict[str, float]:
    """Lets PyTorch allocate, compute, free, compile, and synchronize the device while another thread sends one message
    after another. PyTorch gets its turns from `parked()` if `parked` is true, otherwise from the ring's watchdog."""
    import torch

    with feedrate.Ring("echo", message_bytes=64, lanes=2, device="cuda", longest_stay=0.1) as ring:
        over, answered = threading.Event(), [0]

        def feed() -> None:
            while not over.is_set():
                assert ring.call(b"x" * 64) == b"x" * 64
                answered[0] += 1

        feeder = threading.Thread(target=feed)
        feeder.start()
        rounds, longest = 0, 0.0
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            start = time.monotonic()
            with ring.parked() if parked else contextlib.nullcontext():
                torch_work(torch, rounds)
            longest = max(longest, time.monotonic() - start)
            rounds += 1
        over.set()
        feeder.join()
        return {"seconds": seconds, "rounds": rounds, "answered": answered[0], "restarts": ring.stats()["restarts"],
                "longest_round_s": longest}  # fmt: skip


def torch_work(torch, number: int) -> None:
    """Does work in PyTorch that must finish with correct results unless the ring blocks it."""
    a = torch.full((1024, 1024 + number % 7), 1.5, device="cuda")
    assert float((a @ a.T).sum().item()) > 0
    if number % 16 == 0:  # a kernel not yet used in this process
        text = f"template <typename T> T next(T x) {{ return x + T({number}); }}"
        assert float(torch.cuda.jiterator._create_jit_fn(text)(a).mean().item()) == 1.5 + number
    del a
    torch.cuda.empty_cache()
    torch.cuda.synchronize()


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--device", default="auto")
    options.add_argument("--scale", type=float, default=1.0)
    options.add_argument("--out", default="/dev/stdout")
    chosen = options.parse_args()
    device, scale = chosen.device, chosen.scale
    if device == "auto":
        device = "cuda" if len(feedrate.devices()) > 1 else "cpu"
    measures = [("call", lambda: calls(device, int(20_000 * scale)) | {"cpp_lone_p50_us": cpp_lone(device)})] * 3
    measures += [("views", lambda: views(device, int(2e7 * scale)))] * 3
    measures += [("asyncio", lambda: tasks(device, int(200_000 * scale)))] * 3
    measures += [("gpuqueue", lambda: queue(device, int(50_000 * scale)))] * 3
    measures += [("views, long", lambda: views(device, int(1e8 * scale)))]
    for _ in range(3):  # interleaved runs measure the cost of a busy ring leaving the GPU at intervals
        for stay in (3600.0, 1.0, 0.1):
            measure = lambda stay=stay: views(device, int(4e7 * scale), longest_stay=stay)  # noqa: E731
            measures.append((f"watchdog, {stay:g} s", measure))
    if device == "cuda":
        measures += [("own kernel", own_kernel)] * 3
        measures += [("tensors", lambda size=size: tensors(size, int(300 * scale))) for size in (1 << 12, 1 << 16, 1 << 20)]
        measures += [("beside torch", lambda: beside_torch(60 * scale, False))]
        measures += [("beside torch, parked()", lambda: beside_torch(5 * scale, True))]
    setup = {"device": device, "revision": feedrate.__revision__, "python": sys.version.split()[0], "numpy": np.__version__}
    code = 0
    with open(chosen.out, "a") as out:
        for name, measure in measures:
            try:
                found = measure()
            except Exception as error:  # noqa: BLE001  (the other figures are still measured)
                found, code = {"error": f"{type(error).__name__}: {error}"}, 1
            print(json.dumps({"figure": name, **found, **setup}), file=out, flush=True)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
