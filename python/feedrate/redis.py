"""Tasks for `feedrate worker` from Python, and workers in Python for the same queues, over redis-py.

A web service feeds a worker that is written in C++::

    client = feedrate.redis.Client("redis://localhost")
    result = client.result(client.submit(b"four"), timeout=1)

and a Python function on batches serves the same queues::

    feedrate.redis.serve("redis_stream", model, url="redis://localhost", batch=64)

The bytes on the wire are those of common/redis/README.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import secrets
import signal
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from types import TracebackType
from typing import Any

from .buffers import bytes_of
from .errors import Error, MessageFailed
from .views import FAILED, FAULTS

try:
    import redis as _redis
    import redis.asyncio as _redis_async
except ModuleNotFoundError:
    raise ImportError("feedrate.redis needs redis-py: pip install 'feedrate[redis]'") from None

QUEUES = ("redis_list", "redis_reliable", "redis_stream")
SERVED = ("redis_list", "redis_stream")
_HEADER = struct.Struct("<QII")
_EXTENSION = struct.Struct("<QQ")
_SEQUENCE_BITS = 48
_GROUP, _FIELD = "feedrate", "m"
_RESULTS_EXPIRE_MS = 3600 * 1000
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # seconds between two attempts, as the C++ worker has them
_log = logging.getLogger(__name__)
# What a server answers in a state that passes: redis-py has classes for some, and drops the word then.
_PASSING = frozenset(
    ("BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "NOREPLICAS", "OOM", "READONLY", "TRYAGAIN", "UNBLOCKED")
)
_PASSING_CLASSES = (
    _redis.exceptions.BusyLoadingError,
    _redis.exceptions.ClusterDownError,
    _redis.exceptions.OutOfMemoryError,
    _redis.exceptions.ReadOnlyError,
    _redis.exceptions.TryAgainError,
)
# Settings that redis-py wants as objects, which a URL cannot hold.
_NO_TEXTS = frozenset(
    ("cache", "credential_provider", "encoder_class", "parser_class", "redis_connect_func", "retry", "retry_on_error")
)


def _words_of(error: Exception) -> str:
    """The server's own, without the command that a pipeline puts before them."""
    said = str(error).rpartition("caused error: ")[2].rpartition("because of: ")[2]
    return re.sub(r"""^\((['"])(.*)\1,\)$""", r"\2", said)  # redis-py's pipelines for asyncio put a tuple there


def _code_of(error: Exception) -> str:
    """The first word of what the server said, or "" where redis-py dropped it; of a transaction, the reason's."""
    if type(error) in (_redis.ResponseError, _redis.exceptions.ExecAbortError):
        return _words_of(error).split(" ", 1)[0]
    return getattr(error, "status_code", None) or ""


def _refused_for_now(error: Exception) -> bool:
    """Whether the server has done nothing, and may do it later: it loads, is full, is a replica until a failover ends."""
    return isinstance(error, _PASSING_CLASSES) or (
        isinstance(error, _redis.ResponseError) and _code_of(error) in _PASSING
    )


def _may_pass(error: Exception) -> bool:
    """The same, or the server can't be reached. What a wrong password brings about is no matter of time."""
    if isinstance(error, (_redis.AuthenticationError, _redis.exceptions.AuthorizationError)):
        return False
    return isinstance(error, (_redis.ConnectionError, _redis.TimeoutError)) or _refused_for_now(error)


class _Pauses:
    """Longer and longer ones, until something works again."""

    def __init__(self) -> None:
        self.works()

    def works(self) -> None:
        self._following = _FIRST_PAUSE
        self.refusal: Exception | None = None

    def after(self, refusal: Exception) -> float:
        self.refusal = refusal
        pause, self._following = self._following, min(2 * self._following, _LONGEST_PAUSE)
        return pause


