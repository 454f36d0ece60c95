"""Redis from Python: servers that reject commands temporarily, and connections with non-default settings."""

import asyncio
import contextlib
import logging
import shutil
import socket
import subprocess
import threading

import feedrate.redis as fr
import numpy as np
import pytest
import redis
import redis.asyncio
from conftest import TIMEOUT, Worker, redis_server, wait_until
from feedrate.redis import server as redis_module
from test_redis import until

QUEUES = pytest.mark.parametrize("queue", fr.SERVED)


@pytest.fixture(scope="module")
def rejecting_server(tmp_path_factory):
    """URL of a private server, and the folder that it saves to."""
    folder = tmp_path_factory.mktemp("rejecting")
    with redis_server(folder) as (url, _):
        yield url, folder


def rejection(control):
    """The server's current rejection of a read or a write; empty if it accepts both."""
    for ask in (lambda: control.llen("probe"), lambda: control.lpush("probe", b"x")):
        try:
            ask()
        except redis.RedisError as error:
            return f"{type(error).__name__} {error}"
    return ""


@contextlib.contextmanager
def read_only(control, folder):
    control.execute_command("REPLICAOF", "127.0.0.1", "1")
    try:
        yield "ReadOnlyError"
    finally:
        control.execute_command("REPLICAOF", "NO", "ONE")


@contextlib.contextmanager
def without_master(control, folder):
    with configured(control, "replica-serve-stale-data", "no", "yes"), read_only(control, folder):
        yield "Link with MASTER is down"


@contextlib.contextmanager
def full(control, folder):
    with configured(control, "maxmemory", 1, 0):
        yield "OutOfMemoryError"


@contextlib.contextmanager
def without_replicas(control, folder):
    with configured(control, "min-replicas-to-write", 1, 0):
        yield "NOREPLICAS"


@contextlib.contextmanager
def unable_to_save(control, folder):
    def save(status):
        control.bgsave()
        wait_until(lambda: control.info("persistence")["rdb_last_bgsave_status"] == status)

    file = folder / "dump.rdb"
    file.unlink(missing_ok=True)
    (file / "x").mkdir(parents=True)  # prevents a file with this name
    with configured(control, "save", "3600 1000000", ""):
        try:
            save("err")
            yield "MISCONF"
        finally:
            shutil.rmtree(file)
            save("ok")


@contextlib.contextmanager
def busy(control, folder):
    other = redis.Redis.from_url(f"unix://{folder / 's'}")

    def run():
        with contextlib.suppress(redis.RedisError):
            other.eval("while true do end", 0)

    script = threading.Thread(target=run)
    with configured(control, "lua-time-limit", 1, 5000):
        script.start()
        try:
            wait_until(lambda: "BUSY" in rejection(control))
            yield "BUSY"
        finally:
            control.script_kill()
            script.join()


@contextlib.contextmanager
def without_rights(control, folder):
    control.execute_command("ACL", "SETUSER", "default", "-lpush", "-xadd")
    try:
        yield "NoPermissionError"
    finally:
        control.execute_command("ACL", "SETUSER", "default", "+@all")


@contextlib.contextmanager
def configured(control, name, value, former):
    control.config_set(name, value)
    try:
        yield
    finally:
        control.config_set(name, former)


TEMPORARY_STATES = [read_only, without_master, full, without_replicas, unable_to_save, busy]
FEW_STATES = pytest.mark.parametrize("state", [without_master, full, busy])


