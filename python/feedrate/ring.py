"""The GPU ring: messages go to a kernel that stays on the GPU, and results come back, without a CUDA call for each."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Literal

import numpy as np

from . import _core
from .errors import Error, MessageFailed, RingClosed
from .views import FAULTS, Answers, Messages, serve_batches

_FOR_EVER = -1.0
_rings: weakref.WeakSet[Ring] = weakref.WeakSet()


class Ring:
    """Messages to a resident kernel, and its results.

    Parameters
    ----------
    work : str or callable
        ``"echo"`` (a result is its message), or a Python function on batches, which the CPU device serves:
        ``function(messages, lengths)`` with arrays (n, message_bytes) of uint8 and (n,) of uint32 returns an array of
        n rows, or that and the rows' lengths. An exception fails the batch's messages.
    message_bytes, result_bytes : int
        The most that a message and a result hold; a result's default is the message's.
    lanes : int
        Independent rings, a block of the GPU's grid each.
    capacity : int
        Messages that a lane holds; a power of two.
    device : str
        ``"auto"`` (the GPU, or threads where there is none), ``"cuda"``, ``"cuda:1"``, ``"cpu"``.
    idle : {"park", "spin", "backoff"}
        What the grid does while nothing comes. ``"park"`` leaves the GPU after `park_after` seconds, and is started
        again by the next message; the others keep it, and stand in the way of whoever waits for the whole device.
    park_after : float
        Seconds.

    Raises
    ------
    ValueError
        For arguments that cannot be.
    feedrate.Error
        When the device or its memory can't be had.

    Notes
    -----
    All methods may be called from any thread, but `reserve` by one at a time, and `poll` by one at a time. A ring
    belongs to the process that made it: used after a fork, its methods raise. An interpreter that ends closes the rings
    that are still open; what is in flight then is lost.
    """

    def __init__(
        self,
        work: str | Callable[..., Any] = "echo",
        *,
        message_bytes: int = 64,
        result_bytes: int | None = None,
        lanes: int = 4,
        capacity: int = 1024,
        device: str = "auto",
        idle: Literal["park", "spin", "backoff"] = "park",
        park_after: float = 0.01,
    ) -> None:
        result_bytes = message_bytes if result_bytes is None else result_bytes
        for name, value, most in (
            ("message_bytes", message_bytes, 2**30),
            ("result_bytes", result_bytes, 2**30),
            ("lanes", lanes, 1024),
            ("capacity", capacity, 2**24),
        ):
            if not isinstance(value, int) or not 1 <= value <= most:
                raise ValueError(f"{name}: {value!r} is not possible; allowed: whole numbers from 1 to {most}")
        if idle not in ("park", "spin", "backoff"):
            raise ValueError(f"idle: {idle!r} is not possible; allowed: 'park', 'spin', 'backoff'")
        if not 1e-6 <= park_after <= 3600:
            raise ValueError(f"park_after: {park_after!r} is not possible; allowed: seconds from 1e-6 to 3600")
        kind, index = _device(device)
        self.message_bytes, self.result_bytes, self.idle = message_bytes, result_bytes, idle
        self._work_error: BaseException | None = None
        self._serving: set[int] = set()  # threads that are in the work function now
        if callable(work):
            if kind == "cuda":
                raise ValueError(f"device: {device!r} is not possible; allowed: 'cpu' or 'auto', for a Python function")
            # The extension keeps what serves the batches, and that must not keep the ring.
            me = weakref.ref(self)

            def failed(error: BaseException) -> None:
                ring = me()
                if ring is not None:
                    ring._work_error = error

            work = serve_batches(_marked(work, self._serving), message_bytes, result_bytes, failed)
        self._core = _core.Ring(
            work, kind, index, message_bytes, result_bytes, lanes, capacity, idle, float(park_after)
        )
        self._lock = threading.Lock()
        self._courier: _Courier | None = None
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopBox] = weakref.WeakKeyDictionary()
        self._open = threading.Event()  # not while parked() holds it
        self._open.set()
        self._parker: int | None = None
        _rings.add(self)

    @property
    def device(self) -> str:
        """``"cuda"`` or ``"cpu"``."""
        return self._core.device

    @property
    def device_name(self) -> str:
        """The GPU's or the CPU's own name."""
        return self._core.device_name

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._core.closed

    # --- one message at a time ------------------------------------------------------------------------------------

    def call(self, payload: Any, *, timeout: float | None = None) -> bytes:
        """Sends a message and waits for its result.

        Parameters
        ----------
        payload : bytes-like, or a host array with DLPack
            At most `message_bytes`, contiguous.
        timeout : float, optional
            Seconds; None waits for ever.

        Returns
        -------
        bytes

        Raises
        ------
        MessageFailed
            The work did not take this message.
        TimeoutError
            The result has not come in time; it is dropped when it comes.
        """
        left = self._gate(_seconds(timeout))
        answer = self._core.call(_buffer(payload), left)
        if type(answer) is bytes:
            return answer
        if answer is None:
            raise TimeoutError(f"no result within {timeout} s")
        raise self._error(*answer) from self._work_error

    def submit(self, payload: Any, *, block: bool = True, timeout: float | None = None) -> Future[bytes]:
        """Sends a message; its result comes in a future.

        A full ring makes this wait for room, at most `timeout` seconds; with ``block=False`` it raises `TimeoutError`
        at once.
        """
        left = self._gate(_seconds(timeout) if block else 0.0)
        future: Future[bytes] = Future()
        if not self._core.submit(_buffer(payload), self._couriers(), future, left):
            raise TimeoutError("the ring is full")
        return future

    def acall(self, payload: Any) -> asyncio.Future[bytes]:
        """As `call`, to be awaited. Thousands may wait at once on one loop; where the ring is full, they queue."""
        loop = asyncio.get_running_loop()
        box = self._loops.get(loop)
        if box is None:
            box = self._loops[loop] = _LoopBox(self, loop)
        future: asyncio.Future[bytes] = loop.create_future()
        buffer = _buffer(payload)
        if box.waiting or not self._open.is_set() or not self._core.submit(buffer, box.mailbox, future, 0.0):
            box.queue(bytes(buffer), future)
        return future

    def map(self, payloads: Iterable[Any], *, ordered: bool = True, window: int = 1024) -> Iterator[bytes]:
        """Results of many messages, at most `window` of them in flight: it takes no more of `payloads` before results
        are taken from it. In the messages' order, or with ``ordered=False`` as they come. The first failed message
        ends it with its error."""
        if window < 1:
            raise ValueError(f"window: {window} is not possible; allowed: from 1 on")
        mailbox = _core.Mailbox()
        arrived: dict[int, bytes] = {}
        source = enumerate(payloads)
        sent = received = given = 0
        exhausted = False

        def receive(wait: float) -> list[tuple[int, bytes]]:
            nonlocal received
            mailbox.wait(wait)
            found = []
            came = self._core.take(mailbox)
            received += len(came)
            for number, payload, fault, ending in came:
                if payload is None:
                    raise self._error(fault, ending) from self._work_error
                found.append((number, payload))
            return found

        try:
            while not exhausted or given < sent:
                while not exhausted and sent - given < window:
                    following = next(source, None)
                    if following is None:
                        exhausted = True
                        break
                    self._gate()
                    buffer = _buffer(following[1])
                    while not self._core.submit(buffer, mailbox, following[0], 0.0):
                        arrived.update(receive(0.02))
                    sent += 1
                arrived.update(receive(0.0))
                while arrived and (not ordered or given in arrived):
                    result = arrived.pop(given) if ordered else arrived.popitem()[1]
                    given += 1
                    yield result
                if given < sent and not (given in arrived if ordered else arrived):
                    arrived.update(receive(0.1))
        finally:
            # What is still in flight is taken out, so that it does not stay in the mailbox for ever.
            until = time.monotonic() + 5
            while received < sent and not self.closed and time.monotonic() < until:
                with contextlib.suppress(Error):
                    receive(0.02)

    # --- many messages at a time, in place ------------------------------------------------------------------------

    @contextlib.contextmanager
    def reserve(self, n: int, *, timeout: float | None = None) -> Iterator[Messages]:
        """Up to `n` empty messages to be written in place; they are sent at the end of the block.

        Waits for room for at least one. An exception in the block sends none. The views must not be used after it.

        Yields
        ------
        Messages
            ``payload`` (messages, message_bytes) of uint8, ``length``, ``id``, ``count``.
        """
        left = self._gate(_seconds(timeout))
        slots = self._core.reserve(_count(n), left)
        if slots is None:
            raise TimeoutError(f"no room within {timeout} s")
        messages = Messages(slots, self.message_bytes)
        del slots
        sent = 0
        try:
            yield messages
            messages._valid()
            sent = messages.count
        finally:
            messages._end()
            if not self._core.closed:
                self._core.publish(sent)

    @contextlib.contextmanager
    def poll(self, n: int, *, timeout: float | None = None) -> Iterator[Answers]:
        """Up to `n` results, to be read in place; their slots are free again at the end of the block.

        Waits for at least one. Within a lane results come in order, and ids tell which they are.

        Yields
        ------
        Answers
            ``payload`` (results, result_bytes) of uint8, ``length``, ``status``, ``id``.
        """
        slots = self._core.poll(_count(n), _seconds(timeout))
        if slots is None:
            raise TimeoutError(f"no result within {timeout} s")
        answers = Answers(slots, self.result_bytes)
        del slots
        try:
            yield answers
        finally:
            answers._end()
            if not self._core.closed:
                self._core.release()

    # --- its life -------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def parked(self, *, timeout: float = 10.0) -> Iterator[None]:
        """Keeps the ring off the GPU during the block, for calls that wait for the whole device: cudaFree,
        cudaDeviceSynchronize, the first launch of a kernel that is loaded lazily. Messages of other threads wait."""
        if self.idle != "park":
            raise Error(f"this ring was made with idle={self.idle!r}, and never leaves the GPU")
        with self._lock:
            if self._parker is not None:
                raise Error("parked() is in use already")
            self._parker = threading.get_ident()
            self._open.clear()
        try:
            self._core.pause(True)  # who has passed the gate already finds no room
            until = time.monotonic() + timeout
            while not self._core.parked():
                if time.monotonic() > until:
                    raise TimeoutError(f"the ring is still busy after {timeout} s: {self._core.in_flight()} in flight")
                time.sleep(0.0005)
            yield
        finally:
            self._core.pause(False)
            with self._lock:
                self._open.set()
                self._parker = None

    def stats(self) -> dict[str, int]:
        """Messages `sent` and `answered`, `parked_lanes`, and `restarts` of parked lanes."""
        return self._core.stats()

    def close(self, *, drain: bool = True, timeout: float = 10.0) -> None:
        """Ends the ring: with `drain` after what was sent has come back, at most `timeout` seconds. Who still waits for
        a result gets `RingClosed`. Twice is harmless."""
        if self._core.closed:
            return
        if threading.get_ident() in self._serving:
            raise Error("a ring can't be closed in its own work function: it would wait for itself")
        self._open.set()
        self._core.close(not drain, timeout)
        with self._lock:
            courier = self._courier
        if courier is not None:
            courier.end()
        for loop, box in list(self._loops.items()):
            if loop.is_closed():
                continue
            try:
                here = asyncio.get_running_loop() is loop
            except RuntimeError:
                here = False
            if here:
                box.end()
            else:
                with contextlib.suppress(RuntimeError):  # closed meanwhile
                    loop.call_soon_threadsafe(box.end)

    def __enter__(self) -> Ring:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(drain=kind is None)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close(drain=False)

    def __repr__(self) -> str:
        state = "closed" if self.closed else self.device
        return f"<feedrate.Ring of {self.message_bytes} B messages, {state}>"

    def _gate(self, seconds: float = _FOR_EVER) -> float:
        """Waits while another thread has the ring parked; returns what is left of `seconds`, negative being for ever."""
        if self._open.is_set():
            return seconds
        if self._parker == threading.get_ident():
            raise Error("a message inside this thread's own parked() block would wait for ever")
        begin = time.monotonic()
        if not self._open.wait(None if seconds < 0 else seconds):
            raise TimeoutError(f"the ring stayed parked for {seconds} s")
        return seconds if seconds < 0 else max(0.0, seconds - (time.monotonic() - begin))

    def _couriers(self) -> _core.Mailbox:
        with self._lock:
            if self.closed:
                raise RingClosed("the ring is closed")
            if self._courier is None:
                self._courier = _Courier(self._core, self._error)
            return self._courier.mailbox

    @staticmethod
    def _error(fault: int, ending: int) -> Error:
        if ending == 1:
            return MessageFailed(FAULTS[fault] if fault < len(FAULTS) else str(fault))
        return RingClosed("the ring was closed before the result came" if ending == 2 else "the ring broke")


class _Courier:
    """A thread that puts results into the futures of `submit`."""

    def __init__(self, core: _core.Ring, error: Callable[[int, int], Error]) -> None:
        self.mailbox = _core.Mailbox()
        self._core, self._error, self._ending = core, error, threading.Event()
        self._thread = threading.Thread(target=self._run, name="feedrate-courier", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            last = self._ending.is_set()
            self.mailbox.wait(0.0 if last else 0.1)
            for future, payload, fault, ending in self._core.take(self.mailbox):
                if not future.set_running_or_notify_cancel():
                    continue
                if payload is None:
                    future.set_exception(self._error(fault, ending))
                else:
                    future.set_result(payload)
            if last:
                return

    def end(self) -> None:
        self._ending.set()
        if self._thread is not threading.current_thread():
            self._thread.join()


class _LoopBox:
    """What one event loop expects from a ring."""

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
                error: Error = Ring._error(fault, ending)
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
                except Exception as error:  # noqa: BLE001  (the next in the queue must not hear of it)
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


def _buffer(payload: Any) -> Any:
    """The payload as something with the buffer protocol, contiguous."""
    if type(payload) is bytes:
        return payload
    if isinstance(payload, str):
        raise TypeError("payload: a str is not possible; allowed: bytes, or an array (text.encode() makes bytes)")
    try:
        view = memoryview(payload)
    except (TypeError, ValueError, BufferError):
        if not hasattr(payload, "__dlpack__"):
            raise TypeError(
                f"payload: {type(payload).__name__} is not possible; allowed: the buffer protocol, or DLPack on the host"
            ) from None
        try:
            payload = np.from_dlpack(payload)
        except (BufferError, RuntimeError, TypeError) as error:
            raise TypeError(f"payload: a {type(payload).__name__} that is not on the host ({error})") from None
        view = memoryview(payload)
    if not view.c_contiguous:
        raise ValueError(
            f"payload: an array of the shape {view.shape} and the strides {view.strides} is not possible; allowed: "
            "contiguous ones (numpy.ascontiguousarray makes one)"
        )
    return payload


def _device(device: str) -> tuple[str, int]:
    kind, colon, index = device.partition(":")
    if kind not in ("auto", "cuda", "cpu") or (colon and (kind != "cuda" or not index.isdecimal())):
        raise ValueError(f"device: {device!r} is not possible; allowed: 'auto', 'cuda', 'cuda:N', 'cpu'")
    return kind, int(index) if colon else 0


def _marked(function: Callable[..., Any], serving: set[int]) -> Callable[..., Any]:
    """The function, during which its thread is one of `serving`."""

    def marked(*arguments: Any) -> Any:
        me = threading.get_ident()
        serving.add(me)
        try:
            return function(*arguments)
        finally:
            serving.discard(me)

    return marked


def _seconds(timeout: float | None) -> float:
    if timeout is None:
        return _FOR_EVER
    if not timeout >= 0:
        raise ValueError(f"timeout: {timeout!r} is not possible; allowed: seconds from 0 on, or None")
    return float(timeout)


def _count(n: int) -> int:
    if not isinstance(n, int) or n < 1:
        raise ValueError(f"n: {n!r} is not possible; allowed: whole numbers from 1 on")
    return n


@atexit.register
def _close_all() -> None:
    for ring in list(_rings):
        with contextlib.suppress(Exception):
            ring.close(drain=False)
    _core.end()
