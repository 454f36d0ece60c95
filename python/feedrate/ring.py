"""The GPU ring: messages go to a persistent kernel and results come back, with no CUDA call per message."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, Literal

from . import _core
from .buffers import buffer_of, bytes_of
from .delivery import LoopMessages, ResultThread, ending_error
from .errors import Error, RingClosed
from .kernels import Kernel, device_of
from .views import Answers, Messages, serve_batches

_FOREVER = -1.0
_rings: weakref.WeakSet[Ring] = weakref.WeakSet()


class Ring:
    """Sends messages to a resident kernel and returns its results.

    Parameters
    ----------
    work : str, Kernel or callable
        ``"echo"`` (each result equals its message), a work function in CUDA C++ (`feedrate.kernel`), or a Python
        function on batches, which runs on the CPU device. The Python function is called as
        ``function(messages, lengths)`` with arrays (n, message_bytes) of uint8 and (n,) of uint32. It returns an array
        of n rows, or a tuple of that array and the lengths of its rows. An exception fails all messages of the batch.
    message_bytes, result_bytes : int
        Maximum size of a message and of a result, in bytes. `result_bytes` defaults to `message_bytes`.
    lanes : int
        Number of independent lanes. Each lane is served by one block of the GPU's grid.
    capacity : int
        Number of messages that a lane holds; a power of two.
    device : str
        ``"auto"`` (the GPU, or CPU threads if there is no GPU), ``"cuda"``, ``"cuda:1"``, ``"cpu"``.
    idle : {"park", "spin", "backoff"}
        Behavior of the grid while no messages arrive. With ``"park"``, the grid leaves the GPU after `park_after`
        seconds, and the next message starts it again. With ``"spin"`` and ``"backoff"``, the grid stays on the GPU and
        blocks all calls that wait for the entire device.
    park_after, longest_stay : float
        Times in seconds. A parking ring that is never idle leaves the GPU every `longest_stay` seconds for about
        `park_after` seconds, so that calls that wait for the entire device can return.

    Raises
    ------
    ValueError
        An argument is invalid.
    feedrate.Error
        The device is not available, or its memory cannot be allocated.

    Notes
    -----
    All methods may be called from any thread, but only one thread at a time may use `reserve`, and only one thread at a
    time may use `poll`. A ring belongs to the process that created it; its methods raise an exception after a fork.
    When the interpreter exits, it closes the rings that are still open, and messages in flight are lost.
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
                raise ValueError(f"{name}: invalid value {value!r}; allowed: integers from 1 to {most}")
        if idle not in ("park", "spin", "backoff"):
            raise ValueError(f"idle: invalid value {idle!r}; allowed: 'park', 'spin', 'backoff'")
        for name, seconds, least in (("park_after", park_after, 1e-6), ("longest_stay", longest_stay, 0.01)):
            if not least <= seconds <= 3600:
                raise ValueError(f"{name}: invalid value {seconds!r}; allowed: {least} to 3600 seconds")
        kind, index = device_of(device)
        self.message_bytes, self.result_bytes, self.idle = message_bytes, result_bytes, idle
        self._work_error: BaseException | None = None
        self._serving: set[int] = set()  # threads that are running the work function
        served: Any = work
        if isinstance(work, Kernel):
            served = work.cpu if kind == "cpu" and work.cpu and not _by_address else work._on(kind, index, _by_address)
        elif callable(work) and device.startswith("cuda"):
            raise ValueError(f"device: invalid value {device!r}; allowed: 'cpu' or 'auto', for a Python function")
        if callable(served):
            kind, index = "cpu", 0
            # The extension holds a reference to the serving function, which therefore must not hold one to the ring.
            me = weakref.ref(self)

            def failed(error: BaseException) -> None:
                ring = me()
                if ring is not None:
                    ring._work_error = error

            served = serve_batches(_marked(served, self._serving), message_bytes, result_bytes, failed)
        self._work = work  # keeps alive the arrays to which a kernel points
        self._core = _core.Ring(
            served, kind, index, message_bytes, result_bytes, lanes, capacity, idle, float(park_after),
            float(longest_stay), _by_address,
        )  # fmt: skip
        self._lock = threading.Lock()
        self._result_thread: ResultThread | None = None
        self._ended = False  # protected by the lock
        self._closing_ended = threading.Event()
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopMessages] = weakref.WeakKeyDictionary()
        self._open = threading.Event()  # cleared during parked()
        self._open.set()
        self._parking_thread: int | None = None
        _rings.add(self)

    @property
    def device(self) -> str:
        """``"cuda"`` or ``"cpu"``."""
        return self._core.device

    @property
    def device_name(self) -> str:
        """Name of the GPU or CPU."""
        return self._core.device_name

    @property
    def closed(self) -> bool:
        """Whether the ring is closed."""
        return self._core.closed

    # --- one message at a time ------------------------------------------------------------------------------------

    def call(self, payload: Any, *, timeout: float | None = None) -> bytes:
        """Sends a message and waits for its result.

        Parameters
        ----------
        payload : bytes-like, or an array in host memory that supports DLPack
            At most `message_bytes` bytes, contiguous.
        timeout : float, optional
            Timeout in seconds; None waits forever.

        Returns
        -------
        bytes

        Raises
        ------
        MessageFailed
            The work rejected this message.
        TimeoutError
            No result arrived before the timeout. A result that arrives later is dropped.
        TypeError
            The payload is an array of objects or dates, or a masked array; its bytes have no meaning outside this
            process.
        ValueError
            The payload is too large or not contiguous.
        """
        left = self._wait_while_parked(_seconds(timeout))
        answer = self._core.call(buffer_of(payload), left)
        if type(answer) is bytes:
            return answer
        if answer is None:
            raise TimeoutError(f"no result within {timeout} s")
        raise ending_error(*answer) from self._work_error

    def submit(self, payload: Any, *, block: bool = True, timeout: float | None = None) -> Future[bytes]:
        """Sends a message and returns a future for its result.

        If the ring is full, the call waits for room for up to `timeout` seconds and then raises `TimeoutError`. With
        ``block=False`` it raises `TimeoutError` at once.
        """
        left = self._wait_while_parked(_seconds(timeout) if block else 0.0)
        future: Future[bytes] = Future()
        if not self._core.submit(buffer_of(payload), self._result_mailbox(), future, left):
            raise TimeoutError("the ring is full")
        return future

    def acall(self, payload: Any) -> asyncio.Future[bytes]:
        """Sends a message and returns an asyncio future for its result.

        Thousands of calls may wait at once on one event loop. If the ring is full, messages are queued.
        """
        loop = asyncio.get_running_loop()
        box = self._loops.get(loop)
        if box is None:
            box = self._loops[loop] = LoopMessages(self, loop)
        future: asyncio.Future[bytes] = loop.create_future()
        buffer = buffer_of(payload)
        if box.waiting or not self._open.is_set() or not self._core.submit(buffer, box.mailbox, future, 0.0):
            box.queue(bytes_of(buffer), future)
        return future

    def map(self, payloads: Iterable[Any], *, ordered: bool = True, window: int = 1024) -> Iterator[bytes]:
        """Sends many messages and yields their results, with at most `window` messages in flight.

        The iterator takes further `payloads` only as results are taken from it. Results are in the order of the
        messages or, with ``ordered=False``, in the order of their arrival. The first message that fails ends the
        iteration with its exception.
        """
        if window < 1:
            raise ValueError(f"window: invalid value {window}; allowed: at least 1")
        mailbox = _core.Mailbox()
        arrived: dict[int, bytes] = {}
        source = enumerate(payloads)
        sent = received = given = 0
        exhausted = False

        def receive(wait: float) -> list[tuple[int, bytes]]:
            nonlocal received
            mailbox.wait(wait)
            found = []
            taken = self._core.take(mailbox)
            received += len(taken)
            for number, payload, fault, ending in taken:
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
                    self._wait_while_parked()
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
            # Results still in flight are taken out; otherwise they would stay in the mailbox forever.
            until = time.monotonic() + 5
            while received < sent and not self.closed and time.monotonic() < until:
                with contextlib.suppress(Error):
                    receive(0.02)

    # --- many messages at a time, in place ------------------------------------------------------------------------

    @contextlib.contextmanager
    def reserve(self, n: int, *, timeout: float | None = None) -> Iterator[Messages]:
        """Reserves up to `n` empty messages, to be written in place. They are sent at the end of the ``with`` block.

        The call waits for room for at least one message. If the block raises an exception, no message is sent. The
        views must not be used after the block.

        Yields
        ------
        Messages
            The messages, with ``payload`` (messages, message_bytes) of uint8, ``length``, ``id`` and ``count``.
        """
        left = self._wait_while_parked(_seconds(timeout))
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
        """Returns up to `n` results, to be read in place. Their slots are released at the end of the ``with`` block.

        The call waits for at least one result. Results arrive in order within a lane; the ids identify the messages.

        Yields
        ------
        Answers
            The results, with ``payload`` (results, result_bytes) of uint8, ``length``, ``status`` and ``id``.
        """
        block = self._core.poll(_count(n), _seconds(timeout))
        if block is None:
            raise TimeoutError(f"no result within {timeout} s")
        answers = Answers(*block, self.result_bytes)
        del block
        try:
            yield answers
        finally:
            answers._end()
            if not self._core.closed:
                self._core.release()

    # --- parking and closing --------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def parked(self, *, timeout: float = 10.0) -> Iterator[None]:
        """Keeps the ring off the GPU during the ``with`` block.

        Use it for calls that wait for the entire device: cudaFree, cudaDeviceSynchronize, or the first launch of a
        kernel that is loaded lazily. Messages from other threads wait until the end of the block. If the ring is still
        busy after `timeout` seconds, the call raises `TimeoutError`.
        """
        if self.idle != "park":
            raise Error(f"this ring was created with idle={self.idle!r} and never leaves the GPU")
        with self._lock:
            if self._parking_thread is not None:
                raise Error("parked() is already in use")
            self._parking_thread = threading.get_ident()
            self._open.clear()
        try:
            self._core.pause(True)  # threads that have already passed the gate find no room
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
                self._parking_thread = None

    def stats(self) -> dict[str, int]:
        """Returns counts: messages `sent` and `answered`, `parked_lanes`, and `restarts` of parked lanes."""
        return self._core.stats()

    def close(self, *, drain: bool = True, timeout: float = 10.0) -> None:
        """Closes the ring.

        With `drain`, the call first waits up to `timeout` seconds for the results of all messages sent. Callers that
        are still waiting for a result get `RingClosed`. Closing a ring twice is harmless. If a Python function serves
        the ring, the call waits until the function returns, regardless of `timeout`.
        """
        if threading.get_ident() in self._serving:
            raise Error("a ring cannot be closed in its own work function, because closing waits for the function")
        self._open.set()
        with self._lock:  # no result thread is created after this
            first, self._ended, result_thread = not self._ended, True, self._result_thread
            if first:
                self._closing_ended.clear()
        if not first:  # another thread is closing the ring
            if result_thread is None or not result_thread.is_this_thread():  # that thread waits for the result thread
                self._closing_ended.wait()
            return
        succeeded = False
        try:
            _end(self._core, drain, timeout, result_thread, list(self._loops.items()))
            succeeded = True
        finally:
            self._ended = succeeded  # after a failure, close() may be called again
            self._closing_ended.set()

    def __enter__(self) -> Ring:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(drain=kind is None)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            if threading.get_ident() in self._serving:  # closing waits for this thread
                arguments = (self._core, False, 0.0, self._result_thread, list(self._loops.items()))
                threading.Thread(target=_end, args=arguments, name="feedrate-end", daemon=True).start()
            else:
                self.close(drain=False)

    def __repr__(self) -> str:
        state = "closed" if self.closed else self.device
        return f"<feedrate.Ring of {self.message_bytes} B messages, {state}>"

    def _wait_while_parked(self, seconds: float = _FOREVER) -> float:
        """Waits while another thread keeps the ring parked. Returns the remaining `seconds`; negative means forever."""
        if self._open.is_set():
            return seconds
        if self._parking_thread == threading.get_ident():
            raise Error("a message sent inside this thread's own parked() block would wait forever")
        begin = time.monotonic()
        if not self._open.wait(None if seconds < 0 else seconds):
            raise TimeoutError(f"the ring stayed parked for {seconds} s")
        return seconds if seconds < 0 else max(0.0, seconds - (time.monotonic() - begin))

    def _result_mailbox(self) -> _core.Mailbox:
        with self._lock:
            if self._ended:
                raise RingClosed("the ring is closed")
            if self._result_thread is None:
                self._result_thread = ResultThread(self._core)
            return self._result_thread.mailbox


def _end(
    core: _core.Ring,
    drain: bool,
    timeout: float,
    result_thread: ResultThread | None,
    loops: list[tuple[asyncio.AbstractEventLoop, LoopMessages]],
) -> None:
    """Ends a ring's extension object, its result thread, and the mailboxes of its event loops."""
    core.close(not drain, timeout)
    if result_thread is not None:
        result_thread.end()
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
            with contextlib.suppress(RuntimeError):  # closed in the meantime
                loop.call_soon_threadsafe(box.end)


def _marked(function: Callable[..., Any], serving: set[int]) -> Callable[..., Any]:
    """Wraps `function` so that its thread is listed in `serving` while the function runs."""

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
        return _FOREVER
    if not timeout >= 0:
        raise ValueError(f"timeout: invalid value {timeout!r}; allowed: at least 0 seconds, or None")
    return float(timeout)


def _count(n: int) -> int:
    if not isinstance(n, int) or n < 1:
        raise ValueError(f"n: invalid value {n!r}; allowed: integers, at least 1")
    return n


@atexit.register
def _close_all() -> None:
    for ring in list(_rings):
        with contextlib.suppress(Exception):
            ring.close(drain=False)
