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
import os
import secrets
import signal
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any

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
        for entry_id, fields in reply[0][1] if reply else []:
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
        """One command, or a pipeline, that sends these."""
        if self.names.queue != "redis_stream":
            return client.lpush(self.names.tasks, *elements)
        pipeline = client.pipeline(transaction=False)
        for element in elements:
            pipeline.xadd(self.names.tasks, {_FIELD: element})
        return pipeline.execute()


class Client:
    """Sends tasks to workers, and gets their results. For one thread at a time.

    Parameters
    ----------
    url : str
        As redis-py takes it: ``redis://host:6379/0``, ``rediss://…``, ``unix:///tmp/redis.sock``.
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
        self._redis = _redis.Redis.from_url(url)

    def submit(self, payload: bytes, *, deadline: float | None = None) -> int:
        """Sends one task; returns its id."""
        return self.submit_many([payload], deadline=deadline)[0]

    def submit_many(self, payloads: Iterable[bytes], *, deadline: float | None = None) -> list[int]:
        """Sends tasks by one command; returns their ids."""
        if self._replies.reply_list is None:
            self._replies.take_turn(int(self._redis.incr(self._replies.names.clients)))
        tasks = [(self._replies.number(), bytes(payload)) for payload in payloads]
        if tasks:
            self._replies.push(self._redis, [encode(*task, deadline=deadline) for task in tasks])
        return [message_id for message_id, _ in tasks]

    def result(self, message_id: int, *, timeout: float = 10.0) -> bytes:
        """A task's result, once. Raises MessageFailed, or TimeoutError after `timeout` seconds; it may still come."""
        until = time.monotonic() + timeout
        while True:
            payload = self._replies.taken(message_id)
            if payload is not None:
                return payload
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no result within {timeout} s")
            self._receive(min(left, 1.0))

    def results(self, message_ids: Iterable[int], *, timeout: float = 10.0) -> list[bytes]:
        """As `result`, of each."""
        until = time.monotonic() + timeout
        return [self.result(one, timeout=max(0.001, until - time.monotonic())) for one in message_ids]

    def call(self, payload: bytes, *, timeout: float = 10.0) -> bytes:
        """Sends a task and waits for its result."""
        return self.result(self.submit(payload), timeout=timeout)

    def close(self) -> None:
        """Closes the connections. Results that come later expire on the server."""
        self._redis.close()

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
                self._redis.xtrim(replies.results_key, minid=replies._last, approximate=False)
            return
        one = self._redis.brpop([replies.results_key], timeout=wait)
        if one is None:
            return
        replies.keep(one[1])
        for element in self._redis.rpop(replies.results_key, 1024) or []:
            replies.keep(element)


class AsyncClient:
    """As `Client`, for asyncio: any number of tasks of one loop may wait at once."""

    def __init__(
        self, url: str, *, queue: str = "redis_list", prefix: str = "feedrate", reply_list: int | None = None
    ) -> None:
        self._replies = _Replies(prefix, queue, reply_list)
        # So many commands under way; more of them wait.
        pool = _redis_async.BlockingConnectionPool.from_url(url, max_connections=8, timeout=None)
        self._redis = _redis_async.Redis(connection_pool=pool)
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._reader: asyncio.Task[None] | None = None
        self._closed = False

    async def submit(self, payload: bytes, *, deadline: float | None = None) -> int:
        """Sends one task; returns its id."""
        return (await self.submit_many([payload], deadline=deadline))[0]

    async def submit_many(self, payloads: Iterable[bytes], *, deadline: float | None = None) -> list[int]:
        """Sends tasks by one command; returns their ids."""
        if self._replies.reply_list is None:
            self._replies.take_turn(await self._redis.incr(self._replies.names.clients))
        tasks = [(self._replies.number(), bytes(payload)) for payload in payloads]
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
            raise TimeoutError(f"no result within {timeout} s") from None
        finally:
            self._waiting.pop(message_id, None)
        payload = self._replies.taken(message_id)
        assert payload is not None
        return payload

    async def call(self, payload: bytes, *, timeout: float = 10.0) -> bytes:
        """Sends a task and waits for its result."""
        return await self.result(await self.submit(payload), timeout=timeout)

    async def close(self) -> None:
        """Closes the connections; who still waits for a result gets a ConnectionError."""
        self._closed = True
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait([self._reader])
        await self._redis.aclose()

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
                for message_id in await self._receive(0.5):
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
                await self._redis.xtrim(replies.results_key, minid=replies._last, approximate=False)
            return found
        one = await self._redis.brpop([replies.results_key], timeout=wait)
        if one is None:
            return []
        found = replies.keep(one[1])
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

    Parameters
    ----------
    queue : {"redis_list", "redis_stream"}
        ``redis_list``: at most once; what a worker that dies had taken is lost. ``redis_stream``: at least once; what a
        worker that died had taken is taken over by another after `lease` seconds, and results may come twice. The other
        queues' scripts are in the C++ worker alone.
    function : callable
        Of a list of payloads; returns as many results, bytes each. An exception instead of bytes fails that task; an
        exception that it raises fails the whole batch with the fault ``refused``.
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
    ending = threading.Event() if stop is None else stop
    former = []
    if stop is None and threading.current_thread() is threading.main_thread():
        former = [(one, signal.signal(one, lambda *_: ending.set())) for one in (signal.SIGTERM, signal.SIGINT)]
    client = _redis.Redis.from_url(url)
    names = _Names(prefix, queue)
    kind: type[_List] | type[_Stream] = _List if queue == "redis_list" else _Stream
    source: _List | _Stream | None = kind(client, names, batch, lease)
    answered = 0
    try:
        while not ending.is_set():
            try:
                if source is None:
                    source = kind(client, names, batch, lease)
                elements = source.take()
                if elements:
                    answered += _answer(client, names, source, elements, function)
            except (_redis.ConnectionError, _redis.TimeoutError):
                ending.wait(0.2)  # the server may come back; what a stream had given out is claimed again
            except _redis.ResponseError as error:
                if not any(word in str(error) for word in ("NOGROUP", "UNBLOCKED")):
                    raise
                source = None  # the stream went, at the latest while this waited for it: it gets its group anew
    finally:
        for one, handler in former:
            signal.signal(one, handler)
        client.close()
    return answered


