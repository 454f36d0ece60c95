"""Redis from Python: clients of the C++ worker, and Python workers, on a real server."""

import asyncio
import os
import signal
import subprocess
import sys
import time

import feedrate
import feedrate.redis as fr
import pytest
import redis
from conftest import TIMEOUT, Worker, redis_server, wait_until


async def until(condition):
    """Runs the event loop until the condition holds."""
    async with asyncio.timeout(TIMEOUT):
        while not condition():
            await asyncio.sleep(0.001)


@pytest.fixture(scope="module", params=fr.QUEUES)
def worker(request, redis_url):
    """Queue and prefix of a C++ worker whose echo adds one to every word."""
    queue, prefix = request.param, f"w-{request.param}"
    words = ["worker", "--queue", queue, "--device", "cpu", "--payload", "64", "--redis", redis_url, "--prefix", prefix]
    process = subprocess.Popen([feedrate.executable(), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield queue, prefix
    process.terminate()
    assert process.wait(20) == 0


@pytest.fixture(scope="module", params=fr.SERVED)
def served(request, redis_url):
    """Queue, prefix and batch sizes of a Python worker."""
    queue, prefix, batches = request.param, f"s-{request.param}", []

    def work(payloads):
        batches.append(len(payloads))
        if any(one == b"fail all" for one in payloads):
            raise RuntimeError("not this batch")
        odd = {b"fail": ValueError("no"), b"none": None, b"text": "text"}
        return [odd.get(one, one.upper()) for one in payloads]

    with Worker(work, queue, redis_url, prefix, batch=16) as running:
        yield queue, prefix, batches
    assert isinstance(running.ended[0], int)


def test_cpp_worker_answers(worker, redis_url):
    queue, prefix = worker
    with fr.Client(redis_url, queue=queue, prefix=prefix) as client:
        assert client.call(b"\0\0\0\0", timeout=TIMEOUT) == b"\1\0\0\0"
        ids = client.submit_many([n.to_bytes(4, "little") for n in range(500)])
        assert len(set(ids)) == 500
        found = client.results(ids[::-1], timeout=TIMEOUT)
        assert [int.from_bytes(one, "little") for one in found] == [n + 1 for n in range(500)][::-1]


def test_many_coroutines_wait_for_results(worker, redis_url):
    queue, prefix = worker

    async def main():
        async with fr.AsyncClient(redis_url, queue=queue, prefix=prefix) as client:
            return await asyncio.gather(*(client.call(n.to_bytes(4, "little"), timeout=TIMEOUT) for n in range(300)))

    assert [int.from_bytes(one, "little") for one in asyncio.run(main())] == list(range(1, 301))


def test_faults_of_the_worker_are_named(worker, redis_url):
    queue, prefix = worker
    with fr.Client(redis_url, queue=queue, prefix=prefix) as client:
        with pytest.raises(feedrate.MessageFailed, match="too_long"):
            client.call(bytes(1000), timeout=TIMEOUT)
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
        client.results(client.submit_many([b"n"] * 200), timeout=TIMEOUT)
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
            waited = []  # the test uses the best of three, because a busy machine may delay any of them
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
    async def main(url, server):
        async with fr.AsyncClient(url) as client:
            waiting = [asyncio.create_task(client.result(await client.submit(b"x"), timeout=1)) for _ in range(3)]
            await until(lambda: len(client._waiting) == 3)
            server.kill()
            return await asyncio.gather(*waiting, return_exceptions=True)

    with redis_server(tmp_path) as running:
        for one in asyncio.run(main(*running)):
            assert isinstance(one, TimeoutError) and isinstance(one.__cause__, redis.ConnectionError)


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
        assert client.call(b"well", timeout=TIMEOUT) == b"WELL"


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
        with Worker(list, "redis_stream", redis_url, prefix, lease=0.1):
            assert client.results(ids, timeout=TIMEOUT) == [b"one", b"two"]
    server = redis.Redis.from_url(redis_url)
    assert server.xlen(f"{prefix}:tasks") == 0 and server.xpending(f"{prefix}:tasks", "feedrate")["pending"] == 0


def test_entries_of_dead_consumers_are_claimed_in_one_scan(redis_url):
    """One scan claims all of them, even behind many entries of a live consumer: the next scan would start half an hour
    later."""
    prefix, tasks, live = "claim", "claim:tasks", 50
    server = redis.Redis.from_url(redis_url)
    with fr.Client(redis_url, queue="redis_stream", prefix=prefix) as client:
        server.xgroup_create(tasks, "feedrate", id="0", mkstream=True)
        client.submit_many([b"held"] * live)
        server.xreadgroup("feedrate", "live", {tasks: ">"})
        ids = client.submit_many([b"left"] * 40)
        (_, left), = server.xreadgroup("feedrate", "dead", {tasks: ">"})
        server.xclaim(tasks, "feedrate", "dead", 0, [entry for entry, _ in left], idle=7200_000)
        with Worker(list, "redis_stream", redis_url, prefix, batch=1, lease=3600):
            assert client.results(ids, timeout=TIMEOUT) == [b"left"] * 40
    assert server.xpending(tasks, "feedrate")["pending"] == live


@pytest.mark.parametrize("queue", fr.SERVED)
def test_call_survives_a_cut_connection(redis_url, queue):
    """All connections are cut while the function runs."""
    server, cuts = redis.Redis.from_url(redis_url), []

    def cut(batch):
        if not cuts:
            cuts.append(server.client_kill_filter(_type="normal", skipme=True))
        return batch

    prefix = f"cut-{queue}"
    with Worker(cut, queue, redis_url, prefix), fr.Client(redis_url, queue=queue, prefix=prefix) as client:
        assert client.call(b"abcd", timeout=TIMEOUT) == b"abcd"
    assert cuts[0] >= 2


def test_stopped_python_worker_leaves_no_consumer(redis_url):
    server, prefix = redis.Redis.from_url(redis_url), "leaves"
    for _ in range(3):
        with Worker(list, "redis_stream", redis_url, prefix):
            with fr.Client(redis_url, queue="redis_stream", prefix=prefix) as client:
                assert client.call(b"x", timeout=TIMEOUT) == b"x"
    assert server.xinfo_consumers(f"{prefix}:tasks", "feedrate") == []


def test_python_worker_outlives_its_server(tmp_path):
    """The server dies and restarts empty. The worker continues and creates its consumer group again."""
    with Worker(list, "redis_stream", f"unix://{tmp_path / 's'}", "p") as worker:
        for _ in range(2):
            with redis_server(tmp_path) as (url, _):
                with fr.Client(url, queue="redis_stream", prefix="p") as client:
                    assert client.call(b"well", timeout=TIMEOUT) == b"well"
        with redis_server(tmp_path):
            worker.stop.set()
            wait_until(lambda: worker.ended)
    assert worker.ended == [2]


def test_python_worker_outlives_its_stream_and_a_server_failure(redis_url, monkeypatch):
    """The stream is deleted while the worker waits for it, and the server fails before the group is created again."""
    prefix, tries = "groups", []
    create = redis.Redis.xgroup_create

    def fails_at_second_call(*arguments, **options):
        tries.append(arguments)
        if len(tries) == 2:
            raise redis.ConnectionError("the connection failed again")
        return create(*arguments, **options)

    monkeypatch.setattr(redis.Redis, "xgroup_create", fails_at_second_call)
    with fr.Client(redis_url, queue="redis_stream", prefix=prefix) as client:
        with Worker(list, "redis_stream", redis_url, prefix) as worker:
            assert client.call(b"well", timeout=TIMEOUT) == b"well"
            redis.Redis.from_url(redis_url).delete(f"{prefix}:tasks")  # deletes the group as well
            assert client.call(b"well", timeout=TIMEOUT) == b"well"
    assert worker.ended == [2] and len(tries) == 3


def test_read_results_are_trimmed_from_the_stream(redis_url):
    with Worker(list, "redis_stream", redis_url, "trimmed", batch=1):
        with fr.Client(redis_url, queue="redis_stream", prefix="trimmed", reply_list=4) as client:
            for _ in range(20):
                client.call(b"x")
    assert redis.Redis.from_url(redis_url).xlen("trimmed:results:4") <= 1


def test_results_expire(served, redis_url):
    queue, prefix, _ = served
    with fr.Client(redis_url, queue=queue, prefix=prefix, reply_list=9) as client:
        client.submit(b"nobody waits")
        server = redis.Redis.from_url(redis_url)
        wait_until(lambda: server.exists(f"{prefix}:results:9"))
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
