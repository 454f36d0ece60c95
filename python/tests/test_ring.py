"""The ring from Python, on the CPU device by default: every way to send messages and to end a ring."""

import asyncio
import concurrent.futures
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import feedrate
import numpy as np
import pytest
from conftest import in_threads, run_code, wait_until

DEVICE = os.environ.get("FEEDRATE_TEST_DEVICE", "cpu")


@pytest.fixture
def ring():
    with feedrate.Ring("echo", message_bytes=64, lanes=2, capacity=64, device=DEVICE) as one:
        yield one


# --- one message at a time


@pytest.mark.parametrize("payload", [b"", b"x", b"hello", bytes(64), bytearray(b"abc"), memoryview(b"view")])
def test_call_returns_the_message(ring, payload):
    assert ring.call(payload) == bytes(payload)


def test_dlpack_host_array_is_sent_as_message(ring):
    class Tensor:
        def __init__(self):
            self.array = np.arange(4, dtype=np.int32)

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    assert ring.call(Tensor()) == np.arange(4, dtype=np.int32).tobytes()


@pytest.mark.parametrize(
    "payload, error, message",
    [
        (bytes(65), ValueError, "a message of 65 bytes is longer than message_bytes, 64"),
        (np.zeros((4, 4), np.uint8)[:, ::2], ValueError, "strides"),
        ("text", TypeError, "invalid type str"),
        (5, TypeError, "invalid type int"),
        (None, TypeError, "invalid type NoneType"),
    ],
)
@pytest.mark.parametrize("way", ["call", "submit"])
def test_invalid_message_is_rejected_by_name(ring, way, payload, error, message):
    with pytest.raises(error, match=message):
        getattr(ring, way)(payload)
    assert ring.call(b"still well") == b"still well"


@pytest.mark.parametrize(
    "options, message",
    [
        ({"message_bytes": 0}, "message_bytes: invalid value 0"),
        ({"lanes": 1.5}, "lanes: invalid value 1.5"),
        ({"capacity": 100}, "capacity .*power of two .*100"),
        ({"device": "tpu"}, "device: invalid value 'tpu'; allowed: 'auto', 'cuda', 'cuda:N', 'cpu'"),
        ({"device": "cpu:1"}, "device: invalid value 'cpu:1'"),
        ({"idle": "sleep"}, "idle: invalid value 'sleep'; allowed: 'park', 'spin', 'backoff'"),
        ({"park_after": -1}, "park_after: invalid value -1"),
        ({"work": "scale"}, "work: invalid value 'scale'; allowed: .*echo"),
    ],
)
def test_invalid_options_are_rejected_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        feedrate.Ring(**({"device": "cpu"} | options))


def test_futures_return_their_results(ring):
    futures = [ring.submit(n.to_bytes(4, "little")) for n in range(1000)]
    assert [int.from_bytes(future.result(20), "little") for future in futures] == list(range(1000))