@pytest.fixture
def attempts(caplog):
    """Returns the number of logged attempts."""
    caplog.set_level(logging.WARNING, "feedrate.redis")
    return lambda: sum("next attempt in" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("state", [*TEMPORARY_STATES, without_rights])
@QUEUES
def test_worker_keeps_results_while_the_server_rejects(rejecting_server, queue, state, attempts):
    """The server's state changes while the function runs. The results are stored later, without a second call."""
    (url, folder), prefix, calls = rejecting_server, f"keeps-{queue}-{state.__name__}", []
    control, change = redis.Redis.from_url(url), contextlib.ExitStack()

    def work(payloads):
        calls.append(len(payloads))
        if len(calls) == 1:
            expected = change.enter_context(state(control, folder))
            assert expected in rejection(control)
        return payloads

    with change, fr.Client(url, queue=queue, prefix=prefix) as client, Worker(work, queue, url, prefix) as worker:
        ids = client.submit_many([b"one", b"two"])
        wait_until(lambda: attempts() >= 2 or worker.ended)
        change.close()
        assert client.results(ids, timeout=TIMEOUT) == [b"one", b"two"]
        assert client.call(b"three", timeout=TIMEOUT) == b"three"
        assert worker.ended == []
    assert worker.ended == [3] and sum(calls) == 3


@FEW_STATES
@QUEUES
def test_worker_starts_while_the_server_rejects(rejecting_server, queue, state, attempts):
    (url, folder), prefix = rejecting_server, f"starts-{queue}-{state.__name__}"
    control = redis.Redis.from_url(url)
    with fr.Client(url, queue=queue, prefix=prefix) as client, Worker(list, queue, url, prefix) as worker:
        assert client.call(b"x", timeout=TIMEOUT) == b"x"  # now the stream has its group
        with state(control, folder):
            before = attempts()
            with Worker(list, queue, url, prefix) as second:
                # A full server still allows a worker to take tasks from a list.
                if (queue, state) != ("redis_list", full):
                    wait_until(lambda: attempts() > before + 1 or second.ended)
                assert second.ended == [] and worker.ended == []
        assert client.call(b"x", timeout=TIMEOUT) == b"x"
    assert worker.ended == [2]


@QUEUES
def test_worker_can_be_stopped_while_the_server_rejects(rejecting_server, queue, attempts, caplog):
    (url, folder), prefix = rejecting_server, f"stopped-{queue}"
    control, change = redis.Redis.from_url(url), contextlib.ExitStack()
    worker = Worker(lambda payloads: change.enter_context(full(control, folder)) and payloads, queue, url, prefix)
    with change, fr.Client(url, queue=queue, prefix=prefix) as client, worker:
        client.submit(b"x")
        wait_until(lambda: attempts() or worker.ended)
        worker.stop.set()
        wait_until(lambda: worker.ended)
    assert worker.ended == [0]
    assert any("1 results were not stored" in record.getMessage() for record in caplog.records)


@FEW_STATES
@QUEUES
def test_client_waits_for_results_while_the_server_rejects(rejecting_server, queue, state):
    (url, folder), prefix = rejecting_server, f"waits-{queue}-{state.__name__}"
    control, results = redis.Redis.from_url(url), []
    go = threading.Event()

    def work(payloads):
        go.wait(TIMEOUT)
        return payloads

    def wait(client, number):
        try:
            results.append(client.result(number, timeout=TIMEOUT))
        except Exception as error:  # noqa: BLE001
            results.append(error)

    async def wait_for_loop(number, rejecting):
        async with fr.AsyncClient(url, queue=queue, prefix=prefix, reply_list=8) as client:
            waiting = asyncio.create_task(client.result(number, timeout=TIMEOUT))
            if rejecting:
                await until(lambda: client._pauses.rejection or waiting.done())
            go.set()
            change.close()
            return await waiting

    with fr.Client(url, queue=queue, prefix=prefix, reply_list=7) as client, Worker(work, queue, url, prefix):
        mine = client.submit(b"x")
        other = 8 << 48 | 1
        client._replies.push(client._redis, [fr.encode(other, b"y")])
        change = contextlib.ExitStack()
        with change:
            change.enter_context(state(control, folder))
            waiter = threading.Thread(target=wait, args=(client, mine))
            waiter.start()
            # Only a full server always allows reading results; reading a stream is rejected in few states.
            readable = state is full or (queue == "redis_stream" and state not in (without_master, busy))
            assert asyncio.run(wait_for_loop(other, not readable)) == b"y"
        waiter.join(TIMEOUT)
    assert results == [b"x"]


@FEW_STATES
@QUEUES
@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_call_continues_when_the_server_accepts_again(rejecting_server, queue, state, kind):
    (url, folder), prefix = rejecting_server, f"calls-{queue}-{state.__name__}-{kind}"
    control, change, tries = redis.Redis.from_url(url), contextlib.ExitStack(), []

    def counted(client):
        number = client._replies.number

        def next_number():  # called for each attempt to send
            tries.append(client)
            if len(tries) == 3:
                change.close()
            return number()

        client._replies.number = next_number

    async def main():
        async with fr.AsyncClient(url, queue=queue, prefix=prefix, reply_list=7) as client:
            counted(client)
            return await client.call(b"x", timeout=TIMEOUT)

    with Worker(list, queue, url, prefix), change:
        change.enter_context(state(control, folder))
        if kind == "loop":
            assert asyncio.run(main()) == b"x"
        else:
            with fr.Client(url, queue=queue, prefix=prefix, reply_list=7) as client:
                counted(client)
                assert client.call(b"x", timeout=TIMEOUT) == b"x"
    assert len(tries) == 3


@QUEUES
def test_timeout_has_the_rejection_as_its_cause(rejecting_server, queue):
    url, folder = rejecting_server
    control = redis.Redis.from_url(url)

    async def main():
        async with fr.AsyncClient(url, queue=queue, prefix="vain", reply_list=7) as client:
            await client.result(7 << 48 | 1, timeout=0.1)

    with without_master(control, folder), fr.Client(url, queue=queue, prefix="vain", reply_list=7) as client:
        for wait in (lambda: client.result(7 << 48 | 1, timeout=0.1), lambda: asyncio.run(main())):
            with pytest.raises(TimeoutError, match="no result within 0.1 s") as late:
                wait()
            assert isinstance(late.value.__cause__, redis.RedisError)
        with pytest.raises(redis.RedisError):
            client.call(b"x", timeout=0.1)


@QUEUES
def test_full_server_accepts_all_tasks_of_a_command_or_none(rejecting_server, queue):
    url, _ = rejecting_server
    control = redis.Redis.from_url(url)
    with fr.Client(url, queue=queue, prefix=f"all-{queue}") as client:
        client.submit(b"x")
        control.config_set("maxmemory", control.info("memory")["used_memory"] + (1 << 20))
        try:
            with pytest.raises(redis.ResponseError):
                client.submit_many([bytes(10_000)] * 400)
        finally:
            control.config_set("maxmemory", 0)
        count = control.xlen if queue == "redis_stream" else control.llen
        assert count(f"all-{queue}:tasks") == 1


def test_failing_second_command_loses_no_task(redis_url, monkeypatch):
    """A worker of a list takes one task with a command and more with a second one. The first task is still served."""
    rpop, failed = redis.Redis.rpop, []

    def fails_once(*arguments, **options):
        if not failed:
            failed.append(arguments)
            raise redis.ResponseError("NOREPLICAS Not enough good replicas to write.")
        return rpop(*arguments, **options)

    with fr.Client(redis_url, prefix="second") as client:
        ids = client.submit_many([b"one", b"two", b"three"])
        monkeypatch.setattr(redis.Redis, "rpop", fails_once)
        with Worker(list, "redis_list", redis_url, "second") as worker:
            assert client.results(ids, timeout=TIMEOUT) == [b"one", b"two", b"three"]
    assert worker.ended == [3] and failed


TEMPORARY_CODES = "BUSY CLUSTERDOWN LOADING MASTERDOWN MISCONF NOREPLICAS OOM READONLY TRYAGAIN UNBLOCKED".split()


@pytest.mark.parametrize("pipeline", [redis.client.Pipeline, redis.asyncio.client.Pipeline])
@pytest.mark.parametrize("word", [*TEMPORARY_CODES, "ERR", "WRONGTYPE", "NOPERM", "WRONGPASS", "NOAUTH", "MOVED"])
def test_temporary_rejections_are_recognized_by_their_code(word, pipeline):
    parse = redis.connection.DefaultParser.parse_error
    text = "1 127.0.0.1:1" if word == "MOVED" else "and READONLY" if word == "ERR" else "OOM READONLY"
    error = parse(f"{word} {text}")
    assert redis_module.is_temporary_rejection(error) == (word in TEMPORARY_CODES)
    assert redis_module.is_temporary(error) == (word in TEMPORARY_CODES)
    pipeline.annotate_exception(None, error, 1, ("LPUSH", "BUSY", b"caused error: LOADING"))
    if "{exception.args}" not in str(error):  # some versions of redis-py insert this text
        assert redis_module.is_temporary_rejection(error) == (word in TEMPORARY_CODES)
    aborted = parse(f"EXECABORT Transaction discarded because of: {word} {text}")
    assert redis_module.is_temporary_rejection(aborted) == (word in TEMPORARY_CODES)


def test_wrong_password_ends_the_worker(tmp_path):
    with redis_server(tmp_path) as (url, _):
        redis.Redis.from_url(url).config_set("requirepass", "right")
        for queue in fr.SERVED:
            with pytest.raises(redis.AuthenticationError):
                fr.serve(queue, list, url=url.replace("//", "//:wrong@"))


# --- connection settings ----------------------------------------------------------------------------------------------

SETTINGS = [
    "protocol=2", "protocol=3", "decode_responses=True", "encoding=utf-16", "db=1", "health_check_interval=1",
    "socket_timeout=0.1", "retry_on_timeout=true", "max_connections=2", "client_name=me",
]  # fmt: skip


@QUEUES
@pytest.mark.parametrize("setting", SETTINGS)
def test_connection_settings_do_not_change_results(redis_url, queue, setting):
    url, prefix = f"{redis_url}?{setting}", f"settings-{setting}-{queue}"

    async def main():
        async with fr.AsyncClient(url, queue=queue, prefix=prefix) as client:
            return await asyncio.gather(*(client.call(bytes([n, 255]), timeout=TIMEOUT) for n in range(20)))

    with Worker(list, queue, url, prefix) as worker:
        with fr.Client(url, queue=queue, prefix=prefix) as client:
            for payload in (b"\xff\xfe", b""):
                assert client.call(payload, timeout=TIMEOUT) == payload
        assert asyncio.run(main()) == [bytes([n, 255]) for n in range(20)]
    assert worker.ended == [22]
    plain = redis.Redis.from_url(redis_url + ("?db=1" if setting == "db=1" else ""))
    assert plain.exists(f"{prefix}:clients"), "the keys differ from those of other clients"


def test_all_formats_of_stream_entries_are_parsed():
    entries = [(b"1-1", {b"m": b"x"})]
    for reply in ([[b"s", entries]], {b"s": [entries]}, {b"s": entries}):
        assert redis_module.entries_of(reply) == entries
    for nothing in (None, [], {}, {b"s": []}, {b"s": [[]]}):
        assert list(redis_module.entries_of(nothing)) == []


WRONG = {
    "?ssl=true": "invalid setting ssl; allowed: .*rediss://",
    "?no_such=1": "invalid setting no_such",
    "?protocol=4": "protocol must be either 2 or 3",
    "?protocol=x": "protocol",
    "?db=first": "db",
    "?retry_on_error=x": "invalid setting retry_on_error",
    "?credential_provider=x": "invalid setting credential_provider",
    "?redis_connect_func=x": "invalid setting redis_connect_func",
}


@pytest.mark.parametrize("setting", WRONG)
def test_invalid_connection_setting_is_named(setting):
    url = f"redis://:secret@localhost{setting}"
    for make in (fr.Client, fr.AsyncClient, lambda one: fr.serve("redis_list", list, url=one)):
        with pytest.raises(ValueError, match=f"^url: .*{WRONG[setting]}") as wrong:
            make(url)
        assert "secret" not in str(wrong.value)
    with pytest.raises(ValueError, match="^url: .*redis://"):
        fr.Client("http://localhost")


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """URL of a server's TLS port."""
    folder = tmp_path_factory.mktemp("tls")
    made = shutil.which("openssl") and subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", folder / "key", "-out", folder / "certificate"],
        capture_output=True,
    )  # fmt: skip
    if not made or made.returncode:
        pytest.skip("openssl cannot create a certificate on this machine")
    with redis_server(folder) as (url, _), socket.create_server(("localhost", 0)) as free:
        control, port = redis.Redis.from_url(url), free.getsockname()[1]
        settings = {f"tls-{name}-file": folder / "certificate" for name in ("cert", "ca-cert")}
        settings |= {"tls-key-file": folder / "key", "tls-auth-clients": "no"}
        free.close()
        try:
            for name, value in (settings | {"tls-port": port}).items():
                control.config_set(name, str(value))
        except redis.ResponseError as error:
            pytest.skip(f"this redis-server does not support TLS: {error}")
        yield f"rediss://localhost:{port}?ssl_ca_certs={folder / 'certificate'}"


