"""The API of the GPUQueue project, on `feedrate.Ring`: a drop-in whose work is an echo. New programs use the ring."""

from __future__ import annotations

import enum
import threading
import time
from collections import deque
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import feedrate
from feedrate import _core
from feedrate.buffers import buffer_of


class QueueStatus(enum.IntEnum):
    """How a call ended."""

    OK = 0
    ERR_FULL = 1
    ERR_TIMEOUT = 2
    ERR_SHUTDOWN = 3
    ERR_NOT_READY = 4
    ERR_NOT_FOUND = 5
    ERR_INVALID = 6
    ERR_DEVICE = 7


@dataclass
class QueueConfig:
    """`capacity`: messages in flight, a power of two. `slot_bytes`: the most payload of one."""

    capacity: int = 1024
    slot_bytes: int = 512

    def is_valid(self) -> bool:
        """Whether a queue can be made of it."""
        return self.capacity > 0 and self.slot_bytes > 0 and self.capacity & (self.capacity - 1) == 0


@dataclass
class QueueStats:
    """Counts since the queue was made; `queue_depth` is how many are not processed yet."""

    enqueue_count: int = 0
    dequeue_count: int = 0
    processed_count: int = 0
    queue_depth: int = 0


class QueueError(RuntimeError):
    """A call that could not be; `status` tells why."""

    def __init__(self, status: QueueStatus, said: str) -> None:
        super().__init__(said)
        self.status = status


_state = {"device": "auto"}


class GpuQueue:
    """A queue that runs from the start, until `shutdown` or the end of its ``with`` block."""

    def __init__(self, config: QueueConfig | None = None) -> None:
        self.config = config if config is not None else QueueConfig()
        if not self.config.is_valid():
            raise ValueError(f"{self.config!r} is not possible; allowed: a capacity of a power of two, both above 0")
        self._ring = feedrate.Ring(
            "echo",
            message_bytes=self.config.slot_bytes,
            capacity=max(self.config.capacity, 16),
            lanes=1,
            device=_state["device"],
        )
        self._mailbox = _core.Mailbox(quiet=True)
        self._lock = threading.Lock()
        self._results: dict[int, bytes] = {}
        self._completed: deque[int] = deque()
        self._sent = self._processed = self._dequeued = 0

    def enqueue(self, buffer: Any) -> int:
        """Sends a message and returns its id, from 1 on; waits while the queue is full. ValueError when it is too large
        or the queue was shut down."""
        while True:
            try:
                return self.enqueue_nowait(buffer)
            except QueueError as error:
                if error.status is not QueueStatus.ERR_FULL:
                    raise
            time.sleep(0)

    def enqueue_nowait(self, buffer: Any) -> int:
        """As `enqueue`; raises QueueError (ERR_FULL) at once where the queue is full."""
        if self._ring.closed:
            raise ValueError("the queue was shut down")
        with self._lock:
            if self._sent - self._processed >= self.config.capacity:
                self._receive()
            number = self._sent + 1
            full = self._sent - self._processed >= self.config.capacity
            if full or not self._ring._core.submit(buffer_of(buffer, "buffer"), self._mailbox, number, 0.0):
                raise QueueError(QueueStatus.ERR_FULL, f"{self.config.capacity} messages are in flight")
            self._sent = number
            return number

    def try_dequeue_result(self, message_id: int) -> tuple[bool, bytes]:
        """``(True, payload)`` once, when the message was processed; else ``(False, b"")``. Never waits."""
        with self._lock:
            payload = self._results.pop(message_id, None)
            if payload is None:
                self._receive()
                payload = self._results.pop(message_id, None)
            if payload is None:
                return False, b""
            self._dequeued += 1
            return True, payload

    def poll_completions(self, n: int) -> list[int]:
        """Ids of at most `n` messages that were processed, each once, the earliest first."""
        with self._lock:
            self._receive()
            return [self._completed.popleft() for _ in range(min(n, len(self._completed)))]

    def stats(self) -> QueueStats:
        """What was done so far."""
        with self._lock:
            self._receive()
            return QueueStats(self._sent, self._dequeued, self._processed, self._sent - self._processed)

    def depth(self) -> int:
        """Messages that are not processed yet."""
        return self.stats().queue_depth

    def is_running(self) -> bool:
        """Until `shutdown`."""
        return not self._ring.closed

    def shutdown(self) -> None:
        """Ends the queue after what was sent; results that came can still be taken. Twice is harmless."""
        self._ring.close()
        with self._lock:
            self._receive()

    def __enter__(self) -> GpuQueue:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    def _receive(self) -> None:
        for number, payload, _, ending in self._ring._core.take(self._mailbox):
            self._processed += 1
            if payload is not None and ending == 0:
                self._results[number] = payload
                self._completed.append(number)


def is_available() -> bool:
    """Whether there is a GPU; without one the queue is served by threads."""
    return bool(feedrate.devices()[1:])


def init(device: int = 0) -> None:
    """Chooses the GPU of the queues that are made from now on."""
    count = len(feedrate.devices()) - 1
    if device != 0 and device >= count:
        raise ValueError(f"device: {device} is not possible; allowed: 0 to {max(count - 1, 0)}")
    _state["device"] = f"cuda:{device}" if count else "auto"


def shutdown() -> None:
    """Takes back `init`."""
    _state["device"] = "auto"


def core_version() -> str:
    """Of the extension: version and revision."""
    return f"{feedrate.__version__} ({feedrate.__revision__})"


def version() -> str:
    """Of the package."""
    return feedrate.__version__


__all__ = [
    "GpuQueue",
    "QueueConfig",
    "QueueError",
    "QueueStats",
    "QueueStatus",
    "core_version",
    "init",
    "is_available",
    "shutdown",
    "version",
]