def test_cancelled_future_does_not_affect_others(ring):
    futures = [ring.submit(bytes([n])) for n in range(50)]
    cancelled = [future.cancel() for future in futures[::2]]
    for n, future in enumerate(futures):
        assert future.cancelled() == (n % 2 == 0 and cancelled[n // 2]) or future.result(10) == bytes([n])
    assert ring.call(b"after") == b"after"


def test_threads_get_their_own_results(ring):
    wrong = []

    def one(number):
        for i in range(300):
            payload = f"{number}:{i}".encode()
            if ring.call(payload) != payload:
                wrong.append(payload)

    in_threads(*(lambda n=n: one(n) for n in range(8)))
    assert wrong == []


def test_asyncio_queues_more_messages_than_the_ring_holds(ring):
    async def main():
        return await asyncio.gather(*(ring.acall(n.to_bytes(4, "little")) for n in range(5000)))

    assert [int.from_bytes(one, "little") for one in asyncio.run(main())] == list(range(5000))


def test_two_event_loops_share_a_ring(ring):
    found = []

    def one(first):
        async def main():
            return await asyncio.gather(*(ring.acall(bytes([first, n])) for n in range(200)))

        found.extend(asyncio.run(main()))

    in_threads(lambda: one(1), lambda: one(2))
    assert sorted(found) == sorted(bytes([first, n]) for first in (1, 2) for n in range(200))


@pytest.mark.parametrize("ordered", [True, False])
def test_map_returns_all_results(ring, ordered):
    results = list(ring.map((n.to_bytes(4, "little") for n in range(3000)), ordered=ordered, window=100))
    numbers = [int.from_bytes(one, "little") for one in results]
    assert (numbers if ordered else sorted(numbers)) == list(range(3000))


def test_map_reads_at_most_its_window(ring):
    taken = 0

    def source():
        nonlocal taken
        for n in range(1000):
            taken += 1
            yield bytes([n % 256])

    results = ring.map(source(), window=16)
    next(results)
    assert taken <= 17
    results.close()
    assert ring.call(b"well") == b"well"


# --- full rings and timeouts


@pytest.fixture
def slow():
    """A ring of 16 slots whose work waits for an event."""
    go = threading.Event()

    def work(messages, lengths):
        go.wait(30)
        return messages

    # The long stay disables the watchdog: during its pause no message would find room, and afterwards some would.
    with feedrate.Ring(work, message_bytes=16, lanes=1, capacity=16, longest_stay=3600) as one:
        one.go = go
        yield one
        go.set()


def fill(ring) -> list:
    futures = []
    while True:
        try:
            futures.append(ring.submit(b"x" * 16, block=False))
        except TimeoutError:
            return futures


def test_full_ring_blocks_senders(slow):
    futures = fill(slow)
    assert 1 <= len(futures) <= 32
    with pytest.raises(TimeoutError, match="full"):
        slow.submit(b"y", timeout=0.1)
    threading.Timer(0.2, slow.go.set).start()
    futures.append(slow.submit(b"y" * 16))  # waits for room
    assert [future.result(10) for future in futures] == [b"x" * 16] * (len(futures) - 1) + [b"y" * 16]


def test_call_times_out_and_late_result_is_dropped(slow):
    start = time.monotonic()
    with pytest.raises(TimeoutError, match="0.2"):
        slow.call(b"a" * 16, timeout=0.2)
    assert 0.2 <= time.monotonic() - start < 2
    slow.go.set()
    assert slow.call(b"b" * 16, timeout=10) == b"b" * 16


def test_timed_out_calls_free_their_slots(slow):
    for _ in range(16):
        with pytest.raises(TimeoutError):
            slow.call(b"a" * 16, timeout=0.01)
    slow.go.set()
    assert slow.call(b"b" * 16, timeout=10) == b"b" * 16
    with slow.parked():
        pass


def test_function_may_keep_its_messages():
    kept = []

    def work(messages, lengths):
        kept.append(messages)
        return messages

    with feedrate.Ring(work, message_bytes=16, lanes=1, capacity=16) as ring:
        for letter in b"ab" * 32:
            ring.call(bytes([letter]) * 16)
    assert [bytes(one[0]) for one in kept] == [bytes([letter]) * 16 for letter in b"ab" * 32]


def test_ctrl_c_ends_a_wait_within_100_ms():
    """Other processes compete for the cores, so a thread that yields its core gets it back only milliseconds later. The
    test uses the median of five interrupts, because a busy machine may delay any of them."""
    cores = set(sorted(os.sched_getaffinity(0))[:2])
    busy = f"import os\nos.sched_setaffinity(0, {cores})\nwhile True: pass"
    others = [subprocess.Popen([sys.executable, "-c", busy]) for _ in range(2 * len(cores))]
    try:
        found = run_code(f"""
            import feedrate, os, signal, statistics, threading, time
            os.sched_setaffinity(0, {cores})
            go_on = threading.Event()
            def work(messages, lengths):
                go_on.wait(30)
                return messages
            ring = feedrate.Ring(work, message_bytes=16)
            def interrupt():
                global sent
                sent = time.monotonic()
                os.kill(os.getpid(), signal.SIGINT)
            for wait in (lambda: ring.call(b"x"), lambda: ring.poll(1).__enter__()):
                delays = []
                for _ in range(5):
                    try:
                        threading.Timer(0.1, interrupt).start()
                        wait()
                    except KeyboardInterrupt:
                        delays.append(time.monotonic() - sent)
                print(statistics.median(delays), delays)
            go_on.set()
        """)
    finally:
        for one in others:
            one.kill()
            one.wait()
    medians = [float(line.split()[0]) for line in found.stdout.splitlines()]
    assert len(medians) == 2 and max(medians) < 0.1, found


# --- many messages at a time, in place


def test_blocks_are_written_and_read_in_place(ring):
    rows = np.random.default_rng(1).integers(0, 256, (500, 64), dtype=np.uint8)
    sent = received = 0
    while received < len(rows):
        if sent < len(rows):
            with ring.reserve(min(32, len(rows) - sent)) as messages:
                assert messages.payload.shape == (len(messages), 64) and messages.payload.dtype == np.uint8
                messages.payload[:] = rows[messages.id.astype(int)]
                sent += len(messages)
        with ring.poll(32) as answers:
            assert (answers.payload == rows[answers.id.astype(int)]).all()
            assert not answers.status.any() and (answers.length == 64).all()
            received += len(answers)


def test_second_close_waits_for_the_first():
    """Results that the first close drains reach their futures."""

    serving, go_on = threading.Event(), threading.Event()

    def slow(messages, lengths):
        serving.set()
        assert go_on.wait(10)
        return messages

    ring = feedrate.Ring(slow, message_bytes=64, device="cpu")
    future = ring.submit(b"x")
    assert serving.wait(10)
    first = threading.Thread(target=ring.close)
    first.start()
    while not ring._ended:
        time.sleep(0.001)
    second = threading.Thread(target=ring.close)
    second.start()
    second.join(0.2)
    assert second.is_alive(), "the second close returned while the first one was draining"
    go_on.set()
    first.join()
    second.join()
    assert ring.closed and future.result(timeout=1)[:1] == b"x"


def test_second_close_waits_for_the_result_thread():
    """The result thread may still hold results when the ring itself is already closed."""
    serve, holding, go_on = threading.Event(), threading.Event(), threading.Event()

    def work(messages, lengths):
        assert serve.wait(10)
        return messages

    ring = feedrate.Ring(work, message_bytes=64, device="cpu")
    ring.submit(b"x").add_done_callback(lambda _: (holding.set(), go_on.wait(10)))
    serve.set()
    assert holding.wait(10)
    future = ring.submit(b"y")
    first = threading.Thread(target=ring.close)
    first.start()
    while not ring.closed:
        time.sleep(0.001)
    second = threading.Thread(target=ring.close)
    second.start()
    second.join(0.2)
    assert second.is_alive() and not future.done()
    go_on.set()
    second.join()
    assert future.done()
    first.join()


def test_slots_are_adjacent_records(ring):
    with ring.reserve(8) as messages:
        n = len(messages)
        slots = messages.slots
        assert slots.shape == (n,) and slots.flags.c_contiguous and slots.view("u8").shape == (n * slots.itemsize // 8,)
        slots["id"] = 100 + np.arange(n)
        slots["length"] = 64
        slots["payload"] = np.arange(64)
    received = 0
    while received < n:
        with ring.poll(8, timeout=10) as answers:
            found = answers.slots
            many = received + np.arange(len(answers))
            assert (found["id"] == 100 + many).all() and (found["payload"] == np.arange(64)).all()
            assert (found["length"] == 64).all() and (answers.id == 100 + many).all()
            with pytest.raises(ValueError, match="read-only"):
                found["id"] = 0
            received += len(answers)
    with pytest.raises(feedrate.ViewExpired):
        found["id"]


def test_length_in_a_slot_is_checked(ring):
    with pytest.raises(ValueError, match="length: invalid value 70; allowed: 0 to 64"):
        with ring.reserve(100) as messages:
            messages.slots["length"][-1] = 70


def test_lengths_ids_and_count_can_be_set(ring):
    with ring.reserve(8) as messages:
        n = len(messages)
        messages.length[:] = np.arange(n)
        messages.id[:] = 1000 + np.arange(n)
        messages.payload[:] = 7
        messages.count = min(3, n)
    seen = {}
    while len(seen) < min(3, n):
        with ring.poll(8, timeout=10) as answers:
            seen |= dict(zip(answers.id.tolist(), answers.length.tolist()))
    assert seen == {1000 + i: i for i in range(min(3, n))}
    with pytest.raises(TimeoutError):
        with ring.poll(1, timeout=0.1):
            pass


def test_exception_in_a_block_sends_nothing(ring):
    with pytest.raises(ZeroDivisionError):
        with ring.reserve(4):
            1 / 0
    with pytest.raises(ValueError, match="length: invalid value 65"):
        with ring.reserve(4) as messages:
            messages.length[0] = 65
    with pytest.raises(ValueError, match="count: invalid value 99"):
        with ring.reserve(4) as messages:
            messages.count = 99
    with pytest.raises(TypeError, match="float"):
        with ring.reserve(4) as messages:
            messages.count = len(messages) / 2
    with ring.reserve(1) as messages:  # succeeds because no block is open
        messages.count = 0
    with pytest.raises(TimeoutError):
        with ring.poll(4, timeout=0.1):
            pass


@pytest.mark.parametrize(
    "use",
    [
        lambda view: view[0],
        lambda view: view.__setitem__(0, 1),
        lambda view: view + 1,
        lambda view: view.sum(),
        lambda view: np.sum(view),
        lambda view: view.tobytes(),
        lambda view: len(view),
        lambda view: view.shape,
        lambda view: np.equal(view, 3),
        lambda view: np.concatenate([view, view]),
        lambda view: view[0][0],
        lambda view: view.view(np.uint64),
    ],
)
def test_view_raises_after_its_block(ring, use):
    with ring.reserve(4) as messages:
        messages.payload[:] = 1
        kept, part = messages.payload, messages.payload[1:]
    for view in (kept, part, messages.payload):
        with pytest.raises(feedrate.ViewExpired):
            use(view)
    with ring.poll(4) as answers:
        with pytest.raises(ValueError, match="read-only"):
            answers.payload[0] = 1
        kept = answers.payload
    with pytest.raises(feedrate.ViewExpired):
        use(kept)


def test_plain_array_of_a_view_never_reads_freed_memory():
    ring = feedrate.Ring("echo", device=DEVICE)
    with ring.reserve(4) as messages:
        messages.payload[:] = 9
        plain = np.asarray(messages.payload).view(np.ndarray)
    ring.close()
    del ring, messages
    assert plain.sum() >= 0  # AddressSanitizer aborts the process on a read of freed memory


def test_second_open_block_is_rejected(ring):
    with ring.reserve(1):
        with pytest.raises(feedrate.Error, match="another block of messages is open"):
            with ring.reserve(1):
                pass


# --- Python functions as work


def test_python_function_processes_batches():
    def double(messages, lengths):
        return messages.view(np.float32) * 2, lengths

    with feedrate.Ring(double, message_bytes=64, lanes=1) as ring:
        for n in (1, 5, 16):
            numbers = np.arange(n, dtype=np.float32)
            assert np.frombuffer(ring.call(numbers), np.float32).tolist() == (2 * numbers).tolist()


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda messages, lengths: 1 / 0, "division by zero"),
        (lambda messages, lengths: np.zeros((len(messages) + 1, 4)), "the function returned results of shape"),
        (lambda messages, lengths: np.zeros((len(messages), 65), np.uint8), "longer than result_bytes, 64"),
        (lambda messages, lengths: (messages, lengths + 64), "lengths: invalid value 65; allowed: 0 to 64"),
        (lambda messages, lengths: (messages, -lengths.astype(int)), "lengths: invalid value -1"),
        (lambda messages, lengths: (messages, lengths / 2), "lengths: invalid dtype float64; allowed: integers"),
    ],
)
def test_exception_in_the_function_fails_its_messages(function, message):
    with feedrate.Ring(function, message_bytes=64) as ring:
        with pytest.raises(feedrate.MessageFailed, match="refused") as failed:
            ring.call(b"x")
        assert message in str(failed.value.__cause__)
        with pytest.raises(feedrate.MessageFailed):
            ring.submit(b"x").result(10)
        with pytest.raises(feedrate.MessageFailed):
            list(ring.map([b"x"]))
        with pytest.raises(feedrate.MessageFailed):
            asyncio.run(asyncio.wait_for(_awaited(ring), 10))