def _of_url(url: str, pool_class: Any, **settings: Any) -> Any:
    """A pool of connections by a URL of redis-py's, none of them open yet. Keys are UTF-8 and payloads bytes, whatever
    the URL says. Raises ValueError for settings that its connections do not have."""

    def refuse(setting: str) -> None:
        raise ValueError(f"{setting} is not possible; allowed: settings of redis-py's connections, and rediss:// for TLS")

    try:
        pool = pool_class.from_url(url, **settings)
        for setting in sorted(_NO_TEXTS & pool.connection_kwargs.keys()):
            refuse(setting)
        if pool.connection_kwargs.get("protocol") not in (None, 2, 3, "2", "3"):
            raise ValueError("protocol must be either 2 or 3")
        pool.connection_kwargs |= {"decode_responses": False, "encoding": "utf-8", "encoding_errors": "strict"}
        try:
            pool.connection_class(**pool.connection_kwargs)
        except TypeError as error:
            refuse(re.sub(r".*argument '(\w+)'.*", r"\1", str(error)))
    except (ValueError, _redis.RedisError) as error:
        raise ValueError(f"url: {error}") from None
    return pool


def _longest_wait(pool: Any, seconds: float) -> float:
    """Of a command that the server holds back: redis-py would take it for lost after socket_timeout."""
    timeout = pool.connection_kwargs.get("socket_timeout", 2 * seconds)
    return seconds if timeout is None else min(seconds, max(0.001, timeout / 2))


def _entries_of(reply: Any) -> Any:
    """Of XREAD or XREADGROUP of one stream: redis-py gives lists, or dicts of two shapes, by protocol and version."""
    if not reply:
        return []
    entries = next(iter(reply.values())) if isinstance(reply, dict) else reply[0][1]
    return entries[0] if entries and isinstance(entries[0], list) else entries


def encode(message_id: int, payload: bytes, *, deadline: float | None = None) -> bytes:
    """A task. `deadline`: Unix seconds; a worker that gets it later answers with the fault ``expired``."""
    padding = bytes(-len(payload) % 16)
    if deadline is None:
        return _HEADER.pack(message_id, len(payload), 0) + payload + padding
    extension = _EXTENSION.pack(int(deadline * 1e3), 0)
    return _HEADER.pack(message_id, len(payload), 1) + extension + payload + padding


def decode(element: bytes, *, tasks: bool = False) -> Iterator[tuple[int, int, bytes, int]]:
    """Each message of an element: id, length word, payload, and a task's deadline in Unix milliseconds (0: none). The
    length word of a task that no worker can take names its fault, as a result's does.

    Raises ValueError where the element ends within a message.
    """
    at = 0
    while at < len(element):
        if at + _HEADER.size > len(element):
            raise ValueError(f"an element of {len(element)} bytes ends within a header")
        message_id, length, word = _HEADER.unpack_from(element, at)
        at += _HEADER.size
        deadline = 0
        if tasks and word & 0xFF == 1:
            if at + _EXTENSION.size > len(element):
                raise ValueError(f"an element of {len(element)} bytes ends within a header")
            deadline, _ = _EXTENSION.unpack_from(element, at)
            at += _EXTENSION.size
        size = 0 if length & FAILED else length
        if at + size > len(element):
            raise ValueError(f"a message of {size} bytes in an element with {len(element) - at} left")
        payload = element[at : at + size]
        if tasks and word & 0xFF > 1:
            length, payload = FAILED | FAULTS.index("bad_version"), b""
        elif tasks and length & FAILED:
            length = FAILED | FAULTS.index("bad_length")
        yield message_id, length, payload, deadline
        at += size + (-size % 16)


def checksum(payload: bytes) -> int:
    """The sum of the 32-bit words, the last one padded with zeros, modulo 2^32."""
    padded = payload + bytes(-len(payload) % 4)
    words: tuple[int, ...] = struct.unpack(f"<{len(padded) // 4}I", padded)
    return sum(words) & 0xFFFF_FFFF


class _Names:
    def __init__(self, prefix: str, queue: str) -> None:
        if queue not in QUEUES:
            raise ValueError(f"queue: {queue!r} is not possible; allowed: {', '.join(QUEUES)}")
        self.queue, self.tasks, self.clients = queue, f"{prefix}:tasks", f"{prefix}:clients"
        self._prefix = prefix

    def results(self, reply_list: int) -> str:
        return f"{self._prefix}:results:{reply_list}"


