"""What the Python ring reaches on this machine, as one JSON line a figure: single calls beside the C++ ring's lone
messages, views, asyncio, `gpuqueue`, memory over 10⁸ messages, and PyTorch in the same process.

    python python/benchmarks/ring.py [--device cuda] [--scale 1.0] [--out rows.jsonl]

Every result is compared with what was sent; a wrong or missing one ends the run. `--scale` shortens all of it.
"""

import argparse
import asyncio
import json
import resource
import statistics
import sys
import threading
import time

import numpy as np

import feedrate
import gpuqueue

OFFSETS = np.arange(8, dtype=np.uint64)[None, :] << np.uint64(40)


def rss_mib() -> float:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def percentiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {"p50_us": 1e6 * statistics.median(ordered), "p99_us": 1e6 * ordered[int(0.99 * (len(ordered) - 1))]}


def calls(device: str, n: int) -> dict[str, float]:
    """One at a time, 64 bytes, each answer compared."""
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
    """The C++ ring's p50 of lone messages, by the harness, in microseconds."""
    row = feedrate.run(queue="gpu_ring", device=device, payload=64, window=1, batch=1, producers=1, lanes=1, pollers=8,
                       notify="flags", mirrors=8 if device == "cuda" else 1, seconds=0.5, keep_disturbed=True)  # fmt: skip
    return row["figures"]["latency_ns"]["p50"] / 1e3


def views(device: str, n: int, block: int = 8192) -> dict[str, float]:
    """A thread that produces and one that collects; all 64 bytes of each message are written, and compared."""
    with feedrate.Ring("echo", message_bytes=64, lanes=8, capacity=16384, device=device) as ring:
        failure: list[BaseException] = []

        def produce() -> None:
            sent = 0
            while sent < n and not failure:
                with ring.reserve(min(block, n - sent), timeout=30) as messages:
                    words = messages.payload.view(np.uint64)
                    np.add(messages.id[:, None], OFFSETS, out=words)
                    sent += len(messages)

        def collect() -> None:
            received, total = 0, 0
            try:
                while received < n:
                    with ring.poll(block, timeout=30) as answers:
                        ids = np.array(answers.id)
                        words = answers.payload.view(np.uint64)
                        assert (words == ids[:, None] + OFFSETS).all() and not answers.status.any()
                        received += len(ids)
                        total += int(ids.sum())
                assert total == n * (n - 1) // 2, "a message is lost or came twice"
            except BaseException as error:
                failure.append(error)

        before = rss_mib()
        threads = [threading.Thread(target=one) for one in (produce, collect)]
        start = time.perf_counter()
        for one in threads:
            one.start()
        middle = 0.0
        while any(one.is_alive() for one in threads):
            time.sleep(0.05)
            middle = middle or rss_mib()
        seconds = time.perf_counter() - start
        if failure:
            raise failure[0]
        return {"messages": n, "messages_per_second": n / seconds, "rss_before_mib": before, "rss_started_mib": middle,
                "rss_after_mib": rss_mib()}  # fmt: skip


def tasks(device: str, n: int, at_once: int = 1000) -> dict[str, float]:
    """So many asyncio tasks, each sending one message after the other."""

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
    """gpuqueue: enqueue, then try_dequeue_result until it is there, one message at a time."""
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


def beside_torch(seconds: float) -> dict[str, float]:
    """PyTorch allocates, computes, frees and synchronizes while another thread's messages come now and then, and under
    full load inside parked()."""
    import torch

    with feedrate.Ring("echo", message_bytes=64, lanes=2, device="cuda") as ring:
        over, answered, pause = threading.Event(), [0], [0.02]

        def feed() -> None:
            while not over.is_set():
                assert ring.call(b"x" * 64) == b"x" * 64
                answered[0] += 1
                if pause[0]:
                    time.sleep(pause[0])

        feeder = threading.Thread(target=feed)
        feeder.start()
        longest = {"now and then": 0.0, "under load": 0.0}
        rounds = 0
        for load, nap in (("now and then", 0.02), ("under load", 0.0)):
            pause[0] = nap
            until = time.monotonic() + seconds / 2
            while time.monotonic() < until:
                start = time.monotonic()
                if nap:
                    torch_work(torch, rounds)
                else:
                    with ring.parked():
                        torch_work(torch, rounds)
                longest[load] = max(longest[load], time.monotonic() - start)
                rounds += 1
        over.set()
        feeder.join()
        return {"rounds": rounds, "answered": answered[0], "restarts": ring.stats()["restarts"],
                "longest_now_and_then_s": longest["now and then"], "longest_under_load_s": longest["under load"]}  # fmt: skip


def torch_work(torch, number: int) -> None:
    a = torch.full((1024, 1024 + number % 7), 1.5, device="cuda")
    total = float((a @ a.T).sum().item())
    assert total > 0
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
    if device == "cuda":
        measures += [("beside torch", lambda: beside_torch(20 * scale))]
    said = {"device": device, "revision": feedrate.__revision__, "python": sys.version.split()[0], "numpy": np.__version__}
    code = 0
    with open(chosen.out, "a") as out:
        for name, measure in measures:
            try:
                found = measure()
            except Exception as error:  # noqa: BLE001  (the others are measured all the same)
                found, code = {"error": f"{type(error).__name__}: {error}"}, 1
            print(json.dumps({"figure": name, **found, **said}), file=out, flush=True)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
