"""What can be sent: buffers whose bytes are their values, in any process."""

from __future__ import annotations

import ctypes
import re
from functools import lru_cache
from typing import Any

import numpy as np

# In a buffer's format: O is an object, P, z, Z and & are pointers, X is a function. Zd and the like are complex numbers.
_ADDRESS = re.compile(r"[OPXz&]|Z(?![fdg])")
_FIELD = re.compile(":[^:]*:")
_FUNCTION: Any = ctypes.CFUNCTYPE(None).__base__  # of all pointers to functions


def check_array(name: str, array: Any) -> None:
    """Raises TypeError for an array of NumPy's whose bytes are not its values in another process."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(
            f"{name}: a masked array is not possible; allowed: arrays without a mask, which is not sent (filled() "
            "makes one)"
        )
    if array.dtype.hasobject:
        raise TypeError(
            f"{name}: an array of {array.dtype} is not possible; allowed: dtypes whose elements lie in the array, and "
            "not as addresses in this process"
        )
    if _has_time(array.dtype):
        raise TypeError(
            f"{name}: an array of {array.dtype} is not possible; allowed: its numbers (array.view('i8')), as the unit is "
            "not sent"
        )


def buffer_of(payload: Any, name: str = "payload") -> Any:
    """The payload as something with the buffer protocol, contiguous."""
    if type(payload) is bytes:
        return payload
    values = _values(payload, name)
    array = isinstance(values, np.ndarray)
    if not (values.flags.c_contiguous if array else values.c_contiguous):
        raise ValueError(
            f"{name}: an array of the shape {values.shape} and the strides {values.strides} is not possible; allowed: "
            "contiguous ones (numpy.ascontiguousarray makes one)"
        )
    # NumPy exports no buffer of some dtypes, such as bfloat16.
    return values.reshape(-1).view(np.uint8) if array and values.dtype.isbuiltin != 1 else values


def bytes_of(payload: Any, name: str = "payload") -> bytes:
    """A copy of the payload's bytes, row by row where it is an array."""
    if type(payload) is bytes:
        return payload
    values: bytes = _values(payload, name).tobytes()
    return values


def _values(payload: Any, name: str) -> Any:
    """The payload as an array of NumPy's or a memoryview. Raises TypeError where its bytes are not its values."""
    if isinstance(payload, str):
        raise TypeError(f"{name}: a str is not possible; allowed: bytes, or an array (text.encode() makes bytes)")
    if isinstance(payload, (np.ndarray, np.generic)) and not isinstance(payload, bytes):
        array = payload if isinstance(payload, np.ndarray) else np.asarray(payload)
        check_array(name, array)
        return array
    try:
        view = memoryview(payload)
    except (TypeError, ValueError, BufferError):
        if not hasattr(payload, "__dlpack__"):
            raise TypeError(
                f"{name}: {type(payload).__name__} is not possible; allowed: the buffer protocol, or DLPack on the host"
            ) from None
        try:
            return np.from_dlpack(payload)
        except (BufferError, RuntimeError, TypeError) as error:
            raise TypeError(
                f"{name}: a {type(payload).__name__} is not possible ({error}); allowed: the buffer protocol, or DLPack on "
                "the host"
            ) from None
    # ctypes gives packed structures and unions the format of plain bytes.
    if _holds_addresses(view.format) or _points(type(view.obj)):
        raise TypeError(
            f"{name}: a {type(payload).__name__} of the format {view.format!r} is not possible; allowed: buffers of values, "
            "and not of addresses in this process"
        )
    return view


@lru_cache(maxsize=256)
def _holds_addresses(form: str) -> bool:
    return _ADDRESS.search(_FIELD.sub("", form)) is not None


@lru_cache(maxsize=256)
def _points(kind: type[Any]) -> bool:
    """Whether it is a type of ctypes that is, or holds, an address."""
    if issubclass(kind, (ctypes._Pointer, _FUNCTION)):
        return True
    if issubclass(kind, ctypes._SimpleCData):
        return getattr(kind, "_type_", "") in ("P", "z", "Z", "O")
    if issubclass(kind, ctypes.Array):
        return _points(kind._type_)
    if issubclass(kind, (ctypes.Structure, ctypes.Union)):
        return any(_points(field[1]) for base in kind.__mro__ for field in base.__dict__.get("_fields_", ()))
    return False


@lru_cache(maxsize=256)
def _has_time(dtype: np.dtype[Any]) -> bool:
    if dtype.subdtype is not None:
        return _has_time(dtype.subdtype[0])
    return dtype.kind in "mM" or any(_has_time(field[0]) for field in (dtype.fields or {}).values())