class _Replies:
    """What both clients keep: the ids, and results that came for others. Clients that name no reply list take those of
    the upper half in turn, by a counter on the server; a benchmark's producers have the first ones."""

    _FIRST_IN_TURN = 1 << 15

    def __init__(self, prefix: str, queue: str, reply_list: int | None) -> None:
        if reply_list is not None and not 0 <= reply_list < 1 << 16:
            raise ValueError(f"reply_list: {reply_list} is not possible; allowed: 0 to 65535")
        self.names = _Names(prefix, queue)
        self.reply_list = reply_list
        self._last = "0"  # of the result stream's entries
        # Another client of the same reply list, before this one, may have left results under lower numbers.
        self._sequence = int(time.time() * 1e3) << 8 & ((1 << _SEQUENCE_BITS) - 1)
        self._lock = threading.Lock()
        self.arrived: dict[int, tuple[int, bytes]] = {}

    @property
    def results_key(self) -> str:
        if self.reply_list is None:
            raise ValueError("this client has sent no task yet: it has no results")
        return self.names.results(self.reply_list)

    def take_turn(self, clients: int) -> None:
        """`clients`: how many had their turn, this one among them."""
        if self.reply_list is None:
            self.reply_list = self._FIRST_IN_TURN + clients % self._FIRST_IN_TURN

    def number(self) -> int:
        assert self.reply_list is not None
        with self._lock:
            self._sequence = (self._sequence + 1) & ((1 << _SEQUENCE_BITS) - 1)
            return self.reply_list << _SEQUENCE_BITS | self._sequence

    def keep(self, element: Any) -> list[int]:
        """Returns whose results they are."""
        found = {message_id: (length, payload) for message_id, length, payload, _ in decode(element)}
        self.arrived |= found
        return list(found)

    def keep_entries(self, reply: Any) -> list[int]:
        """Of XREAD."""
        found = []
        for entry_id, fields in _entries_of(reply):
            self._last = entry_id.decode()
            found += self.keep(fields[_FIELD.encode()])
        return found

    def taken(self, message_id: int) -> bytes | None:
        found = self.arrived.pop(message_id, None)
        if found is None:
            return None
        length, payload = found
        if length & FAILED:
            fault = length & ~FAILED
            raise MessageFailed(FAULTS[fault] if fault < len(FAULTS) else str(fault))
        return payload

    def push(self, client: Any, elements: Sequence[bytes]) -> Any:
        """One command, or a transaction, that sends these: all of them, or none."""
        if self.names.queue != "redis_stream":
            return client.lpush(self.names.tasks, *elements)
        if len(elements) == 1:
            return client.xadd(self.names.tasks, {_FIELD: elements[0]})
        pipeline = client.pipeline(transaction=True)
        for element in elements:
            pipeline.xadd(self.names.tasks, {_FIELD: element})
        return pipeline.execute()


