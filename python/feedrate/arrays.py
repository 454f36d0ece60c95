"""Arrays of any library in host or GPU memory: their address, shape and type, for calls that read or write them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _core
from .buffers import check_array

_CPU, _CUDA = 1, 2  # DLPack's device types
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}  # by DLPack's type code
LEGACY_STREAM = 1  # DLPack's and CUDA's number of the legacy default stream


def stream_address(stream: Any) -> int:
    """Returns the address of a PyTorch or CuPy stream, or of an object with the protocol ``__cuda_stream__``."""
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        return int((protocol() if callable(protocol) else protocol)[1])
    for name in ("cuda_stream", "ptr"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    if isinstance(stream, int):
        return stream
    raise TypeError(f"stream: invalid type {type(stream).__name__}; allowed: a CUDA stream or its address")


class Array:
    """Place, shape and type of an array. Work that its owner has queued is ordered before `stream`. `dtype` is NumPy's name."""

    def __init__(self, name: str, tensor: Any, stream: int, written: bool = False) -> None:
        self.name = name
        if isinstance(tensor, np.ndarray):
            self._of_numpy(tensor, written)
        else:
            self._of_dlpack(tensor, stream)
        self.bytes = math.prod(self.shape) * self._item

    def _of_numpy(self, array: np.ndarray[Any, Any], written: bool) -> None:
        check_array(self.name, array)
        if written and not array.flags.writeable:
            raise ValueError(f"{self.name}: invalid read-only array; allowed: writable arrays")
        self.address, self.device, self._item = array.ctypes.data, ("cpu", 0), array.itemsize
        self.shape = array.shape
        self.strides = tuple(stride // self._item for stride in array.strides)
        native = array.dtype.newbyteorder("=") == array.dtype
        self.dtype = array.dtype.name if native else array.dtype.str

    def _of_dlpack(self, tensor: Any, stream: int) -> None:
        if not hasattr(tensor, "__dlpack__") or not hasattr(tensor, "__dlpack_device__"):
            raise TypeError(f"{self.name}: invalid type {type(tensor).__name__}; allowed: arrays that support DLPack")
        kind = int(tensor.__dlpack_device__()[0])
        if kind not in (_CPU, _CUDA):
            raise ValueError(f"{self.name}: invalid DLPack device type {kind}; allowed: host memory or GPU memory")
        # The capsule keeps the memory of a tensor that was made for this call.
        self._capsule = tensor.__dlpack__(stream=stream) if kind == _CUDA else tensor.__dlpack__()
        self.address, self.shape, self.strides, code, bits, _, index = _core.described(self._capsule)
        self.device, self._item = ("cpu" if kind == _CPU else "cuda", index), bits // 8
        name = "float8_e4m3fn" if (code, bits) == (10, 8) else f"{_CODES.get(code, f'DLPack type {code} of ')}{bits}"
        self.dtype = name

    def overlaps(self, other: Array) -> bool:
        return (
            self.device == other.device
            and self.address < other.address + other.bytes
            and other.address < self.address + self.bytes
        )

    def in_rows(self) -> bool:
        """Whether the elements are contiguous, in rows."""
        inner = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides)):
            if size > 1 and stride != inner and self.bytes:
                return False
            inner *= size
        return True
