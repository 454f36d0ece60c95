"""Clients that send tasks to workers and receive the results, with blocking calls or with asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

import redis as _redis
import redis.asyncio as _redis_async

from ..buffers import bytes_of
from ..errors import MessageFailed
from ..views import FAILED, FAULTS
from .server import Pauses, entries_of, longest_wait, is_temporary, pool_of, is_temporary_rejection
from .wire import FIELD, Keys, SEQUENCE_BITS, decode, encode


class _Replies:
    """State common to both clients: the message ids, and results that have arrived but have not been requested yet.

    Clients without an explicit reply list are assigned lists from the upper half in turn, with a counter on the
    server. The producers of a benchmark use the first lists.
    """

    _FIRST_IN_TURN = 1 << 15

    def __init__(self, prefix: str, queue: str, reply_list: int | None) -> None:
        if reply_list is not None and not 0 <= reply_list < 1 << 16:
            raise ValueError(f"reply_list: invalid value {reply_list}; allowed: 0 to 65535")
        self.keys = Keys(prefix, queue)
        self.reply_list = reply_list
        self._last = "0"  # id of the last entry read from the result stream
        # An earlier client of the same reply list may have left results with lower numbers.
        self._sequence = int(time.time() * 1e3) << 8 & ((1 << SEQUENCE_BITS) - 1)
        self._lock = threading.Lock()
        self.arrived: dict[int, tuple[int, bytes]] = {}

    @property
    def results_key(self) -> str:
        if self.reply_list is None:
            raise ValueError("this client has not sent a task yet, so it has no results")
        return self.keys.results(self.reply_list)

    def assign_reply_list(self, clients: int) -> None:
        """Assigns a reply list. `clients` is the number of assignments so far, including this one."""
        if self.reply_list is None:
            self.reply_list = self._FIRST_IN_TURN + clients % self._FIRST_IN_TURN

    def number(self) -> int:
        assert self.reply_list is not None
        with self._lock:
            self._sequence = (self._sequence + 1) & ((1 << SEQUENCE_BITS) - 1)
            return self.reply_list << SEQUENCE_BITS | self._sequence

    def keep(self, element: Any) -> list[int]:
        """Keeps the results in an element and returns their message ids."""
        found = {message_id: (length, payload) for message_id, length, payload, _ in decode(element)}
        self.arrived |= found
        return list(found)

    def keep_entries(self, reply: Any) -> list[int]:
        """Keeps the results in a reply to XREAD and returns their message ids."""
        found = []
        for entry_id, fields in entries_of(reply):
            self._last = entry_id.decode()
            found += self.keep(fields[FIELD.encode()])
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
        """Sends all of the elements or none, with one command or one transaction."""
        if self.keys.queue != "redis_stream":
            return client.lpush(self.keys.tasks, *elements)
        if len(elements) == 1:
            return client.xadd(self.keys.tasks, {FIELD: elements[0]})
        pipeline = client.pipeline(transaction=True)
        for element in elements:
            pipeline.xadd(self.keys.tasks, {FIELD: element})
        return pipeline.execute()


class Client:
    """Sends tasks to workers and receives their results. Only one thread at a time may use a client.

    A server may reject commands temporarily, for example during a failover or when it is full. `submit` then raises
    redis-py's exception, and no task was sent. `call` and `result` try again until their timeout.

    Parameters
    ----------
    url : str
        A redis-py URL: ``redis://host:6379/0``, ``rediss://…`` or ``unix:///tmp/redis.sock``. It may have connection
        settings: ``?protocol=3&health_check_interval=30``.
    queue : {"redis_list", "redis_reliable", "redis_stream"}
        The queue, as in the worker's ``--queue``.
    prefix : str
        The prefix of the queue's keys, as in the worker's ``--prefix``.
    reply_list : int, optional
        Reply list for the results, 0 to 65535. Clients that share a list take each other's results. By default, each
        client gets its own list, numbered from 32768, with the counter ``<prefix>:clients``.
    """

    def __init__(
        self, url: str, *, queue: str = "redis_list", prefix: str = "feedrate", reply_list: int | None = None
    ) -> None:
        self._replies = _Replies(prefix, queue, reply_list)
        self._pool = pool_of(url, _redis.ConnectionPool)
        self._redis = _redis.Redis(connection_pool=self._pool)
        self.longest_wait = longest_wait(self._pool, 1.0)

    def submit(self, payload: bytes, *, deadline: float | None = None) -> int:
        """Sends one task, which is bytes-like or an array, and returns its id.

        `deadline` is a Unix time in seconds. A worker that takes the task later replies with the fault ``expired``.
        """
        return self.submit_many([payload], deadline=deadline)[0]

    def submit_many(self, payloads: Iterable[bytes], *, deadline: float | None = None) -> list[int]:
        """Sends several tasks, either all or none of them, and returns their ids. `deadline` is as in `submit`."""
        if self._replies.reply_list is None:
            self._replies.assign_reply_list(int(self._redis.incr(self._replies.keys.clients)))
        tasks = [(self._replies.number(), bytes_of(payload)) for payload in payloads]
        if tasks:
            self._replies.push(self._redis, [encode(*task, deadline=deadline) for task in tasks])
        return [message_id for message_id, _ in tasks]

    def result(self, message_id: int, *, timeout: float = 10.0) -> bytes:
        """Waits for a task's result and returns it. Each result can be taken only once.

        Raises MessageFailed if the task failed, and TimeoutError after `timeout` seconds. The result may still arrive
        later; a further call returns it.
        """
        until = time.monotonic() + timeout
        pauses = Pauses()
        while True:
            payload = self._replies.taken(message_id)
            if payload is not None:
                return payload
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no result within {timeout} s") from pauses.rejection
            try:
                self._receive(min(left, self.longest_wait))
                pauses.reset()
            except _redis.RedisError as error:  # receiving can be repeated safely
                if not is_temporary(error):
                    raise
                time.sleep(min(left, pauses.after(error)))

    def results(self, message_ids: Iterable[int], *, timeout: float = 10.0) -> list[bytes]:
        """Waits for the results of several tasks and returns them. `timeout` applies to all of them together."""
        until = time.monotonic() + timeout
        return [self.result(one, timeout=max(0.001, until - time.monotonic())) for one in message_ids]

    def call(self, payload: bytes, *, timeout: float = 10.0) -> bytes:
        """Sends a task and waits for its result."""
        until = time.monotonic() + timeout
        pauses = Pauses()
        while True:
            try:
                message_id = self.submit(payload)
                break
            except _redis.RedisError as error:
                pause = pauses.after(error)
                if not is_temporary_rejection(error) or time.monotonic() + pause > until:
                    raise
                time.sleep(pause)
        return self.result(message_id, timeout=max(0.0, until - time.monotonic()))

    def close(self) -> None:
        """Closes the connections. Results that arrive later expire on the server."""
        self._redis.close()
        self._pool.disconnect()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self, wait: float) -> None:
        replies = self._replies
        if replies.keys.queue == "redis_stream":
            found = self._redis.xread({replies.results_key: replies._last}, count=1024, block=max(1, int(wait * 1e3)))
            if replies.keep_entries(found):
                with contextlib.suppress(_redis.RedisError):  # the next trim removes these entries as well
                    self._redis.xtrim(replies.results_key, minid=replies._last, approximate=False)
            return
        one = self._redis.brpop([replies.results_key], timeout=wait)
        if one is None:
            return
        replies.keep(one[1])
        with contextlib.suppress(_redis.RedisError):  # results so far are kept; the next command reports the error
            for element in self._redis.rpop(replies.results_key, 1024) or []:
                replies.keep(element)


class AsyncClient:
    """Sends tasks to workers and receives their results, for asyncio. Takes the same parameters as `Client`.

    Any number of asyncio tasks on one event loop may wait for results at once.
    """

    def __init__(
        self, url: str, *, queue: str = "redis_list", prefix: str = "feedrate", reply_list: int | None = None
    ) -> None:
        self._replies = _Replies(prefix, queue, reply_list)
        # At most this many commands run at once; further commands wait for a connection.
        self._pool = pool_of(url, _redis_async.BlockingConnectionPool, max_connections=8, timeout=None)
        self._redis = _redis_async.Redis(connection_pool=self._pool)
        self.longest_wait = longest_wait(self._pool, 0.5)
        self._pauses = Pauses()
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._reader: asyncio.Task[None] | None = None
        self._closed = False

    async def submit(self, payload: bytes, *, deadline: float | None = None) -> int:
        """Sends one task, which is bytes-like or an array, and returns its id.

        `deadline` is a Unix time in seconds. A worker that takes the task later replies with the fault ``expired``.
        """
        return (await self.submit_many([payload], deadline=deadline))[0]

    async def submit_many(self, payloads: Iterable[bytes], *, deadline: float | None = None) -> list[int]:
        """Sends several tasks, either all or none of them, and returns their ids. `deadline` is as in `submit`."""
        if self._replies.reply_list is None:
            self._replies.assign_reply_list(await self._redis.incr(self._replies.keys.clients))
        tasks = [(self._replies.number(), bytes_of(payload)) for payload in payloads]
        if tasks:
            await self._replies.push(self._redis, [encode(*task, deadline=deadline) for task in tasks])
        return [message_id for message_id, _ in tasks]

    async def result(self, message_id: int, *, timeout: float = 10.0) -> bytes:
        """Waits for a task's result and returns it. Each result can be taken only once.

        Raises MessageFailed if the task failed, and TimeoutError after `timeout` seconds. After a timeout or a
        cancellation, a further call returns the result.
        """
        payload = self._replies.taken(message_id)
        if payload is not None:
            return payload
        if message_id in self._waiting:
            raise ValueError(f"message_id: another call is already waiting for the result of {message_id}")
        arrived = self._waiting[message_id] = asyncio.get_running_loop().create_future()
        if self._reader is None or self._reader.done():
            self._reader = asyncio.create_task(self._read())
        try:
            await asyncio.wait_for(arrived, timeout)
        except TimeoutError:
            raise TimeoutError(f"no result within {timeout} s") from self._pauses.rejection
        finally:
            self._waiting.pop(message_id, None)
        payload = self._replies.taken(message_id)
        assert payload is not None
        return payload

    async def call(self, payload: bytes, *, timeout: float = 10.0) -> bytes:
        """Sends a task and waits for its result."""
        until = time.monotonic() + timeout
        pauses = Pauses()
        while True:
            try:
                message_id = await self.submit(payload)
                break
            except _redis.RedisError as error:
                pause = pauses.after(error)
                if not is_temporary_rejection(error) or time.monotonic() + pause > until:
                    raise
                await asyncio.sleep(pause)
        return await self.result(message_id, timeout=max(0.0, until - time.monotonic()))

    async def close(self) -> None:
        """Closes the connections. Callers still waiting for a result get a ConnectionError."""
        self._closed = True
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait([self._reader])
        await self._redis.aclose()
        await self._pool.disconnect()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _read(self) -> None:
        """Receives results for all waiting callers, so that a slow or cancelled task does not affect the others."""
        failure: BaseException = ConnectionError("the client was closed")
        try:
            while self._waiting and not self._closed:  # redis-py sometimes swallows a cancellation
                try:
                    found = await self._receive(self.longest_wait)
                    self._pauses.reset()
                except _redis.RedisError as error:  # receiving can be repeated safely
                    if not is_temporary(error):
                        raise
                    await asyncio.sleep(self._pauses.after(error))
                    continue
                for message_id in found:
                    arrived = self._waiting.pop(message_id, None)
                    if arrived is not None and not arrived.done():
                        arrived.set_result(None)
        except Exception as error:  # noqa: BLE001  (any exception is reported to the waiting callers)
            failure = error
        finally:
            for arrived in self._waiting.values():
                if not arrived.done():
                    arrived.set_exception(failure)

    async def _receive(self, wait: float) -> list[int]:
        replies = self._replies
        if replies.keys.queue == "redis_stream":
            reply = await self._redis.xread(
                {replies.results_key: replies._last}, count=1024, block=max(1, int(wait * 1e3))
            )
            found = replies.keep_entries(reply)
            if found:
                with contextlib.suppress(_redis.RedisError):  # the next trim removes these entries as well
                    await self._redis.xtrim(replies.results_key, minid=replies._last, approximate=False)
            return found
        one = await self._redis.brpop([replies.results_key], timeout=wait)
        if one is None:
            return []
        found = replies.keep(one[1])
        with contextlib.suppress(_redis.RedisError):  # results so far are kept; the next command reports the error
            for element in await self._redis.rpop(replies.results_key, 1024) or []:
                found += replies.keep(element)
        return found
