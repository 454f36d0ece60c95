"""Delivers results to callers that do not block in a call: futures of threads and of event loops."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING

from . import _core
from .errors import Error, MessageFailed, RingClosed
from .views import FAULTS

if TYPE_CHECKING:
    from .ring import Ring


def ending_error(fault: int, ending: int) -> Error:
    """Returns the exception that a message's sender gets instead of a result."""
    if ending == 1:
        return MessageFailed(FAULTS[fault] if fault < len(FAULTS) else str(fault))
    return RingClosed("the ring was closed before the result arrived" if ending == 2 else "the ring failed")


class ResultThread:
    """A thread that sets the results of the futures that `submit` returned."""

    def __init__(self, core: _core.Ring) -> None:
        self.mailbox = _core.Mailbox()
        self._core, self._ending = core, threading.Event()
        self._thread = threading.Thread(target=self._run, name="feedrate-results", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            last = self._ending.is_set()
            self.mailbox.wait(0.0 if last else 0.1)
            for future, payload, fault, ending in self._core.take(self.mailbox):
                if not future.set_running_or_notify_cancel():
                    continue
                if payload is None:
                    future.set_exception(ending_error(fault, ending))
                else:
                    future.set_result(payload)
            if last:
                return

    def end(self) -> None:
        self._ending.set()
        if not self.is_this_thread():
            self._thread.join()

    def is_this_thread(self) -> bool:
        return self._thread is threading.current_thread()


class LoopMessages:
    """Messages of one event loop that are in flight or wait for room in the ring."""

    def __init__(self, ring: Ring, loop: asyncio.AbstractEventLoop) -> None:
        self.mailbox = _core.Mailbox()
        self.waiting: deque[tuple[bytes, asyncio.Future[bytes]]] = deque()
        self._ring, self._loop = weakref.ref(ring), weakref.ref(loop)
        self._core = ring._core
        self._retry: asyncio.TimerHandle | None = None
        loop.add_reader(self.mailbox.fileno(), self._deliver)

    def queue(self, payload: bytes, future: asyncio.Future[bytes]) -> None:
        self.waiting.append((payload, future))
        self._later()

    def _later(self) -> None:
        loop = self._loop()
        if self._retry is None and loop is not None:
            self._retry = loop.call_later(0.001, self._send)

    def _deliver(self) -> None:
        ring = self._ring()
        for future, payload, fault, ending in self._core.take(self.mailbox):
            if future.done():
                continue
            if payload is not None:
                future.set_result(payload)
            else:
                error: Error = ending_error(fault, ending)
                error.__cause__ = ring._work_error if ring else None
                future.set_exception(error)
        if self.waiting:
            self._send()

    def _send(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        ring = self._ring()
        while self.waiting and ring is not None and ring._open.is_set():
            payload, future = self.waiting[0]
            if not future.done():
                try:
                    if not self._core.submit(payload, self.mailbox, future, 0.0):
                        break
                except Exception as error:  # noqa: BLE001  (must not affect the next message in the queue)
                    future.set_exception(RingClosed(str(error)) if isinstance(error, Error) else error)
            self.waiting.popleft()
        if self.waiting:
            self._later()

    def end(self) -> None:
        loop = self._loop()
        if loop is None or loop.is_closed():
            return
        self._deliver()
        while self.waiting:
            _, future = self.waiting.popleft()
            if not future.done():
                future.set_exception(RingClosed("the ring was closed before the message was sent"))
        loop.remove_reader(self.mailbox.fileno())
