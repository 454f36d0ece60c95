"""The GPU ring: messages go to a kernel that stays on the GPU, and results come back, without a CUDA call for each."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Literal

from . import _core
from .buffers import buffer_of, bytes_of
from .delivery import Courier, LoopBox, ending_error
from .errors import Error, RingClosed
from .kernels import Kernel, device_of
from .views import Answers, Messages, serve_batches

_FOR_EVER = -1.0
_rings: weakref.WeakSet[Ring] = weakref.WeakSet()


class Ring:
    """Messages to a resident kernel, and its results.

    Parameters
    ----------
    work : str, Kernel or callable
        ``"echo"`` (a result is its message), a work function in CUDA C++ (`feedrate.kernel`), or a Python function on
        batches, which the CPU device serves:
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
    park_after, longest_stay : float
        Seconds. A ring that parks and is never idle leaves the GPU every `longest_stay` for a moment (about
        `park_after`), so that calls that wait for the whole device come to an end.

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
        work: str | Kernel | Callable[..., Any] = "echo",
        *,
        message_bytes: int = 64,
        result_bytes: int | None = None,
        lanes: int = 4,
        capacity: int = 1024,
        device: str = "auto",
        idle: Literal["park", "spin", "backoff"] = "park",
        park_after: float = 0.01,
        longest_stay: float = 1.0,
        _by_address: bool = False,
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
        for name, seconds, least in (("park_after", park_after, 1e-6), ("longest_stay", longest_stay, 0.01)):
            if not least <= seconds <= 3600:
                raise ValueError(f"{name}: {seconds!r} is not possible; allowed: seconds from {least} to 3600")
        kind, index = device_of(device)
        self.message_bytes, self.result_bytes, self.idle = message_bytes, result_bytes, idle
        self._work_error: BaseException | None = None
        self._serving: set[int] = set()  # threads that are in the work function now
        served: Any = work
        if isinstance(work, Kernel):
            served = work.cpu if kind == "cpu" and work.cpu and not _by_address else work._on(kind, index, _by_address)
        elif callable(work) and device.startswith("cuda"):
            raise ValueError(f"device: {device!r} is not possible; allowed: 'cpu' or 'auto', for a Python function")
        if callable(served):
            kind, index = "cpu", 0
            # The extension keeps what serves the batches, and that must not keep the ring.
            me = weakref.ref(self)

            def failed(error: BaseException) -> None:
                ring = me()
                if ring is not None:
                    ring._work_error = error

            served = serve_batches(_marked(served, self._serving), message_bytes, result_bytes, failed)
        self._work = work  # arrays that a kernel points to live as long
        self._core = _core.Ring(
            served, kind, index, message_bytes, result_bytes, lanes, capacity, idle, float(park_after),
            float(longest_stay), _by_address,
        )  # fmt: skip
        self._lock = threading.Lock()
        self._courier: Courier | None = None
        self._ended = False  # under the lock
        self._over = threading.Event()
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopBox] = weakref.WeakKeyDictionary()
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
            At most `message_bytes`, contiguous. TypeError for arrays whose bytes are not their values: objects, dates,
            masked ones.
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
        answer = self._core.call(buffer_of(payload), left)
        if type(answer) is bytes:
            return answer
        if answer is None:
            raise TimeoutError(f"no result within {timeout} s")
        raise ending_error(*answer) from self._work_error

    def submit(self, payload: Any, *, block: bool = True, timeout: float | None = None) -> Future[bytes]:
        """Sends a message; its result comes in a future.

        A full ring makes this wait for room, at most `timeout` seconds; with ``block=False`` it raises `TimeoutError`
        at once.
        """
        left = self._gate(_seconds(timeout) if block else 0.0)
        future: Future[bytes] = Future()
        if not self._core.submit(buffer_of(payload), self._couriers(), future, left):
            raise TimeoutError("the ring is full")
        return future

    def acall(self, payload: Any) -> asyncio.Future[bytes]:
        """As `call`, to be awaited. Thousands may wait at once on one loop; where the ring is full, they queue."""
        loop = asyncio.get_running_loop()
        box = self._loops.get(loop)
        if box is None:
            box = self._loops[loop] = LoopBox(self, loop)
        future: asyncio.Future[bytes] = loop.create_future()
        buffer = buffer_of(payload)
        if box.waiting or not self._open.is_set() or not self._core.submit(buffer, box.mailbox, future, 0.0):
            box.queue(bytes_of(buffer), future)
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
                    raise ending_error(fault, ending) from self._work_error
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
                    buffer = buffer_of(following[1])
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
        came = self._core.poll(_count(n), _seconds(timeout))
        if came is None:
            raise TimeoutError(f"no result within {timeout} s")
        answers = Answers(*came, self.result_bytes)
        del came
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
        a result gets `RingClosed`. Twice is harmless. A Python function that serves the ring must return first."""
        if threading.get_ident() in self._serving:
            raise Error("a ring can't be closed in its own work function: it would wait for itself")
        self._open.set()
        with self._lock:  # no courier comes after this
            first, self._ended, courier = not self._ended, True, self._courier
            if first:
                self._over.clear()
        if not first:  # another thread closes it
            if courier is None or not courier.is_this_thread():  # which that one waits for
                self._over.wait()
            return
        well = False
        try:
            _end(self._core, drain, timeout, courier, list(self._loops.items()))
            well = True
        finally:
            self._ended = well  # else it may be tried again
            self._over.set()

    def __enter__(self) -> Ring:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(drain=kind is None)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            if threading.get_ident() in self._serving:  # closing waits for this thread
                what = (self._core, False, 0.0, self._courier, list(self._loops.items()))
                threading.Thread(target=_end, args=what, name="feedrate-end", daemon=True).start()
            else:
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
            if self._ended:
                raise RingClosed("the ring is closed")
            if self._courier is None:
                self._courier = Courier(self._core)
            return self._courier.mailbox


def _end(
    core: _core.Ring,
    drain: bool,
    timeout: float,
    courier: Courier | None,
    loops: list[tuple[asyncio.AbstractEventLoop, LoopBox]],
) -> None:
    """Ends what a ring consists of, and all who deliver its results."""
    core.close(not drain, timeout)
    if courier is not None:
        courier.end()
    for loop, box in loops:
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
