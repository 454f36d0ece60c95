"""Tensors through a ring by their addresses: nothing is copied over the bus but where they lie."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Literal, TypeVar

import numpy as np

from . import _core
from .buffers import check_array
from .kernels import Kernel
from .ring import Ring

_CPU, _CUDA, _PINNED, _MANAGED = 1, 2, 3, 13  # DLPack's device types
Tensor = TypeVar("Tensor")


class TensorRing:
    """A ring whose messages are tensors in the memory of its device, handed over by address.

    The work reads a tensor where it lies, and writes the result to another one, or in place. On a GPU that is device
    memory (or pinned host memory), by DLPack from PyTorch, CuPy, JAX and others; on the CPU device, arrays.

    Parameters
    ----------
    work : str or Kernel
        ``"echo"``, which copies, or a work function in CUDA C++ (`feedrate.kernel`), on a GPU.
    lanes : int
        Tensors that are worked on at once, by a block of the GPU's grid each.
    capacity : int
        Tensors that a lane holds.
    device, idle, park_after, longest_stay
        As for `feedrate.Ring`.

    Notes
    -----
    A tensor must be contiguous, and its address and its size in bytes multiples of 16, as the work handles pieces of 16
    bytes. What its owner has queued on its current stream is done before the ring sees it: the call waits for that.
    Whatever is queued after the result has come sees the result. Until then, leave both tensors alone.
    """

    def __init__(
        self,
        work: str | Kernel = "echo",
        *,
        lanes: int = 4,
        capacity: int = 256,
        device: str = "auto",
        idle: Literal["park", "spin", "backoff"] = "park",
        park_after: float = 0.01,
        longest_stay: float = 1.0,
    ) -> None:
        if not isinstance(work, (str, Kernel)):
            raise TypeError(f"work: a {type(work).__name__} is not possible; allowed: 'echo', a feedrate.kernel")
        self._ring = Ring(
            work, message_bytes=32, result_bytes=8, lanes=lanes, capacity=capacity, device=device, idle=idle,
            park_after=park_after, longest_stay=longest_stay, _by_address=True,
        )  # fmt: skip
        self._abandoned: list[tuple[Any, Any]] = []
        self._types = (_CUDA, _PINNED, _MANAGED) if self._ring.device == "cuda" else (_CPU,)

    @property
    def device(self) -> str:
        """``"cuda"`` or ``"cpu"``."""
        return self._ring.device

    def call(self, tensor: Tensor, out: Tensor | None = None, *, timeout: float | None = None) -> Tensor:
        """Works on a tensor and waits for the result.

        Parameters
        ----------
        tensor : array with DLPack
        out : the same, optional
            Where the result goes; without it, to `tensor` itself.
        timeout : float, optional
            Seconds; None waits for ever. A tensor whose time is over is still worked on, and kept until the ring ends.

        Returns
        -------
        array
            `out`, or `tensor`.

        Raises
        ------
        MessageFailed
            The work did not take it: ``bad_length``, or ``too_long`` for what has room in `out`.
        TimeoutError
            The result has not come in time.
        """
        try:
            self._ring.call(self._message(tensor, out), timeout=timeout)
        except (TimeoutError, KeyboardInterrupt):
            self._abandoned.append((tensor, out))
            raise
        return tensor if out is None else out

    def submit(self, tensor: Tensor, out: Tensor | None = None) -> Future[Tensor]:
        """As `call`, without waiting for the result: it comes in a future. Waits while the ring is full."""
        given: Future[Tensor] = Future()
        given.set_running_or_notify_cancel()

        def came(answer: Future[bytes]) -> None:
            error = answer.exception()
            if error is None:
                given.set_result(tensor if out is None else out)
            else:
                given.set_exception(error)

        self._ring.submit(self._message(tensor, out)).add_done_callback(came)
        return given

    async def acall(self, tensor: Tensor, out: Tensor | None = None) -> Tensor:
        """As `call`, for asyncio. Cancelling it does not stop the work."""
        future = self._ring.acall(self._message(tensor, out))
        used = (tensor, out)
        future.add_done_callback(lambda _: used and None)  # which keeps them until then
        await asyncio.shield(future)
        return tensor if out is None else out

    def parked(self, *, timeout: float = 10.0) -> AbstractContextManager[None]:
        """As `Ring.parked`."""
        return self._ring.parked(timeout=timeout)

    def stats(self) -> dict[str, int]:
        """As `Ring.stats`."""
        return self._ring.stats()

    def close(self, *, drain: bool = True, timeout: float = 10.0) -> None:
        """As `Ring.close`."""
        self._ring.close(drain=drain, timeout=timeout)

    def __enter__(self) -> TensorRing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(drain=kind is None)

    def __repr__(self) -> str:
        return f"<feedrate.TensorRing, {'closed' if self._ring.closed else self.device}>"

    def _message(self, tensor: Any, out: Any) -> bytes:
        here, there = self._place("tensor", tensor), None
        if out is not None:
            there = self._place("out", out)
        self._ring._core.ordered()
        return struct.pack("<4Q", *here, *(there or here))

    def _place(self, name: str, tensor: Any) -> tuple[int, int]:
        """Address and bytes, after the owner was asked to order the tensor for the ring."""
        exchange: Callable[..., Any] | None = getattr(tensor, "__dlpack__", None)
        if exchange is None:
            raise TypeError(f"{name}: a {type(tensor).__name__} is not possible; allowed: arrays with DLPack")
        kind = int(tensor.__dlpack_device__()[0])
        if kind not in self._types:
            wanted = "the GPU's memory, or pinned" if self._ring.device == "cuda" else "the host's memory"
            raise ValueError(f"{name}: DLPack's device type {kind} is not possible; allowed: {wanted}")
        if isinstance(tensor, np.ndarray):
            check_array(name, tensor)
        try:
            capsule = exchange(stream=self._ring._core.stream()) if kind in (_CUDA, _MANAGED) else exchange()
        except BufferError as error:
            raise TypeError(
                f"{name}: a {type(tensor).__name__} is not possible ({error}); allowed: arrays with DLPack that can be written"
            ) from None
        try:
            address, size, _, _ = _core.address(capsule)
        except TypeError:
            raise ValueError(f"{name}: an array that is not contiguous is not possible") from None
        if address % 16 or size % 16:
            raise ValueError(
                f"{name}: {size} bytes at the address {address:#x} are not possible; allowed: multiples of 16 for both"
            )
        return address, size
