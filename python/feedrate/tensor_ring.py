"""A ring for tensors: only their addresses cross the bus; the tensors stay in place."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, Literal, TypeVar

import numpy as np

from . import _core
from .buffers import check_array
from .kernels import Kernel
from .ring import Ring

_CPU, _CUDA, _PINNED, _MANAGED = 1, 2, 3, 13  # DLPack's device types
Tensor = TypeVar("Tensor")


class TensorRing:
    """A ring whose messages are tensors in its device's memory, passed by address.

    The work reads a tensor in place and writes the result to another tensor, or to the same one. On a GPU, tensors are
    in device memory or pinned host memory and come from PyTorch, CuPy, JAX or another library through DLPack. On the
    CPU device, they are arrays.

    Parameters
    ----------
    work : str or Kernel
        ``"echo"``, which copies the tensor, or a work function in CUDA C++ (`feedrate.kernel`), which needs a GPU.
    lanes : int
        Number of tensors processed at the same time, each by one block of the GPU's grid.
    capacity : int
        Number of tensors that a lane holds.
    device, idle, park_after, longest_stay
        As for `feedrate.Ring`.

    Notes
    -----
    A tensor must be contiguous. Its address and its size in bytes must be multiples of 16, because the work handles
    pieces of 16 bytes. The call waits until the work that the tensor's owner has queued on its current stream is done,
    and only then sends the tensor. Work queued after the result has arrived sees the result. Do not use either tensor
    before then.
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
            raise TypeError(f"work: invalid type {type(work).__name__}; allowed: 'echo', a feedrate.kernel")
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
        """Processes a tensor and waits for the result.

        Parameters
        ----------
        tensor : array that supports DLPack
            Input of the work.
        out : array that supports DLPack, optional
            Receives the result. By default, the result overwrites `tensor`.
        timeout : float, optional
            Timeout in seconds; None waits forever. After a timeout the tensor is still processed, and the ring keeps a
            reference to it until the ring is destroyed.

        Returns
        -------
        array
            `out`, or `tensor`.

        Raises
        ------
        MessageFailed
            The work rejected the tensor. The fault is ``bad_length``, or ``too_long`` if the result does not fit `out`.
        TimeoutError
            No result arrived before the timeout.
        """
        try:
            self._ring.call(self._message(tensor, out), timeout=timeout)
        except (TimeoutError, KeyboardInterrupt):
            self._abandoned.append((tensor, out))
            raise
        return tensor if out is None else out

    def submit(self, tensor: Tensor, out: Tensor | None = None) -> Future[Tensor]:
        """Sends a tensor and returns a future for the result. Waits while the ring is full."""
        given: Future[Tensor] = Future()
        given.set_running_or_notify_cancel()

        def deliver(answer: Future[bytes]) -> None:
            error = answer.exception()
            if error is None:
                given.set_result(tensor if out is None else out)
            else:
                given.set_exception(error)

        self._ring.submit(self._message(tensor, out)).add_done_callback(deliver)
        return given

    async def acall(self, tensor: Tensor, out: Tensor | None = None) -> Tensor:
        """Processes a tensor as `call` does, for asyncio. Cancelling the call does not stop the work."""
        future = self._ring.acall(self._message(tensor, out))
        used = (tensor, out)
        future.add_done_callback(lambda _: used and None)  # keeps both tensors alive until the result arrives
        await asyncio.shield(future)
        return tensor if out is None else out

    def parked(self, *, timeout: float = 10.0) -> AbstractContextManager[None]:
        """Keeps the ring off the GPU during a ``with`` block, as `Ring.parked` does."""
        return self._ring.parked(timeout=timeout)

    def stats(self) -> dict[str, int]:
        """Returns counts of messages and lanes, as `Ring.stats` does."""
        return self._ring.stats()

    def close(self, *, drain: bool = True, timeout: float = 10.0) -> None:
        """Closes the ring, as `Ring.close` does."""
        self._ring.close(drain=drain, timeout=timeout)

    def __enter__(self) -> TensorRing:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
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
        """Returns a tensor's address and size in bytes, after making its owner synchronize it with
        the ring's stream (through __dlpack__)."""
        exchange: Callable[..., Any] | None = getattr(tensor, "__dlpack__", None)
        if exchange is None:
            raise TypeError(f"{name}: invalid type {type(tensor).__name__}; allowed: arrays that support DLPack")
        kind = int(tensor.__dlpack_device__()[0])
        if kind not in self._types:
            allowed = "GPU memory or pinned host memory" if self._ring.device == "cuda" else "host memory"
            raise ValueError(f"{name}: invalid DLPack device type {kind}; allowed: {allowed}")
        if isinstance(tensor, np.ndarray):
            check_array(name, tensor)
        try:
            capsule = exchange(stream=self._ring._core.stream()) if kind in (_CUDA, _MANAGED) else exchange()
        except BufferError as error:
            raise TypeError(
                f"{name}: invalid type {type(tensor).__name__} ({error}); allowed: writable arrays that support DLPack"
            ) from None
        try:
            address, size, _, _ = _core.address(capsule)
        except TypeError:
            raise ValueError(f"{name}: invalid array; allowed: contiguous arrays") from None
        if address % 16 or size % 16:
            raise ValueError(
                f"{name}: invalid tensor of {size} bytes at address {address:#x}; allowed: multiples of 16 for both"
            )
        return address, size