async def _awaited(ring):
    return await ring.acall(b"x")


def test_function_cannot_close_its_own_ring():
    kept = []

    def closes(messages, lengths):
        if messages[0, 0]:
            kept[0].close()
        return messages

    with feedrate.Ring(closes, message_bytes=4, device="cpu") as ring:
        kept.append(ring)
        with pytest.raises(feedrate.MessageFailed) as caught:
            ring.call(b"\1\0\0\0", timeout=10)
        assert "its own work function" in str(caught.value.__cause__)
        assert ring.call(bytes(4), timeout=10) == bytes(4)


def test_python_function_needs_the_cpu():
    with pytest.raises(ValueError, match="allowed: 'cpu' or 'auto', for a Python function"):
        feedrate.Ring(lambda messages, lengths: messages, device="cuda")


# --- closing and exiting


@pytest.mark.skipif(DEVICE != "cpu", reason="a Python function needs the CPU device")
def test_function_may_drop_its_own_ring():
    """The last reference is dropped on the thread for which closing the ring waits."""
    ran = run_code("""
        import feedrate, threading
        dropped = threading.Event()
        def work(messages, lengths):
            held.clear()
            dropped.set()
            return messages
        for _ in range(5):
            dropped.clear()
            held = [feedrate.Ring(work, device="cpu")]
            try:
                future = held[0].submit(b"x")
            finally:
                assert dropped.wait(10)
            try:
                future.result(10)
            except feedrate.RingClosed:
                pass
        import time
        until = time.monotonic() + 10
        while any(one.name.startswith("feedrate") for one in threading.enumerate()):
            assert time.monotonic() < until, "a ring without references is still running"
            time.sleep(0.01)
        print("well")
    """)
    assert ran.returncode == 0 and ran.stdout == "well\n", ran