class Client:
    """Sends tasks to workers, and gets their results. For one thread at a time.

    A server may refuse for a while, as in a failover or when it is full: `submit` raises redis-py's error then, and
    nothing was sent; `call` and `result` try again until their time is over.

    Parameters
    ----------
    url : str
        As redis-py takes it: ``redis://host:6379/0``, ``rediss://…``, ``unix:///tmp/redis.sock``, and settings of its
        connections: ``?protocol=3&health_check_interval=30``.
    queue : {"redis_list", "redis_reliable", "redis_stream"}
        As the worker's ``--queue``.
    prefix : str
        As the worker's ``--prefix``.
    reply_list : int, optional
        0 to 65535: whose results these are; clients that share one take each other's. By default each client takes its
        own from 32768 on, by the counter ``<prefix>:clients``.
    """

    def __init__(
        self, url: str, *, queue: str = "redis_list", prefix: str = "feedrate", reply_list: int | None = None
    ) -> None:
        self._replies = _Replies(prefix, queue, reply_list)
        self._pool = _of_url(url, _redis.ConnectionPool)
        self._redis = _redis.Redis(connection_pool=self._pool)
        self._longest_wait = _longest_wait(self._pool, 1.0)

    def submit(self, payload: bytes, *, deadline: float | None = None) -> int:
        """Sends one task, which is bytes-like or an array; returns its id."""
        return self.submit_many([payload], deadline=deadline)[0]

    def submit_many(self, payloads: Iterable[bytes], *, deadline: float | None = None) -> list[int]:
        """Sends tasks by one command; returns their ids."""
        if self._replies.reply_list is None:
            self._replies.take_turn(int(self._redis.incr(self._replies.names.clients)))
        tasks = [(self._replies.number(), bytes_of(payload)) for payload in payloads]
        if tasks:
            self._replies.push(self._redis, [encode(*task, deadline=deadline) for task in tasks])
        return [message_id for message_id, _ in tasks]

    def result(self, message_id: int, *, timeout: float = 10.0) -> bytes:
        """A task's result, once. Raises MessageFailed, or TimeoutError after `timeout` seconds; it may still come."""
        until = time.monotonic() + timeout
        pauses = _Pauses()
        while True:
            payload = self._replies.taken(message_id)
            if payload is not None:
                return payload
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no result within {timeout} s") from pauses.refusal
            try:
                self._receive(min(left, self._longest_wait))
                pauses.works()
            except _redis.RedisError as error:
                if not _refused_for_now(error):
                    raise
                time.sleep(min(left, pauses.after(error)))

    def results(self, message_ids: Iterable[int], *, timeout: float = 10.0) -> list[bytes]:
        """As `result`, of each."""
        until = time.monotonic() + timeout
        return [self.result(one, timeout=max(0.001, until - time.monotonic())) for one in message_ids]

    def call(self, payload: bytes, *, timeout: float = 10.0) -> bytes:
        """Sends a task and waits for its result."""
        until = time.monotonic() + timeout
        pauses = _Pauses()
        while True:
            try:
                message_id = self.submit(payload)
                break
            except _redis.RedisError as error:
                pause = pauses.after(error)
                if not _refused_for_now(error) or time.monotonic() + pause > until:
                    raise
                time.sleep(pause)
        return self.result(message_id, timeout=max(0.0, until - time.monotonic()))

    def close(self) -> None:
        """Closes the connections. Results that come later expire on the server."""
        self._redis.close()
        self._pool.disconnect()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _receive(self, wait: float) -> None:
        replies = self._replies
        if replies.names.queue == "redis_stream":
            found = self._redis.xread({replies.results_key: replies._last}, count=1024, block=max(1, int(wait * 1e3)))
            if replies.keep_entries(found):
                with contextlib.suppress(_redis.RedisError):  # the next one trims these, too
                    self._redis.xtrim(replies.results_key, minid=replies._last, approximate=False)
            return
        one = self._redis.brpop([replies.results_key], timeout=wait)
        if one is None:
            return
        replies.keep(one[1])
        with contextlib.suppress(_redis.RedisError):  # what came is there; the next command says what is wrong
            for element in self._redis.rpop(replies.results_key, 1024) or []:
                replies.keep(element)