@QUEUES
def test_client_and_worker_use_tls(tls, queue):
    async def main():
        async with fr.AsyncClient(tls, queue=queue, prefix=queue) as client:
            return await client.call(b"x", timeout=TIMEOUT)

    with Worker(list, queue, tls, queue), fr.Client(tls, queue=queue, prefix=queue) as client:
        assert client.call(b"x", timeout=TIMEOUT) == b"x" == asyncio.run(main())


# --- results without values -------------------------------------------------------------------------------------------


@QUEUES
def test_worker_rejects_results_without_values(redis_url, queue, caplog):
    from test_buffers import NO_VALUES

    results = [*NO_VALUES.values(), "text", 5, np.arange(3, dtype=">u2"), np.array(5, np.int32), bytearray(b"x")]
    prefix = f"values-{queue}"
    with Worker(lambda tasks: [results[task[0]] for task in tasks], queue, redis_url, prefix) as worker:
        with fr.Client(redis_url, queue=queue, prefix=prefix) as client:
            ids = client.submit_many([bytes([n]) for n in range(len(results))])
            for number in ids[:-3]:
                with pytest.raises(fr.MessageFailed, match="refused"):
                    client.result(number, timeout=TIMEOUT)
            assert client.results(ids[-3:], timeout=TIMEOUT) == [b"\0\0\0\1\0\2", b"\5\0\0\0", b"x"]
    assert worker.ended == [len(results)]
