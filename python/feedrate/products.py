"""Matrix products by the rungs of the ladder matmul, on tensors that support DLPack."""

from __future__ import annotations

import ctypes
import math
import numbers
import os
import sys
from typing import Any

import numpy as np

from . import _core
from .arrays import LEGACY_STREAM, Array
from .errors import Error

_NAMES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float8_e4m3fn": "fp8"}
_RESULT = {"tf32": "float32", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp8": "bfloat16"}


class _Product(ctypes.Structure):
    """feedrate_product in libraries/kernels/include/feedrate/kernels.h."""

    _fields_ = (
        *((name, ctypes.c_char_p) for name in ("rung", "device")),
        ("index", ctypes.c_uint),
        *((name, ctypes.c_char_p) for name in ("dtype", "layout")),
        *((name, ctypes.c_uint64) for name in ("m", "n", "k", "batch")),
        *((name, ctypes.c_void_p) for name in ("left", "right", "result", "bias")),
        ("scale", ctypes.c_float),
        ("gelu", ctypes.c_int),
        ("stream", ctypes.c_void_p),
        ("wait", ctypes.c_int),
    )


class _Matrix(Array):
    """An array of matrices, whose type has the ladder's name."""

    def __init__(self, name: str, tensor: Any, stream: int, written: bool = False) -> None:
        super().__init__(name, tensor, stream, written)
        self.dtype = _NAMES.get(self.dtype, self.dtype)

    def transposed(self) -> bool:
        """Whether the last two dimensions are stored transposed. Raises ValueError unless they are contiguous."""
        batched, (rows, columns) = self.shape[:-2], self.shape[-2:]
        inner = (columns, 1), (1, rows)
        for number, strides in enumerate(inner):
            expected = (rows * columns, *strides) if batched else strides
            if not self.bytes or all(size < 2 or have == want for size, have, want in zip(self.shape, self.strides, expected)):
                return bool(number)
        raise ValueError(
            f"{self.name}: invalid strides {self.strides} of shape {self.shape}; allowed: contiguous matrices, or "
            "their transposes"
        )


_BUILD = (
    "build it in a clone (cmake --build build/release --target feedrate_kernels_library) and call "
    "feedrate.kernels.load('build/release/lib/libfeedrate_kernels.so')"
)
_loaded: list[ctypes.CDLL] = []


def load(path: str | os.PathLike[str]) -> None:
    """Loads the library of kernels, ``libfeedrate_kernels.so``, which the package does not include.

    Raises
    ------
    Error
        The library cannot be loaded. One that was loaded before stays.
    """
    try:
        library = ctypes.CDLL(os.fspath(path) or "an empty path")
        library.feedrate_matmul, library.feedrate_rungs  # noqa: B018  another library has no such function
    except (OSError, AttributeError) as error:
        raise Error(f"the library of kernels cannot be loaded ({error}); {_BUILD}") from None
    _loaded[:] = [library]


def _library() -> ctypes.CDLL:
    if not _loaded:
        raise Error(f"no library of kernels is loaded; {_BUILD}")
    return _loaded[0]


def rungs() -> list[dict[str, Any]]:
    """Lists the rungs of the ladder matmul, and libraries, by step.

    Returns
    -------
    list of dict
        ``name``, ``device``, ``step`` (0 for a library), ``unavailable`` (the reason; empty if it is available) and
        ``changes`` (compared with the rung before).
    """
    call = _library().feedrate_rungs
    call.restype = ctypes.c_size_t
    text = ctypes.create_string_buffer(call(None, ctypes.c_size_t(0)))
    call(text, ctypes.c_size_t(len(text)))
    names = ("name", "device", "step", "unavailable", "changes")
    lines = (line.split("\t") for line in text.value.decode().splitlines())
    listed = [{**dict(zip(names, line)), "step": int(line[2])} for line in lines]
    reason = _core.cuda_unavailable()
    for rung in listed:
        if rung["device"] == "cuda" and not rung["unavailable"]:
            rung["unavailable"] = reason
    return listed


def matmul(
    a: Any,
    b: Any,
    rung: str | None = None,
    *,
    dtype: str | None = None,
    bias: Any = None,
    gelu: bool = False,
    scale: float = 1.0,
    out: Any = None,
    stream: int | None = None,
) -> Any:
    """Multiplies matrices by one rung of the ladder matmul, or by a library.

    Parameters
    ----------
    a, b : arrays that support DLPack, shapes (m, k) and (k, n), or (batch, m, k) and (batch, k, n)
        Contiguous, or the transpose of a contiguous array, such as ``weight.T``; not every rung takes every layout.
    rung : str, optional
        See `rungs`. Default: ``"tma_store"`` on a GPU, but ``"async_copies"`` for fp32, and ``"cpu_packed"`` on the
        CPU.
    dtype : {"fp32", "tf32", "bf16", "fp16", "fp8"}, optional
        Type of the products; default: that of `a`. ``"tf32"`` multiplies fp32 on tensor cores. ``"fp8"`` reads bytes as
        e4m3.
    bias : array of float32, shape (n,), optional
    gelu : bool
        Applies GELU, in its tanh form, to the sum with `bias`.
    scale : float
    out : array, shape (m, n) or (batch, m, n), optional
        Receives the result: of the type of `a`, but bf16 for fp8. By default, a new array of the same package.
    stream : int, optional
        A CUDA stream, such as ``torch.cuda.current_stream().cuda_stream``: the call returns at once, and the result is
        complete when the stream has reached it. Keep all arrays until then. By default, the call waits for the result.

    Returns
    -------
    array
        `out`, or the new array.

    Raises
    ------
    ValueError
        The shapes do not fit, or the rung does not compute such a product.
    Error
        No library of kernels is loaded (see `load`), or the device failed.
    """
    for argument, value, kinds in (("rung", rung, str), ("dtype", dtype, str), ("stream", stream, int)):
        if value is not None and (not isinstance(value, kinds) or value == ""):
            raise TypeError(f"{argument}: invalid value {value!r}; allowed: {kinds.__name__} or None")
    if not isinstance(scale, numbers.Real) or not math.isfinite(np.float32(scale)):
        raise ValueError(f"scale: invalid value {scale!r}; allowed: finite numbers of fp32")
    handle = stream or None  # CUDA's default stream may be 0, which DLPack does not allow
    order = handle or LEGACY_STREAM
    left, right = _Matrix("a", a, order), _Matrix("b", b, order)
    if len(left.shape) not in (2, 3) or len(right.shape) != len(left.shape):
        raise ValueError(f"a, b: invalid shapes {left.shape} and {right.shape}; allowed: two or three dimensions each")
    *batch, m, k = left.shape
    if (*batch, k) != (*right.shape[:-2], right.shape[-2]):
        raise ValueError(f"b: invalid shape {right.shape}; allowed: {(*batch, k, 'n')}, because a is {left.shape}")
    n = right.shape[-1]
    name = dtype or left.dtype
    if dtype is not None and dtype not in _RESULT:
        raise ValueError(f"dtype: invalid value {dtype!r}; allowed: {', '.join(_RESULT)}")
    stored = {"fp8": ("fp8", "uint8"), "tf32": ("fp32",)}.get(name, (name,))
    if name not in _RESULT or left.dtype not in stored or right.dtype not in stored:
        raise ValueError(
            f"a, b: invalid types {left.dtype} and {right.dtype} for a product of {name}; allowed: both fp32 (also for "
            "tf32), bf16 or fp16, or bytes for fp8"
        )
    if out is None:
        out = _empty(a, (*batch, m, n), _RESULT[name])
    result = _Matrix("out", out, order, written=True)
    wanted = "bf16" if name == "fp8" else stored[0]
    if result.shape != (*batch, m, n) or result.dtype != wanted or not result.in_rows():
        raise ValueError(
            f"out: invalid array of {result.dtype}, shape {result.shape} and strides {result.strides}; allowed: {wanted}, "
            f"{(*batch, m, n)}, contiguous"
        )
    added = None if bias is None else _Matrix("bias", bias, order)
    if added is not None and (added.shape != (n,) or added.dtype != "fp32" or not added.in_rows()):
        raise ValueError(
            f"bias: invalid array of {added.dtype}, shape {added.shape} and strides {added.strides}; allowed: fp32, "
            f"{(n,)}, contiguous"
        )
    if gelu and added is None:
        raise ValueError(f"gelu: invalid value {gelu!r}; allowed: False without a bias")
    for other in filter(None, (right, result, added)):
        if other.device != left.device:
            raise ValueError(f"{other.name}: invalid device {other.device}; allowed: {left.device}, that of a")
    for other in filter(None, (left, right, added)):
        if result.overlaps(other):
            raise ValueError(f"out: invalid array, which shares memory with {other.name}; allowed: memory of its own")
    device, index = left.device
    if rung is None:
        rung = "cpu_packed" if device == "cpu" else "async_copies" if name == "fp32" else "tma_store"
    product = _Product(
        rung.encode(),
        device.encode(),
        index,
        name.encode(),
        "nt"[left.transposed()].encode() + "nt"[right.transposed()].encode(),
        m, n, k, batch[0] if batch else 1,
        left.address, right.address, result.address, added.address if added else None,
        scale, bool(gelu), handle, stream is None,
    )  # fmt: skip
    error = ctypes.create_string_buffer(1024)
    code = _library().feedrate_matmul(ctypes.byref(product), error, ctypes.c_size_t(len(error)))
    if code:
        raise (ValueError if code == 2 else Error)(error.value.decode(errors="replace"))
    return out


def _empty(like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """Returns a new array on the device of `like`, from the package that it belongs to."""
    package = sys.modules.get(type(like).__module__.partition(".")[0])
    if hasattr(like, "new_empty"):
        return like.new_empty(shape, dtype=getattr(package, dtype))
    if isinstance(like, np.ndarray) and dtype != "bfloat16":
        return np.empty(shape, dtype)
    if package is not None and hasattr(package, "empty") and hasattr(package, dtype):
        return package.empty(shape, dtype=getattr(package, dtype))
    raise ValueError(f"out: an array of {dtype} is required, because {type(like).__name__} offers no way to make one")