class AsyncClient:
    """As `Client`, for asyncio: any number of tasks of one loop may wait at once."""

    def __init__(
        self, url: str, *, queue: str = "redis_list", prefix: str = "feedrate", reply_list: int | None = None
    ) -> None:
        self._replies = _Replies(prefix, queue, reply_list)
        # So many commands under way; more of them wait.
        self._pool = _of_url(url, _redis_async.BlockingConnectionPool, max_connections=8, timeout=None)
        self._redis = _redis_async.Redis(connection_pool=self._pool)
        self._longest_wait = _longest_wait(self._pool, 0.5)
        self._pauses = _Pauses()
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._reader: asyncio.Task[None] | None = None
        self._closed = False

    async def submit(self, payload: bytes, *, deadline: float | None = None) -> int:
        """Sends one task, which is bytes-like or an array; returns its id."""
        return (await self.submit_many([payload], deadline=deadline))[0]

    async def submit_many(self, payloads: Iterable[bytes], *, deadline: float | None = None) -> list[int]:
        """Sends tasks by one command; returns their ids."""
        if self._replies.reply_list is None:
            self._replies.take_turn(await self._redis.incr(self._replies.names.clients))
        tasks = [(self._replies.number(), bytes_of(payload)) for payload in payloads]
        if tasks:
            await self._replies.push(self._redis, [encode(*task, deadline=deadline) for task in tasks])
        return [message_id for message_id, _ in tasks]

    async def result(self, message_id: int, *, timeout: float = 10.0) -> bytes:
        """A task's result, once. Raises MessageFailed, or TimeoutError after `timeout` seconds; it may still come.
        Cancelled, it leaves the result to be asked for again."""
        payload = self._replies.taken(message_id)
        if payload is not None:
            return payload
        if message_id in self._waiting:
            raise ValueError(f"message_id: the result of {message_id} is waited for already")
        arrived = self._waiting[message_id] = asyncio.get_running_loop().create_future()
        if self._reader is None or self._reader.done():
            self._reader = asyncio.create_task(self._read())
        try:
            await asyncio.wait_for(arrived, timeout)
        except TimeoutError:
            raise TimeoutError(f"no result within {timeout} s") from self._pauses.refusal
        finally:
            self._waiting.pop(message_id, None)
        payload = self._replies.taken(message_id)
        assert payload is not None
        return payload

    async def call(self, payload: bytes, *, timeout: float = 10.0) -> bytes:
        """Sends a task and waits for its result."""
        until = time.monotonic() + timeout
        pauses = _Pauses()
        while True:
            try:
                message_id = await self.submit(payload)
                break
            except _redis.RedisError as error:
                pause = pauses.after(error)
                if not _refused_for_now(error) or time.monotonic() + pause > until:
                    raise
                await asyncio.sleep(pause)
        return await self.result(message_id, timeout=max(0.0, until - time.monotonic()))

    async def close(self) -> None:
        """Closes the connections; who still waits for a result gets a ConnectionError."""
        self._closed = True
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait([self._reader])
        await self._redis.aclose()
        await self._pool.disconnect()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _read(self) -> None:
        """Receives for all who wait, so that neither one's slow task nor one's cancellation is another's."""
        why: BaseException = ConnectionError("the client was closed")
        try:
            while self._waiting and not self._closed:  # redis-py does not always pass a cancellation on
                try:
                    found = await self._receive(self._longest_wait)
                    self._pauses.works()
                except _redis.RedisError as error:
                    if not _refused_for_now(error):
                        raise
                    await asyncio.sleep(self._pauses.after(error))
                    continue
                for message_id in found:
                    arrived = self._waiting.pop(message_id, None)
                    if arrived is not None and not arrived.done():
                        arrived.set_result(None)
        except Exception as error:  # noqa: BLE001  (they are told, whatever it is)
            why = error
        finally:
            for arrived in self._waiting.values():
                if not arrived.done():
                    arrived.set_exception(why)

    async def _receive(self, wait: float) -> list[int]:
        replies = self._replies
        if replies.names.queue == "redis_stream":
            reply = await self._redis.xread(
                {replies.results_key: replies._last}, count=1024, block=max(1, int(wait * 1e3))
            )
            found = replies.keep_entries(reply)
            if found:
                with contextlib.suppress(_redis.RedisError):  # the next one trims these, too
                    await self._redis.xtrim(replies.results_key, minid=replies._last, approximate=False)
            return found
        one = await self._redis.brpop([replies.results_key], timeout=wait)
        if one is None:
            return []
        found = replies.keep(one[1])
        with contextlib.suppress(_redis.RedisError):  # what came is there; the next command says what is wrong
            for element in await self._redis.rpop(replies.results_key, 1024) or []:
                found += replies.keep(element)
        return found