@pytest.mark.skipif(DEVICE != "cpu", reason="a Python function needs the CPU device")
def test_ring_referenced_by_its_function_is_collected():
    class Service:
        def __init__(self):
            self.ring = feedrate.Ring(self.work, device="cpu")

        def work(self, messages, lengths):
            return messages

    service = Service()
    assert service.ring.call(b"x")[:1] == b"x"
    threads = threading.active_count()
    gone = weakref.ref(service)
    del service
    gc.collect()
    assert gone() is None and threading.active_count() <= threads


def test_busy_ring_leaves_the_device_regularly():
    with feedrate.Ring("echo", lanes=1, device=DEVICE, park_after=0.001, longest_stay=0.05) as ring:
        wait_until(lambda: ring.call(b"x") == b"x" and ring.stats()["restarts"] >= 5, 0)
    with feedrate.Ring("echo", lanes=1, device=DEVICE, park_after=60, longest_stay=3600) as ring:
        until = time.monotonic() + 0.2
        while time.monotonic() < until:
            assert ring.call(b"x") == b"x"
        assert ring.stats()["restarts"] == 0


def test_views_work_while_the_watchdog_interrupts():
    with feedrate.Ring("echo", lanes=2, capacity=256, device=DEVICE, park_after=0.001, longest_stay=0.02) as ring:

        def exchange():
            with ring.reserve(64, timeout=10) as messages:
                messages.payload[:] = 5
                left = len(messages)
            while left:
                with ring.poll(64, timeout=10) as answers:
                    assert (answers.payload == 5).all()
                    left -= len(answers)
            return ring.stats()["restarts"] > 2

        wait_until(exchange, 0)


