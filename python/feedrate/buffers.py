"""Checks which objects can be sent: buffers whose bytes have the same meaning in any process."""

from __future__ import annotations

import ctypes
import re
from functools import lru_cache
from typing import Any

import numpy as np

# Buffer format codes: O is an object; P, z, Z and & are pointers; X is a function; Zd and similar are complex numbers.
_ADDRESS = re.compile(r"[OPXz&]|Z(?![fdg])")
_FIELD = re.compile(":[^:]*:")
_FUNCTION: Any = ctypes.CFUNCTYPE(None).__base__  # base class of all function pointers


def check_array(name: str, array: Any) -> None:
    """Raises TypeError for a NumPy array whose bytes have no meaning in another process."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(
            f"{name}: invalid type masked array; allowed: arrays without a mask, because a mask is not sent (filled() "
            "returns such an array)"
        )
    if array.dtype.hasobject:
        raise TypeError(
            f"{name}: invalid dtype {array.dtype}; allowed: dtypes that store their elements in the array, not as "
            "addresses in this process"
        )
    if _has_time(array.dtype):
        raise TypeError(
            f"{name}: invalid dtype {array.dtype}; allowed: plain numbers (array.view('i8')), because the unit of time "
            "is not sent"
        )


def buffer_of(payload: Any, name: str = "payload") -> Any:
    """Returns the payload as a contiguous object that supports the buffer protocol."""
    if type(payload) is bytes:
        return payload
    values = _values(payload, name)
    array = isinstance(values, np.ndarray)
    if not (values.flags.c_contiguous if array else values.c_contiguous):
        raise ValueError(
            f"{name}: invalid array with shape {values.shape} and strides {values.strides}; allowed: contiguous arrays "
            "(numpy.ascontiguousarray returns one)"
        )
    # NumPy exports no buffer for some dtypes, such as bfloat16.
    return values.reshape(-1).view(np.uint8) if array and values.dtype.isbuiltin != 1 else values


def bytes_of(payload: Any, name: str = "payload") -> bytes:
    """Returns a copy of the payload's bytes; arrays are copied in row-major order."""
    if type(payload) is bytes:
        return payload
    values: bytes = _values(payload, name).tobytes()
    return values


def _values(payload: Any, name: str) -> Any:
    """Returns the payload as a NumPy array or memoryview. Raises TypeError if its bytes have no meaning elsewhere."""
    if isinstance(payload, str):
        raise TypeError(f"{name}: invalid type str; allowed: bytes or an array (text.encode() returns bytes)")
    if isinstance(payload, (np.ndarray, np.generic)) and not isinstance(payload, bytes):
        array = payload if isinstance(payload, np.ndarray) else np.asarray(payload)
        check_array(name, array)
        return array
    try:
        view = memoryview(payload)
    except (TypeError, ValueError, BufferError):
        if not hasattr(payload, "__dlpack__"):
            raise TypeError(
                f"{name}: invalid type {type(payload).__name__}; allowed: objects that support the buffer "
                "protocol, or DLPack in host memory"
            ) from None
        try:
            return np.from_dlpack(payload)
        except (BufferError, RuntimeError, TypeError) as error:
            raise TypeError(
                f"{name}: invalid type {type(payload).__name__} ({error}); allowed: objects that support the buffer "
                "protocol, or DLPack in host memory"
            ) from None
    # ctypes reports the format of packed structures and unions as plain bytes.
    if _format_has_address(view.format) or _contains_address(type(view.obj)):
        raise TypeError(
            f"{name}: invalid type {type(payload).__name__} with the format {view.format!r}; allowed: buffers of "
            "values, not of addresses in this process"
        )
    return view


@lru_cache(maxsize=256)
def _format_has_address(form: str) -> bool:
    return _ADDRESS.search(_FIELD.sub("", form)) is not None


@lru_cache(maxsize=256)
def _contains_address(kind: type[Any]) -> bool:
    """Whether `kind` is a ctypes type that is, or contains, an address."""
    if issubclass(kind, (ctypes._Pointer, _FUNCTION)):
        return True
    if issubclass(kind, ctypes._SimpleCData):
        return getattr(kind, "_type_", "") in ("P", "z", "Z", "O")
    if issubclass(kind, ctypes.Array):
        return _contains_address(kind._type_)
    if issubclass(kind, (ctypes.Structure, ctypes.Union)):
        return any(_contains_address(field[1]) for base in kind.__mro__ for field in base.__dict__.get("_fields_", ()))
    return False


@lru_cache(maxsize=256)
def _has_time(dtype: np.dtype[Any]) -> bool:
    if dtype.subdtype is not None:
        return _has_time(dtype.subdtype[0])
    return dtype.kind in "mM" or any(_has_time(field[0]) for field in (dtype.fields or {}).values())