def serve(
    queue: str,
    function: Callable[[list[bytes]], Sequence[Any]],
    *,
    url: str,
    prefix: str = "feedrate",
    batch: int = 64,
    lease: float = 30.0,
    stop: threading.Event | None = None,
) -> int:
    """Serves a queue's tasks by a Python function on batches, until SIGTERM, SIGINT, or `stop` is set.

    A server that cannot be reached, or refuses for a while (a replica during a failover, a full memory), is tried again
    with longer and longer pauses, and results wait until it has them; each attempt is a warning of `logging`. Results
    may come twice where the connection broke while they were stored.

    Parameters
    ----------
    queue : {"redis_list", "redis_stream"}
        ``redis_list``: at most once; what a worker that dies had taken is lost. ``redis_stream``: at least once; what a
        worker that died had taken is taken over by another after `lease` seconds, and results may come twice. The other
        queues' scripts are in the C++ worker alone.
    function : callable
        Of a list of payloads; returns as many results, each bytes-like or an array. An exception instead, or an array
        whose bytes are not its values (objects, dates, masked ones), fails that task; an exception that it raises fails
        the whole batch with the fault ``refused``.
    batch : int
        Most elements of one call; an element may hold several tasks.
    lease : float
        Seconds; longer than a batch takes.

    Returns
    -------
    int
        How many tasks were answered.
    """
    if queue not in SERVED:
        raise ValueError(f"queue: {queue!r} is not possible; allowed: {', '.join(SERVED)}")
    if batch < 1:
        raise ValueError(f"batch: {batch} is not possible; allowed: from 1 on")
    if not 0 < lease <= 1e6:
        raise ValueError(f"lease: {lease} is not possible; allowed: seconds above 0, at most 1e6")
    pool = _of_url(url, _redis.ConnectionPool)
    client = _redis.Redis(connection_pool=pool)
    names = _Names(prefix, queue)
    ending = threading.Event() if stop is None else stop
    former = []
    if stop is None and threading.current_thread() is threading.main_thread():
        former = [(one, signal.signal(one, lambda *_: ending.set())) for one in (signal.SIGTERM, signal.SIGINT)]
    kind: type[_List] | type[_Stream] = _List if queue == "redis_list" else _Stream
    source: _List | _Stream | None = None
    answers: _Answers | None = None  # what the server does not have yet
    pauses = _Pauses()
    answered = 0
    try:
        while answers is not None or not ending.is_set():
            try:
                if source is None:
                    source = kind(client, names, batch, lease)
                if answers is None:
                    answers = _answers_to(source.take(), function)
                if answers is not None:
                    answered += answers.store(client, names, source)
                    answers = None
                pauses.works()
            except _redis.RedisError as error:
                if _code_of(error) in ("NOGROUP", "UNBLOCKED"):
                    source = None  # the stream went, at the latest while this waited for it: it gets its group anew
                    continue
                if not _may_pass(error):
                    raise
                if ending.is_set():
                    if answers is not None:
                        _log.warning("%s: %s; %d answers are not stored", names.tasks, _words_of(error), answers.count)
                    break
                pause = pauses.after(error)
                _log.warning("%s: %s; again in %.2g s", names.tasks, _words_of(error), pause)
                ending.wait(pause)
    finally:
        for one, handler in former:
            signal.signal(one, handler)
        client.close()
        pool.disconnect()
    return answered


class _List:
    """Elements of a list: taken is gone."""

    def __init__(self, client: Any, names: _Names, batch: int, lease: float) -> None:
        self._client, self._names, self._batch = client, names, batch
        self._wait = _longest_wait(client.connection_pool, 0.2)

    def take(self) -> list[tuple[str, bytes]]:
        first = self._client.brpop([self._names.tasks], timeout=self._wait)
        if first is None:
            return []
        elements = [first[1]]
        if self._batch > 1:
            with contextlib.suppress(_redis.RedisError):  # what was taken is served; the next command says what is wrong
                elements += self._client.rpop(self._names.tasks, self._batch - 1) or []
        return [("", element) for element in elements]

    def done(self, pipeline: Any, keys: Sequence[str]) -> None:
        pass

    def push(self, pipeline: Any, key: str, element: bytes) -> None:
        pipeline.lpush(key, element)