class _List:
    """Elements of a list: taken is gone."""

    def __init__(self, client: Any, names: _Names, batch: int, lease: float) -> None:
        self._client, self._names, self._batch = client, names, batch

    def take(self) -> list[tuple[str, bytes]]:
        first = self._client.brpop([self._names.tasks], timeout=0.2)
        if first is None:
            return []
        more = self._client.rpop(self._names.tasks, self._batch - 1) if self._batch > 1 else None
        return [("", element) for element in [first[1], *(more or [])]]

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
        try:
            client.xgroup_create(names.tasks, _GROUP, id="0", mkstream=True)
        except _redis.ResponseError as error:
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
                _GROUP, self._consumer, {self._names.tasks: ">"}, count=self._batch, block=200
            )
            entries = found[0][1] if found else []
        return [(entry_id.decode(), fields.get(_FIELD.encode(), b"")) for entry_id, fields in entries if fields]

    def done(self, pipeline: Any, keys: Sequence[str]) -> None:
        pipeline.xack(self._names.tasks, _GROUP, *keys)
        pipeline.xdel(self._names.tasks, *keys)

    def push(self, pipeline: Any, key: str, element: bytes) -> None:
        pipeline.xadd(key, {_FIELD: element})


def _answer(
    client: Any,
    names: _Names,
    source: _List | _Stream,
    elements: Sequence[tuple[str, bytes]],
    function: Callable[[list[bytes]], Sequence[Any]],
) -> int:
    """Works on the elements' tasks, stores the results, and only then says that the elements are done."""
    tasks: list[tuple[int, bytes]] = []
    by_list: dict[int, list[bytes]] = {}

    def reply(message_id: int, length: int, word: int, payload: bytes) -> None:
        padded = payload + bytes(-len(payload) % 16)
        by_list.setdefault(message_id >> _SEQUENCE_BITS, []).append(_HEADER.pack(message_id, length, word) + padded)

    now_ms = time.time() * 1e3
    for _, element in elements:
        try:
            for message_id, length, payload, deadline in decode(element, tasks=True):
                if length & FAILED:
                    reply(message_id, length, 0, b"")
                elif deadline and deadline < now_ms:
                    reply(message_id, FAILED | FAULTS.index("expired"), 0, b"")
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
        try:
            payload = bytes(memoryview(result))
        except TypeError:  # an exception, or what is no bytes: this task fails
            reply(message_id, FAILED | FAULTS.index("refused"), 0, b"")
        else:
            reply(message_id, len(payload), checksum(payload), payload)
    pipeline = client.pipeline(transaction=True)
    for reply_list, messages in by_list.items():
        key = names.results(reply_list)
        source.push(pipeline, key, b"".join(messages))
        pipeline.pexpire(key, _RESULTS_EXPIRE_MS)
    source.done(pipeline, [key for key, _ in elements])
    pipeline.execute()
    return sum(map(len, by_list.values()))


__all__ = ["AsyncClient", "Client", "checksum", "decode", "encode", "serve"]
