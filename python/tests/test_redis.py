"""Redis from Python: clients of the C++ worker, and Python workers, on a real server."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import feedrate
import feedrate.redis as fr
import pytest
import redis
from conftest import start_redis

LONG = 60  # timeout in seconds; on a busy machine a worker may take seconds to start, and no test measures that


async def until(condition, seconds=10):
    """Runs the event loop until the condition holds."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.001)


@pytest.fixture(params=fr.QUEUES)
def worker(request, redis_url):
    """Queue and prefix of a C++ worker whose echo adds one to every word."""
    queue, prefix = request.param, f"w-{request.param}"
    words = ["worker", "--queue", queue, "--device", "cpu", "--payload", "64", "--redis", redis_url, "--prefix", prefix]
    process = subprocess.Popen([feedrate.executable(), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield queue, prefix
    process.terminate()
    assert process.wait(20) == 0


@pytest.fixture(params=fr.SERVED)
def served(request, redis_url):
    """Queue, prefix and batch sizes of a Python worker."""
    queue, prefix = request.param, f"s-{request.param}-{time.monotonic_ns()}"
    stop, counts = threading.Event(), []
    batches = []

    def work(payloads):
        batches.append(len(payloads))
        if any(one == b"fail all" for one in payloads):
            raise RuntimeError("not this batch")
        odd = {b"fail": ValueError("no"), b"none": None, b"text": "text"}
        return [odd.get(one, one.upper()) for one in payloads]

    thread = threading.Thread(
        target=lambda: counts.append(fr.serve(queue, work, url=redis_url, prefix=prefix, batch=16, stop=stop))
    )
    thread.start()
    yield queue, prefix, batches
    stop.set()
    thread.join(10)
    assert len(counts) == 1


def test_cpp_worker_answers(worker, redis_url):
    queue, prefix = worker
    with fr.Client(redis_url, queue=queue, prefix=prefix) as client:
        assert client.call(b"\0\0\0\0", timeout=LONG) == b"\1\0\0\0"
        ids = client.submit_many([n.to_bytes(4, "little") for n in range(500)])
        assert len(set(ids)) == 500
        found = client.results(ids[::-1], timeout=LONG)
        assert [int.from_bytes(one, "little") for one in found] == [n + 1 for n in range(500)][::-1]


def test_many_coroutines_wait_for_results(worker, redis_url):
    queue, prefix = worker

    async def main():
        async with fr.AsyncClient(redis_url, queue=queue, prefix=prefix) as client:
            return await asyncio.gather(*(client.call(n.to_bytes(4, "little"), timeout=LONG) for n in range(300)))

    assert [int.from_bytes(one, "little") for one in asyncio.run(main())] == list(range(1, 301))


def test_faults_of_the_worker_are_named(worker, redis_url):
    queue, prefix = worker
    with fr.Client(redis_url, queue=queue, prefix=prefix) as client:
        with pytest.raises(feedrate.MessageFailed, match="too_long"):
            client.call(bytes(1000), timeout=LONG)
        with pytest.raises(feedrate.MessageFailed, match="expired"):
            client.result(client.submit(b"late", deadline=time.time() - 1))


def test_python_function_serves_tasks(served, redis_url):
    queue, prefix, batches = served
    with fr.Client(redis_url, queue=queue, prefix=prefix) as client:
        assert client.results(client.submit_many([b"abc", b"", b"x" * 100])) == [b"ABC", b"", b"X" * 100]
        for payload, fault in ((b"fail", "refused"), (b"none", "refused"), (b"text", "refused"), (b"fail all", "refused")):
            with pytest.raises(feedrate.MessageFailed, match=fault):
                client.call(payload)
        with pytest.raises(feedrate.MessageFailed, match="expired"):
            client.result(client.submit(b"late", deadline=time.time() - 1))
        assert client.call(b"well") == b"WELL"
        client.results(client.submit_many([b"n"] * 200), timeout=LONG)
    assert max(batches) <= 16


@pytest.mark.parametrize("version", [2, 255])
def test_task_of_a_later_format_is_rejected_alone(served, redis_url, version):
    queue, prefix, _ = served
    with fr.Client(redis_url, queue=queue, prefix=prefix, reply_list=5) as client:
        late, fine = client._replies.number(), client._replies.number()
        later = bytearray(fr.encode(late, b"abc"))
        later[12] = version
        client._replies.push(client._redis, [bytes(later) + fr.encode(fine, b"abc")])
        with pytest.raises(feedrate.MessageFailed, match="bad_version"):
            client.result(late)
        assert client.result(fine) == b"ABC"


def test_clients_have_separate_reply_lists(redis_url):
    lists = set()
    for _ in range(40):
        with fr.Client(redis_url, prefix="turns") as client:
            lists.add(client.submit(b"x") >> 48)
    assert len(lists) == 40 and min(lists) >= 1 << 15

    async def main():
        async with fr.AsyncClient(redis_url, prefix="turns") as client:
            return await client.submit(b"x") >> 48

    assert asyncio.run(main()) not in lists


def test_abandoned_wait_does_not_delay_others(served, redis_url):
    queue, prefix, _ = served

    async def main():
        async with fr.AsyncClient(redis_url, queue=queue, prefix=prefix, reply_list=6) as client:
            never = asyncio.create_task(client.result(6 << 48 | 1, timeout=30))
            waited = []  # the best of three counts, because a busy machine may delay any of them
            for _ in range(3):
                begin = time.monotonic()
                with pytest.raises(TimeoutError):
                    await client.result(6 << 48 | 2, timeout=0.05)
                waited.append(time.monotonic() - begin)
            assert min(waited) < 0.4, waited
            number = client._replies.number()
            gone = asyncio.create_task(client.result(number))
            await until(lambda: number in client._waiting)
            gone.cancel()
            await client._replies.push(client._redis, [fr.encode(number, b"late")])
            assert await client.call(b"well") == b"WELL"
            assert await client.result(number) == b"LATE"
            with pytest.raises(ValueError, match="already waiting for the result"):
                await client.result(6 << 48 | 1)
        with pytest.raises(ConnectionError, match="closed"):
            await never

    asyncio.run(main())


def test_dead_server_is_reported_to_all_waiting_calls(tmp_path):
    socket = tmp_path / "s"
    server = start_redis(socket)

    async def main():
        async with fr.AsyncClient(f"unix://{socket}") as client:
            waiting = [asyncio.create_task(client.result(await client.submit(b"x"), timeout=1)) for _ in range(3)]
            await until(lambda: len(client._waiting) == 3)
            server.kill()
            return await asyncio.gather(*waiting, return_exceptions=True)

    for one in asyncio.run(main()):
        assert isinstance(one, TimeoutError) and isinstance(one.__cause__, redis.ConnectionError)
    server.wait()


def test_invalid_tasks_do_not_affect_others(served, redis_url):
    queue, prefix, _ = served
    server = redis.Redis.from_url(redis_url)
    for junk in (b"", b"short", b"\xff" * 16, os.urandom(100)):
        if queue == "redis_stream":
            server.xadd(f"{prefix}:tasks", {"m": junk})
            server.xadd(f"{prefix}:tasks", {"other": junk})
        else:
            server.lpush(f"{prefix}:tasks", junk)
    with fr.Client(redis_url, queue=queue, prefix=prefix) as client:
        assert client.call(b"well", timeout=LONG) == b"WELL"


def test_client_with_a_benchmark_reply_list_is_served(served, redis_url):
    """Reply lists below 32768, which benchmark producers use, work with a Python worker as well."""
    queue, prefix, _ = served
    with fr.Client(redis_url, queue=queue, prefix=prefix, reply_list=3) as client:
        number = client.submit(b"abcd")
        assert number >> 48 == 3
        assert client.result(number) == b"ABCD"


def test_tasks_of_a_dead_python_worker_are_claimed(redis_url):
    """redis_stream delivers at least once: a worker that is killed during a batch loses no task."""
    prefix = "takeover"
    code = (
        "import sys, time, feedrate.redis as fr\n"
        "fr.serve('redis_stream', lambda batch: print('taken', flush=True) or time.sleep(60), "
        f"url={redis_url!r}, prefix={prefix!r})"
    )
    with fr.Client(redis_url, queue="redis_stream", prefix=prefix) as client:
        dying = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        ids = client.submit_many([b"one", b"two"])
        dying.stdout.readline()
        dying.send_signal(signal.SIGKILL)
        dying.wait()
        stop = threading.Event()
        thread = threading.Thread(
            target=lambda: fr.serve(
                "redis_stream", lambda batch: batch, url=redis_url, prefix=prefix, lease=0.5, stop=stop
            )
        )
        thread.start()
        assert client.results(ids, timeout=LONG) == [b"one", b"two"]
        stop.set()
        thread.join(10)
    server = redis.Redis.from_url(redis_url)
    assert server.xlen(f"{prefix}:tasks") == 0 and server.xpending(f"{prefix}:tasks", "feedrate")["pending"] == 0


def test_entries_of_dead_consumers_are_claimed_in_one_scan(redis_url):
    """All of them are claimed in one scan, even behind many entries of a live consumer: the next scan would be half an
    hour later."""
    prefix, tasks, live = "claim", "claim:tasks", 50
    server = redis.Redis.from_url(redis_url)
    with fr.Client(redis_url, queue="redis_stream", prefix=prefix) as client:
        server.xgroup_create(tasks, "feedrate", id="0", mkstream=True)
        client.submit_many([b"held"] * live)
        server.xreadgroup("feedrate", "live", {tasks: ">"})
        ids = client.submit_many([b"left"] * 40)
        (_, left), = server.xreadgroup("feedrate", "dead", {tasks: ">"})
        server.xclaim(tasks, "feedrate", "dead", 0, [entry for entry, _ in left], idle=7200_000)
        stop = threading.Event()
        worker = threading.Thread(
            target=lambda: fr.serve(
                "redis_stream", list, url=redis_url, prefix=prefix, batch=1, lease=3600, stop=stop
            )
        )
        worker.start()
        assert client.results(ids, timeout=LONG) == [b"left"] * 40
        stop.set()
        worker.join(LONG)
    assert server.xpending(tasks, "feedrate")["pending"] == live


def test_call_survives_a_cut_connection(served, redis_url):
    queue, prefix, _ = served
    server, started = redis.Redis.from_url(redis_url), threading.Event()
    stop = threading.Event()

    def slow(batch):
        started.set()
        time.sleep(0.5)
        return batch

    slowly = threading.Thread(
        target=lambda: fr.serve(queue, slow, url=redis_url, prefix=f"{prefix}-cut", stop=stop)
    )
    slowly.start()
    cut = threading.Thread(target=lambda: started.wait(LONG) and server.client_kill_filter(_type="normal", skipme=True))
    cut.start()
    with fr.Client(redis_url, queue=queue, prefix=f"{prefix}-cut") as client:
        assert client.call(b"abcd", timeout=LONG) == b"abcd"
    cut.join()
    stop.set()
    slowly.join()


def test_stopped_python_worker_leaves_no_consumer(redis_url):
    server, prefix = redis.Redis.from_url(redis_url), "leaves"
    for _ in range(3):
        stop = threading.Event()
        worker = threading.Thread(target=lambda: fr.serve("redis_stream", list, url=redis_url, prefix=prefix, stop=stop))
        worker.start()
        with fr.Client(redis_url, queue="redis_stream", prefix=prefix) as client:
            assert client.call(b"x", timeout=LONG) == b"x"
        stop.set()
        worker.join()
    assert server.xinfo_consumers(f"{prefix}:tasks", "feedrate") == []


def test_python_worker_outlives_its_server(tmp_path):
    """The server dies and restarts empty. The worker continues and creates its consumer group again."""
    socket, stop, counts = tmp_path / "s", threading.Event(), []
    server = start_redis(socket)
    worker = threading.Thread(
        target=lambda: counts.append(fr.serve("redis_stream", list, url=f"unix://{socket}", prefix="p", stop=stop))
    )
    worker.start()
    for _ in range(2):
        with fr.Client(f"unix://{socket}", queue="redis_stream", prefix="p") as client:
            assert client.call(b"well", timeout=LONG) == b"well"
        server.kill()
        server.wait()
        server = start_redis(socket)
    stop.set()
    worker.join(10)
    server.kill()
    server.wait()
    assert counts == [2]


def test_python_worker_outlives_its_stream_and_a_server_failure(redis_url, monkeypatch):
    """The stream is deleted while the worker waits for it, and the server fails before the group is created again."""
    prefix, stop, counts, tries = "groups", threading.Event(), [], []
    create = redis.Redis.xgroup_create

    def fails_at_second_call(*arguments, **options):
        tries.append(arguments)
        if len(tries) == 2:
            raise redis.ConnectionError("the connection failed again")
        return create(*arguments, **options)

    monkeypatch.setattr(redis.Redis, "xgroup_create", fails_at_second_call)
    worker = threading.Thread(
        target=lambda: counts.append(fr.serve("redis_stream", list, url=redis_url, prefix=prefix, stop=stop))
    )
    worker.start()
    with fr.Client(redis_url, queue="redis_stream", prefix=prefix) as client:
        assert client.call(b"well", timeout=LONG) == b"well"
        redis.Redis.from_url(redis_url).delete(f"{prefix}:tasks")  # deletes the group as well
        assert client.call(b"well", timeout=LONG) == b"well"
    stop.set()
    worker.join(10)
    assert counts == [2] and len(tries) == 3


def test_read_results_are_trimmed_from_the_stream(redis_url):
    stop = threading.Event()
    worker = threading.Thread(
        target=lambda: fr.serve("redis_stream", list, url=redis_url, prefix="trimmed", batch=1, stop=stop)
    )
    worker.start()
    with fr.Client(redis_url, queue="redis_stream", prefix="trimmed", reply_list=4) as client:
        for _ in range(20):
            client.call(b"x")
    assert redis.Redis.from_url(redis_url).xlen("trimmed:results:4") <= 1
    stop.set()
    worker.join(10)


def test_results_expire(served, redis_url):
    queue, prefix, _ = served
    with fr.Client(redis_url, queue=queue, prefix=prefix, reply_list=9) as client:
        client.submit(b"nobody waits")
        server = redis.Redis.from_url(redis_url)
        until = time.monotonic() + 5
        while not server.exists(f"{prefix}:results:9") and time.monotonic() < until:
            time.sleep(0.01)
        assert 0 < server.pttl(f"{prefix}:results:9") <= 3600 * 1000


@pytest.mark.parametrize("element", [b"", b"x" * 15, fr.encode(1, b"abc")[:-14], b"\0" * 8 + b"\x40\0\0\0" + b"\0" * 4])
def test_truncated_element_is_rejected(element):
    if not element:
        assert list(fr.decode(element)) == []
        return
    with pytest.raises(ValueError, match="element"):
        list(fr.decode(element))


def test_wire_format_matches_documentation():
    assert fr.encode(7 << 48 | 1, bytes(4)) == bytes([1, 0, 0, 0, 0, 0, 7, 0, 4]) + bytes(7) + bytes(16)
    assert list(fr.decode(fr.encode(5, b"abc") + fr.encode(6, b"d" * 20, deadline=2.5), tasks=True)) == [
        (5, 3, b"abc", 0),
        (6, 20, b"d" * 20, 2500),
    ]
    assert fr.checksum(b"\1\0\0\0\2") == 3


@pytest.mark.parametrize("make", [fr.Client, fr.AsyncClient])
def test_invalid_arguments_are_rejected(make):
    with pytest.raises(ValueError, match="queue: invalid value 'kafka'; allowed: redis_list"):
        make("redis://localhost", queue="kafka")
    with pytest.raises(ValueError, match="reply_list: invalid value 70000"):
        make("redis://localhost", reply_list=70000)
    with pytest.raises(ValueError, match="queue: invalid value 'redis_reliable'; allowed: redis_list, redis_stream"):
        fr.serve("redis_reliable", len, url="redis://localhost")