class _Stream:
    """Entries of a stream through its consumer group: acknowledged after the results are stored."""

    def __init__(self, client: Any, names: _Names, batch: int, lease: float) -> None:
        self._client, self._names, self._batch, self._lease_ms = client, names, batch, int(lease * 1e3)
        self._consumer = f"python-{os.uname().nodename}-{os.getpid()}-{secrets.token_hex(4)}"
        self._next_look = 0.0
        self._wait_ms = max(1, int(_longest_wait(client.connection_pool, 0.2) * 1e3))
        try:
            client.xgroup_create(names.tasks, _GROUP, id="0", mkstream=True)
        except _redis.ResponseError as error:
            if _refused_for_now(error):
                raise
            if "BUSYGROUP" not in str(error):
                raise Error(f"making the consumer group: {error}") from error

    def take(self) -> list[tuple[str, bytes]]:
        entries: list[Any] = []
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + self._lease_ms / 2e3
            entries = self._client.xautoclaim(
                self._names.tasks, _GROUP, self._consumer, self._lease_ms, count=self._batch
            )[1]
        if not entries:
            found = self._client.xreadgroup(
                _GROUP, self._consumer, {self._names.tasks: ">"}, count=self._batch, block=self._wait_ms
            )
            entries = _entries_of(found)
        return [(entry_id.decode(), fields.get(_FIELD.encode(), b"")) for entry_id, fields in entries if fields]

    def done(self, pipeline: Any, keys: Sequence[str]) -> None:
        pipeline.xack(self._names.tasks, _GROUP, *keys)
        pipeline.xdel(self._names.tasks, *keys)

    def push(self, pipeline: Any, key: str, element: bytes) -> None:
        pipeline.xadd(key, {_FIELD: element})


class _Answers:
    """To some elements: what is to be stored before they are done."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys
        self._by_list: dict[int, list[bytes]] = {}
        self.count = 0

    def add(self, message_id: int, length: int, word: int = 0, payload: bytes = b"") -> None:
        padded = payload + bytes(-len(payload) % 16)
        self._by_list.setdefault(message_id >> _SEQUENCE_BITS, []).append(_HEADER.pack(message_id, length, word) + padded)
        self.count += 1

    def fail(self, message_id: int, fault: str) -> None:
        self.add(message_id, FAILED | FAULTS.index(fault))

    def store(self, client: Any, names: _Names, source: _List | _Stream) -> int:
        """All in one transaction: when the server refuses it, nothing was stored, and it can be tried again."""
        pipeline = client.pipeline(transaction=True)
        for reply_list, messages in self._by_list.items():
            key = names.results(reply_list)
            source.push(pipeline, key, b"".join(messages))
            pipeline.pexpire(key, _RESULTS_EXPIRE_MS)
        source.done(pipeline, self._keys)
        pipeline.execute()
        return self.count


def _answers_to(
    elements: Sequence[tuple[str, bytes]], function: Callable[[list[bytes]], Sequence[Any]]
) -> _Answers | None:
    """Works on the elements' tasks."""
    if not elements:
        return None
    answers = _Answers([key for key, _ in elements])
    tasks: list[tuple[int, bytes]] = []
    now_ms = time.time() * 1e3
    for _, element in elements:
        try:
            for message_id, length, payload, deadline in decode(element, tasks=True):
                if length & FAILED:
                    answers.add(message_id, length)
                elif deadline and deadline < now_ms:
                    answers.fail(message_id, "expired")
                else:
                    tasks.append((message_id, payload))
        except ValueError:
            continue  # nobody can be answered: what follows in the element has no beginning
    results: Sequence[Any] = []
    if tasks:
        try:
            results = function([payload for _, payload in tasks])
            if len(results) != len(tasks):
                raise ValueError(f"{len(tasks)} tasks got {len(results)} results")
        except Exception as error:  # noqa: BLE001  (the batch's tasks fail, and the worker goes on)
            results = [error] * len(tasks)
    for (message_id, _), result in zip(tasks, results):
        if isinstance(result, Exception):
            answers.fail(message_id, "refused")
            continue
        try:
            payload = bytes_of(result, "result")
        except Exception as error:  # noqa: BLE001  (this task fails, and the worker goes on)
            _warn_once(f"a task failed: {error}")
            answers.fail(message_id, "refused")
        else:
            answers.add(message_id, len(payload), checksum(payload), payload)
    return answers


@lru_cache(maxsize=256)
def _warn_once(text: str) -> None:
    _log.warning("%s", text)


__all__ = ["AsyncClient", "Client", "checksum", "decode", "encode", "serve"]