def test_closed_ring_raises(ring):
    ring.close()
    ring.close()
    for use in (lambda: ring.call(b"x"), lambda: ring.submit(b"x"), ring.stats, lambda: ring.reserve(1).__enter__()):
        with pytest.raises(feedrate.Error, match="closed"):
            use()


def test_close_ends_waiting_calls(slow):
    ended = []

    def wait():
        try:
            slow.call(b"x")
        except feedrate.Error as error:
            ended.append(str(error))

    futures = fill(slow)
    waiter = threading.Thread(target=wait)
    waiter.start()
    time.sleep(0.1)
    # The work must return for close to finish. Until then the ring is full, so the waiting call cannot be sent.
    threading.Thread(target=lambda: (waiter.join(10), slow.go.set())).start()
    slow.close(drain=False)
    waiter.join(10)
    assert not waiter.is_alive() and len(ended) == 1
    for future in futures:
        try:
            assert future.result(10) == b"x" * 16
        except feedrate.RingClosed:
            pass


def test_close_with_drain_returns_all_results(ring):
    futures = [ring.submit(bytes([n])) for n in range(60)]
    ring.close()
    assert [future.result(1) for future in futures] == [bytes([n]) for n in range(60)]


def test_fork_leaves_the_ring_to_the_parent(ring):
    assert ring.call(b"before") == b"before"
    child = os.fork()
    if child == 0:
        try:
            ring.call(b"x")
        except feedrate.Error as error:
            os._exit(0 if "before a fork" in str(error) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert ring.call(b"after") == b"after"


def test_forked_child_exits_cleanly():
    found = run_code(f"""
        import feedrate, os, sys
        ring = feedrate.Ring(device={DEVICE!r})
        ring.call(b"x")
        child = os.fork()
        if child == 0:
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(ring.call(b"parent"))
    """)
    assert found.stdout.strip() == "b'parent'" and found.returncode == 0, found


@pytest.mark.parametrize("end", ["sys.exit(3)", "raise SystemExit(3)", "os.kill(os.getpid(), signal.SIGTERM)"])
def test_interpreter_exits_with_messages_in_flight(end):
    found = run_code(f"""
        import feedrate, os, signal, sys, time
        def work(messages, lengths):
            time.sleep(0.2)
            return messages
        ring = feedrate.Ring(work, message_bytes=16)
        futures = [ring.submit(b"x") for _ in range(100)]
        {end}
    """)
    assert found.returncode in (3, -signal.SIGTERM) and "Traceback" not in found.stderr, found


def test_parked_blocks_messages_of_other_threads():
    with feedrate.Ring("echo", device=DEVICE, park_after=0.002) as ring:
        ring.call(b"x")
        order = []
        with ring.parked():
            assert ring.stats()["parked_lanes"] > 0
            caller = threading.Thread(target=lambda: order.append(ring.call(b"late")))
            caller.start()
            time.sleep(0.2)
            assert order == []
            with pytest.raises(feedrate.Error, match="own parked"):
                ring.call(b"x")
            attempts = [lambda: ring.call(b"x", timeout=0.05), lambda: ring.submit(b"x", block=False)]
            with concurrent.futures.ThreadPoolExecutor(1) as elsewhere:
                for send in attempts:
                    with pytest.raises(TimeoutError, match="parked"):
                        elsewhere.submit(send).result(5)
        caller.join(10)
        assert order == [b"late"] and ring.stats()["restarts"] >= 1


def test_parked_raises_for_a_spinning_ring():
    with feedrate.Ring("echo", device=DEVICE, idle="spin") as ring:
        with pytest.raises(feedrate.Error, match="never leaves the GPU"):
            with ring.parked():
                pass
