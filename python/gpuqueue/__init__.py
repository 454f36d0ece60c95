"""The API of the GPUQueue project, implemented with `feedrate.Ring`. The queue's work is an echo.

New programs should use the ring itself.
"""

from __future__ import annotations

import enum
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import feedrate
from feedrate import _core
from feedrate.buffers import buffer_of


class QueueStatus(enum.IntEnum):
    """Result of a call."""

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
    """Configuration of a queue.

    Attributes
    ----------
    capacity : int
        Maximum number of messages in flight; a power of two.
    slot_bytes : int
        Maximum payload of a message in bytes.
    """

    capacity: int = 1024
    slot_bytes: int = 512

    def is_valid(self) -> bool:
        """Returns whether the configuration is valid."""
        return self.capacity > 0 and self.slot_bytes > 0 and self.capacity & (self.capacity - 1) == 0


@dataclass
class QueueStats:
    """Counts since the queue was created. `queue_depth` is the number of messages not processed yet."""

    enqueue_count: int = 0
    dequeue_count: int = 0
    processed_count: int = 0
    queue_depth: int = 0


class QueueError(RuntimeError):
    """A call failed. `status` is the reason."""

    def __init__(self, status: QueueStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


_state = {"device": "auto"}


class GpuQueue:
    """A queue that runs from its creation until `shutdown` or the end of its ``with`` block."""

    def __init__(self, config: QueueConfig | None = None) -> None:
        self.config = config if config is not None else QueueConfig()
        if not self.config.is_valid():
            raise ValueError(
                f"config: invalid value {self.config!r}; allowed: a power of two for capacity, and both values above 0"
            )
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
        """Sends a message and returns its id; ids start at 1. Waits while the queue is full.

        Raises ValueError if the message is too large or the queue was shut down.
        """
        while True:
            try:
                return self.enqueue_nowait(buffer)
            except QueueError as error:
                if error.status is not QueueStatus.ERR_FULL:
                    raise
            time.sleep(0)

    def enqueue_nowait(self, buffer: Any) -> int:
        """Sends a message as `enqueue` does, but raises QueueError (ERR_FULL) at once if the queue is full."""
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
        """Returns ``(True, payload)`` once, after the message was processed, else ``(False, b"")``. Never waits."""
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
        """Returns the ids of up to `n` processed messages, oldest first. Each id is returned only once."""
        with self._lock:
            self._receive()
            return [self._completed.popleft() for _ in range(min(n, len(self._completed)))]

    def stats(self) -> QueueStats:
        """Returns the counts since the queue was created."""
        with self._lock:
            self._receive()
            return QueueStats(self._sent, self._dequeued, self._processed, self._sent - self._processed)

    def depth(self) -> int:
        """Returns the number of messages not processed yet."""
        return self.stats().queue_depth

    def is_running(self) -> bool:
        """Returns True until `shutdown`."""
        return not self._ring.closed

    def shutdown(self) -> None:
        """Closes the queue after the messages already sent are processed.

        Results that have arrived can still be dequeued. Calling it twice is harmless.
        """
        self._ring.close()
        with self._lock:
            self._receive()

    def __enter__(self) -> GpuQueue:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def _receive(self) -> None:
        for number, payload, _, ending in self._ring._core.take(self._mailbox):
            self._processed += 1
            if payload is not None and ending == 0:
                self._results[number] = payload
                self._completed.append(number)


def is_available() -> bool:
    """Returns whether a GPU is available. Without a GPU, CPU threads serve the queue."""
    return bool(feedrate.devices()[1:])


def init(device: int = 0) -> None:
    """Selects the GPU for queues created after this call."""
    count = len(feedrate.devices()) - 1
    if device != 0 and device >= count:
        raise ValueError(f"device: invalid value {device}; allowed: 0 to {max(count - 1, 0)}")
    _state["device"] = f"cuda:{device}" if count else "auto"


def shutdown() -> None:
    """Reverts `init`."""
    _state["device"] = "auto"


def core_version() -> str:
    """Returns the version and revision of the extension."""
    return f"{feedrate.__version__} ({feedrate.__revision__})"


def version() -> str:
    """Returns the version of the package."""
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
