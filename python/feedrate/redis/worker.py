"""A worker that serves the tasks of a queue with a Python function on batches."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import redis as _redis

from ..buffers import bytes_of
from ..errors import Error
from ..views import FAILED, FAULTS
from .server import (
    Pauses, entries_of, error_code, is_temporary, is_temporary_rejection, longest_wait, pool_of, server_message,
)  # fmt: skip
from .wire import FIELD, GROUP, HEADER, SEQUENCE_BITS, Keys, checksum, decode

SERVED = ("redis_list", "redis_stream")
RESULTS_EXPIRE_MS = 3600 * 1000
LONGEST_WAIT = 0.2  # seconds that a worker waits for tasks before it checks whether to stop
_SCAN_BEGIN = b"0-0"  # cursor of XAUTOCLAIM before and after a scan
_log = logging.getLogger("feedrate.redis")


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
    """Serves the tasks of a queue with a Python function on batches, until SIGTERM, SIGINT, or `stop` is set.

    If the server is unreachable or rejects commands temporarily (during a failover, or when its memory is full), the
    worker tries again with increasing pauses, keeps its results until they are stored, and logs a warning per attempt.
    Results may be delivered twice if the connection breaks while they are stored.

    Parameters
    ----------
    queue : {"redis_list", "redis_stream"}
        ``redis_list`` delivers at most once: tasks taken by a worker that dies are lost. ``redis_stream`` delivers at
        least once: another worker claims the tasks of a dead worker after `lease` seconds, and results may be delivered
        twice. All workers of a queue, in Python and in C++ (``--lease``), should use the same lease, because each
        worker applies its own lease to the others. Only the C++ worker supports the other queues.
    function : callable
        Takes a list of payloads and returns one result per payload, each bytes-like or an array. A result that is an
        exception, or an array whose bytes have no meaning in another process (objects, dates, masked arrays), fails
        its task. An exception raised by the function fails the entire batch. The fault is ``refused`` in these cases.
    url : str
        URL of the server, as for `Client`.
    prefix : str
        Prefix of the queue's keys.
    batch : int
        Maximum number of elements per call; an element may contain several tasks.
    lease : float
        Lease timeout in seconds; must be longer than the processing time of a batch.
    stop : threading.Event, optional
        Stops the worker when set. Without it, a worker on the main thread stops on SIGTERM and SIGINT.

    Returns
    -------
    int
        Number of tasks answered.
    """
    if queue not in SERVED:
        raise ValueError(f"queue: invalid value {queue!r}; allowed: {', '.join(SERVED)}")
    if batch < 1:
        raise ValueError(f"batch: invalid value {batch}; allowed: at least 1")
    if not 0 < lease <= 1e6:
        raise ValueError(f"lease: invalid value {lease}; allowed: seconds above 0, at most 1e6")
    pool = pool_of(url, _redis.ConnectionPool)
    client = _redis.Redis(connection_pool=pool)
    keys = Keys(prefix, queue)
    stopping = threading.Event() if stop is None else stop
    former = []
    if stop is None and threading.current_thread() is threading.main_thread():
        former = [(one, signal.signal(one, lambda *_: stopping.set())) for one in (signal.SIGTERM, signal.SIGINT)]
    kind: type[_List] | type[_Stream] = _List if queue == "redis_list" else _Stream
    source: _List | _Stream | None = None
    replies: _Results | None = None  # results that are not stored on the server yet
    pauses = Pauses()
    answered, allowed = 0, False
    try:
        while replies is not None or not stopping.is_set():
            try:
                if source is None:
                    source = kind(client, keys, batch, lease)
                if replies is None:
                    taken, allowed = source.take(), True
                    replies = _process(taken, function)
                if replies is not None:
                    answered += replies.store(client, keys, source)
                    replies = None
                pauses.reset()
            except _redis.RedisError as error:
                if error_code(error) in ("NOGROUP", "UNBLOCKED"):
                    source = None  # the stream was deleted; _Stream creates it and its group again
                    continue
                # Permissions that the worker had before may be restored.
                permission_lost = allowed and isinstance(error, _redis.exceptions.NoPermissionError)
                if not is_temporary(error) and not permission_lost:
                    raise
                if stopping.is_set():
                    if replies is not None:
                        text = "%s: %s; %d results were not stored"
                        _log.warning(text, keys.tasks, server_message(error), replies.count)
                    break
                pause = pauses.after(error)
                _log.warning("%s: %s; next attempt in %.2g s", keys.tasks, server_message(error), pause)
                stopping.wait(pause)
        if source is not None:
            with contextlib.suppress(_redis.RedisError):
                source.leave()
    finally:
        for one, handler in former:
            signal.signal(one, handler)
        client.close()
        pool.disconnect()
    return answered


class _List:
    """Elements of a list, which are removed from the server when they are taken."""

    def __init__(self, client: Any, keys: Keys, batch: int, lease: float) -> None:
        self._client, self._keys, self._batch = client, keys, batch
        self._wait = longest_wait(client.connection_pool, LONGEST_WAIT)

    def take(self) -> list[tuple[str, bytes]]:
        first = self._client.brpop([self._keys.tasks], timeout=self._wait)
        if first is None:
            return []
        elements = [first[1]]
        if self._batch > 1:
            # After an error, the first element is still served; the next command reports the error.
            with contextlib.suppress(_redis.RedisError):
                elements += self._client.rpop(self._keys.tasks, self._batch - 1) or []
        return [("", element) for element in elements]

    def done(self, pipeline: Any, entry_ids: Sequence[str]) -> None:
        pass

    def push(self, pipeline: Any, key: str, element: bytes) -> None:
        pipeline.lpush(key, element)

    def leave(self) -> None:
        pass


class _Stream:
    """Entries of a stream, read through its consumer group and acknowledged after the results are stored."""

    def __init__(self, client: Any, keys: Keys, batch: int, lease: float) -> None:
        self._client, self._keys, self._batch, self._lease_ms = client, keys, batch, int(lease * 1e3)
        self._consumer = f"python-{ascii(os.uname().nodename)[1:-1]}-{os.getpid()}-{secrets.token_hex(4)}"
        self._next_scan = 0.0
        self._cursor = _SCAN_BEGIN  # cursor of the scan for entries held by dead consumers
        self._wait_ms = max(1, int(longest_wait(client.connection_pool, LONGEST_WAIT) * 1e3))
        try:
            client.xgroup_create(keys.tasks, GROUP, id="0", mkstream=True)
        except _redis.ResponseError as error:
            if is_temporary_rejection(error):
                raise
            if "BUSYGROUP" not in str(error):
                raise Error(f"creating the consumer group: {error}") from error

    def take(self) -> list[tuple[str, bytes]]:
        entries = self._claim()
        if not entries:
            wait_ms = self._wait_ms if self._cursor == _SCAN_BEGIN else None  # do not block during a scan
            found = self._client.xreadgroup(
                GROUP, self._consumer, {self._keys.tasks: ">"}, count=self._batch, block=wait_ms
            )
            entries = entries_of(found)
        return [(entry_id.decode(), fields.get(FIELD.encode(), b"")) for entry_id, fields in entries if fields]

    def _claim(self) -> list[Any]:
        """Claims entries of dead consumers. Each call continues the scan; a new scan starts half a lease later."""
        if self._cursor == _SCAN_BEGIN:
            if time.monotonic() < self._next_scan:
                return []
            self._next_scan = time.monotonic() + self._lease_ms / 2e3
        entries: list[Any]
        self._cursor, entries = self._client.xautoclaim(
            self._keys.tasks, GROUP, self._consumer, self._lease_ms, start_id=self._cursor, count=self._batch
        )[:2]
        return entries

    def done(self, pipeline: Any, entry_ids: Sequence[str]) -> None:
        pipeline.xack(self._keys.tasks, GROUP, *entry_ids)
        pipeline.xdel(self._keys.tasks, *entry_ids)

    def push(self, pipeline: Any, key: str, element: bytes) -> None:
        pipeline.xadd(key, {FIELD: element})

    def leave(self) -> None:
        """Deletes this consumer, which the group would keep forever, unless it still holds entries.

        Deleting a consumer would delete its entries from the group.
        """
        if not self._client.xpending_range(self._keys.tasks, GROUP, "-", "+", 1, self._consumer):
            self._client.xgroup_delconsumer(self._keys.tasks, GROUP, self._consumer)


class _Results:
    """Results of some elements, which must be stored before the elements are acknowledged."""

    def __init__(self, entry_ids: Sequence[str]) -> None:
        self._entry_ids = entry_ids
        self._by_list: dict[int, list[bytes]] = {}
        self.count = 0

    def add(self, message_id: int, length: int, word: int = 0, payload: bytes = b"") -> None:
        padded = payload + bytes(-len(payload) % 16)
        self._by_list.setdefault(message_id >> SEQUENCE_BITS, []).append(HEADER.pack(message_id, length, word) + padded)
        self.count += 1

    def fail(self, message_id: int, fault: str) -> None:
        self.add(message_id, FAILED | FAULTS.index(fault))

    def store(self, client: Any, keys: Keys, source: _List | _Stream) -> int:
        """Stores all results in one transaction. If the server rejects it, nothing is stored, and it can be retried."""
        pipeline = client.pipeline(transaction=True)
        for reply_list, messages in self._by_list.items():
            key = keys.results(reply_list)
            source.push(pipeline, key, b"".join(messages))
            pipeline.pexpire(key, RESULTS_EXPIRE_MS)
        source.done(pipeline, self._entry_ids)
        pipeline.execute()
        return self.count


def _process(
    elements: Sequence[tuple[str, bytes]], function: Callable[[list[bytes]], Sequence[Any]]
) -> _Results | None:
    """Processes the tasks of the elements."""
    if not elements:
        return None
    replies = _Results([entry_id for entry_id, _ in elements])
    tasks: list[tuple[int, bytes]] = []
    now_ms = time.time() * 1e3
    for _, element in elements:
        try:
            for message_id, length, payload, deadline in decode(element, tasks=True):
                if length & FAILED:
                    replies.add(message_id, length)
                elif deadline and deadline < now_ms:
                    replies.fail(message_id, "expired")
                else:
                    tasks.append((message_id, payload))
        except ValueError:
            continue  # the start of the next message is unknown, so the rest of the element is dropped
    results: Sequence[Any] = []
    if tasks:
        try:
            results = function([payload for _, payload in tasks])
            if len(results) != len(tasks):
                raise ValueError(f"the function returned {len(results)} results for {len(tasks)} tasks")
        except Exception as error:  # noqa: BLE001  (the tasks of the batch fail, and the worker continues)
            results = [error] * len(tasks)
    for (message_id, _), result in zip(tasks, results):
        if isinstance(result, Exception):
            replies.fail(message_id, "refused")
            continue
        try:
            payload = bytes_of(result, "result")
        except Exception as error:  # noqa: BLE001  (this task fails, and the worker continues)
            _warn_once(f"a task failed: {error}")
            replies.fail(message_id, "refused")
        else:
            replies.add(message_id, len(payload), checksum(payload), payload)
    return replies


@lru_cache(maxsize=256)
def _warn_once(text: str) -> None:
    _log.warning("%s", text)
