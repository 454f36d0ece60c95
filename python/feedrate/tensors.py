"""Named tensors in memory that all processes on a machine share and that outlives the processes that created them.

A daemon, ``feedrate store serve``, owns the memory::

    store = feedrate.tensors.connect("/tmp/store.sock")
    weights = store.put("weights", array)              # in this process
    weights = store.wait("weights", timeout=5)         # in another process: the same memory
    array = weights.numpy()                            # no copy; torch.from_dlpack(weights) does not copy either

A lease on a tensor lasts until the `Tensor` and all arrays made from it are destroyed.
"""

from __future__ import annotations

import builtins
import json
import math
import numbers
import operator
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from .arrays import stream_address
from .buffers import check_array
from .errors import StoreError, StoreFull, StoreLimit, StoreUnreachable, TensorExists, TensorNotFound

# Names in NumPy, ml_dtypes and PyTorch. The store's own names are also allowed.
_DTYPES = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "complex64": "c64",
    "complex128": "c128",
}
_NO_NUMPY = {"bf16", "e4m3", "e5m2"}


def _dtype_name(dtype: Any) -> str:
    """Returns the store's name for a dtype of NumPy or PyTorch, or for the name of such a dtype."""
    if isinstance(dtype, str):
        name = dtype
    elif str(dtype).startswith("torch."):
        name = str(dtype).removeprefix("torch.")
    else:
        try:
            if dtype is None:  # NumPy would interpret None as float64
                raise TypeError
            name = np.dtype(dtype).name
        except TypeError:
            raise TypeError(f"dtype: invalid value {dtype!r}; allowed: {', '.join([*_DTYPES, 'bool'])}") from None
    return _DTYPES.get(name, name)


def _lengths(name: str, given: Any) -> builtins.list[int]:
    try:
        lengths = [operator.index(one) for one in ([given] if hasattr(given, "__index__") else given)]
    except TypeError:
        raise TypeError(f"{name}: invalid value {given!r}; allowed: an integer or a sequence of integers") from None
    if not all(-(2**63) <= one < 2**63 for one in lengths):
        raise ValueError(f"{name}: invalid value {given!r}; allowed: 64-bit integers")
    return lengths


def _seconds(name: str, given: Any, allowed: str = "seconds") -> float:
    if not isinstance(given, numbers.Real) or math.isnan(given):
        kind = ValueError if isinstance(given, numbers.Real) else TypeError
        raise kind(f"{name}: invalid value {given!r}; allowed: {allowed}")
    return float(given)


def standard_socket() -> str:
    """Returns the default socket of a user's store: ``$FEEDRATE_SOCKET``, or feedrate-store.sock in $XDG_RUNTIME_DIR.

    Raises
    ------
    ValueError
        Neither ``$FEEDRATE_SOCKET`` nor ``$XDG_RUNTIME_DIR`` is set.
    """
    socket = os.environ.get("FEEDRATE_SOCKET")
    if socket:
        return socket
    folder = os.environ.get("XDG_RUNTIME_DIR")
    if not folder:
        raise ValueError("socket: no path given; allowed: a path ($XDG_RUNTIME_DIR is not set, so there is no default)")
    return folder + "/feedrate-store.sock"


class Tensor:
    """A lease on a tensor.

    The memory stays allocated while this object or an array made from it exists, even if a process deletes the name.
    """

    def __init__(self, held: _core.StoreTensor) -> None:
        self._held = held

    @property
    def name(self) -> str:
        """Name of the tensor."""
        return self._held.name

    @property
    def generation(self) -> int:
        """Number that distinguishes this tensor from later tensors with the same name."""
        return self._held.generation

    @property
    def dtype(self) -> str:
        """The store's name for the type of the elements: ``"f32"``, ``"bf16"`` and so on."""
        return self._held.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of elements in each dimension."""
        return tuple(self._held.shape)

    @property
    def strides(self) -> tuple[int, ...] | None:
        """Strides in elements; None for row-major order."""
        return tuple(self._held.strides) or None

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self._held.bytes

    @property
    def deleted(self) -> bool:
        """Whether the name was deleted. The memory stays allocated."""
        return self._held.deleted

    @property
    def sealed(self) -> bool:
        """Whether the tensor is sealed, which means that no process should write to it."""
        return self._held.sealed

    @property
    def version(self) -> int:
        """Number of the last published version; 0 if none has been published yet and all elements are zero."""
        return self._held.version

    def publish(self, stream: Any = None) -> int:
        """Announces that the written data is complete, as the next version, and returns the number of that version.

        Only one writer at a time may write and publish.

        Parameters
        ----------
        stream : optional
            Stream on the tensor's GPU: from PyTorch or CuPy, an object with ``__cuda_stream__``, or an address. The
            version is complete once the stream reaches this point; the call does not wait.

        Raises
        ------
        ValueError
            A stream was given for a tensor in host memory.
        """
        return self._held.publish() if stream is None else self._held.publish_on(stream_address(stream))

    def commit(self) -> None:
        """Gives a tensor from `Store.stage` its name.

        Raises TensorExists if another tensor has the name, and ValueError if this tensor was committed before.
        """
        self._held.commit()

    def wait_on(self, stream: Any, version: int) -> None:
        """Makes a stream wait until `version` or a later one is complete, without blocking this thread.

        `publish` lists the allowed streams.
        """
        self._held.wait_on(stream_address(stream), version)

    def wait_for(self, version: int, timeout: float) -> bool:
        """Waits for `version` or a later one. Returns False if none is published within `timeout` seconds."""
        return self._held.wait_for(version, _seconds("timeout", timeout))

    def numpy(self) -> NDArray[Any]:
        """Returns the elements as an array, without a copy.

        Raises ValueError for tensors in GPU memory and for dtypes that NumPy does not support.
        """
        if self._held.cuda_index >= 0:
            raise ValueError(f"tensor '{self.name}' is in GPU memory; use torch.from_dlpack or cupy.asarray")
        if self.dtype in _NO_NUMPY:
            raise ValueError(f"dtype: invalid value '{self.dtype}'; allowed: dtypes of NumPy; use torch.from_dlpack")
        return self._held.numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError("copy: invalid value False; a conversion to another dtype needs a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, *, copy: bool | None = None, **how: Any) -> Any:
        """Exports the tensor without a copy. The consumer's stream does not wait for writers; `wait_on` does that."""
        if copy:
            raise BufferError(f"tensor '{self.name}' is exported without a copy; copy the imported array instead")
        return self._held.dlpack()

    def __dlpack_device__(self) -> tuple[int, int]:
        index = self._held.cuda_index
        return (1, 0) if index < 0 else (2, index)  # kDLCPU, kDLCUDA

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._held.cuda_index < 0 or self.dtype in _NO_NUMPY:
            raise AttributeError("__cuda_array_interface__")
        dtype = np.dtype(next((name for name, own in _DTYPES.items() if own == self.dtype), self.dtype))
        strides = self.strides and tuple(stride * dtype.itemsize for stride in self.strides)
        data = (self._held.address, False)
        return {"shape": self.shape, "typestr": dtype.str, "data": data, "strides": strides, "version": 3}

    def next_half(self) -> NDArray[Any]:
        """Returns the half that will hold the next version, for a tensor whose first dimension is 2.

        `publish` completes the version. Until then, readers of the last version use the other half.
        """
        half: NDArray[Any] = self.numpy()[self._held.begin_half()]
        return half

    def read_half(self) -> tuple[int, NDArray[Any]]:
        """Returns the number of the last version and a copy of its half, consistent even during concurrent writes."""
        copy = np.empty(self.shape[1:], self.numpy().dtype)
        version = self._held.read_half(copy.reshape(-1).view(np.uint8))
        return version, copy

    def __repr__(self) -> str:
        return f"<feedrate.tensors.Tensor '{self.name}' {self.dtype}{list(self.shape)} generation {self.generation}>"


class Store:
    """A connection to a store. Any thread of the process may use it; a forked child process must open its own.

    Parameters
    ----------
    socket : str, optional
        Path of the store's socket. The default is ``$FEEDRATE_SOCKET``, or else feedrate-store.sock in
        ``$XDG_RUNTIME_DIR``.
    patience : float
        Timeout for the store's replies in seconds.

    Raises
    ------
    StoreUnreachable
        No store answers at the socket.
    """

    def __init__(self, socket: str | os.PathLike[str] | None = None, patience: float = 10.0) -> None:
        self.socket = os.fspath(socket) if socket is not None else standard_socket()
        self._store = _core.Store(self.socket, min(_seconds("patience", patience), 1e9))

    def create(
        self,
        name: str,
        shape: int | tuple[int, ...] | builtins.list[int],
        dtype: Any = "float32",
        *,
        strides: tuple[int, ...] = (),
        pin: bool = False,
        evict: bool = False,
        ttl: float | None = None,
    ) -> Tensor:
        """Creates a tensor whose elements are all zero.

        Parameters
        ----------
        name
            Name of the tensor.
        shape
            Number of elements in each dimension.
        dtype
            A dtype of NumPy or PyTorch, its name, or the store's name for it.
        strides
            Strides in elements; the default is row-major order.
        pin
            Protects the tensor from eviction.
        evict
            If there is no room, evicts other tensors that are neither leased nor pinned.
        ttl
            Time in seconds after which the name is deleted: above 0, at most 1e9. The default keeps it forever.

        Raises
        ------
        TensorExists, StoreFull, StoreLimit, ValueError
        """
        return self._create(name, shape, dtype, strides, pin, evict, ttl)

    def stage(
        self,
        name: str,
        shape: int | tuple[int, ...] | builtins.list[int],
        dtype: Any = "float32",
        *,
        strides: tuple[int, ...] = (),
        pin: bool = False,
        evict: bool = False,
        ttl: float | None = None,
        replace: bool = False,
    ) -> Tensor:
        """Creates a tensor that gets its name only with `Tensor.commit`, so that no reader finds it half written.

        Takes the parameters of `create`, plus `replace`. A tensor that is never committed is freed with its last
        lease.

        Parameters
        ----------
        replace
            Lets the commit take the name from the tensor that has it. That tensor keeps the name until the commit, so
            the store needs memory for both.
        """
        return self._create(name, shape, dtype, strides, pin, evict, ttl, replace, staged=True)

    def _create(
        self, name: str, shape: Any, dtype: Any, strides: Any, pin: bool, evict: bool, ttl: Any,
        replace: bool = False, staged: bool = False,
    ) -> Tensor:  # fmt: skip
        layout = _dtype_name(dtype), _lengths("shape", shape), _lengths("strides", strides)
        seconds = None if ttl is None else _seconds("ttl", ttl, "seconds above 0, at most 1e9")
        return Tensor(self._store.create(name, *layout, pin, evict, seconds, replace, staged))

    def put(self, name: str, array: Any, **how: Any) -> Tensor:
        """Creates and publishes a tensor with the elements of an array.

        The tensor gets its name once it is complete. With ``replace=True``, the name refers to the old tensor until
        then.

        Parameters
        ----------
        name
            Name of the tensor.
        array
            NumPy array, or an object that NumPy can convert to one. Supported dtypes are NumPy's numbers and booleans,
            and bfloat16, float8_e4m3fn and float8_e5m2 from ml_dtypes. Other byte orders are converted.
        **how
            Options of `stage`.

        Raises
        ------
        TypeError
            The array has objects or dates, or is masked.
        """
        try:
            source = np.asanyarray(array)
        except (TypeError, RuntimeError) as error:  # such as PyTorch's bfloat16
            raise TypeError(
                f"array: invalid type {type(array).__name__} ({error}); allowed: objects that NumPy can convert"
            ) from error
        check_array("array", source)
        source = source.astype(source.dtype.newbyteorder("="), copy=False)
        made = self.stage(name, source.shape, source.dtype, **how)
        made._held.write(np.ascontiguousarray(source).reshape(-1).view(np.uint8))
        made.publish()
        made.commit()
        return made

    def get(self, name: str) -> Tensor:
        """Returns the tensor with this name. Raises TensorNotFound if there is none."""
        return Tensor(self._store.get(name))

    def wait(self, name: str, timeout: float) -> Tensor:
        """Waits until a tensor with this name exists and returns it. Raises TimeoutError after `timeout` seconds."""
        return Tensor(self._store.wait(name, _seconds("timeout", timeout)))

    def delete(self, name: str, generation: int = 0) -> None:
        """Deletes the name. Processes that hold a lease keep the tensor.

        If `generation` is not 0, the name is deleted only if the tensor still has that generation.
        """
        self._store.delete(name, generation)

    def list(self) -> builtins.list[dict[str, Any]]:
        """Describes all named tensors.

        Each entry has ``name``, ``dtype``, ``shape``, ``bytes``, ``generation``, ``leases``, ``pinned``, ``sealed``,
        ``created`` and ``expires``.
        """
        return self._store.list()

    def stat(self, name: str) -> dict[str, Any]:
        """Describes one tensor, with the fields of `list`. Raises TensorNotFound if there is none with this name."""
        return self._store.stat(name)

    def status(self) -> dict[str, Any]:
        """Returns the store's status: device, memory, tensors, leases and clients."""
        found: dict[str, Any] = json.loads(self._store.status())
        return found

    def pin(self, name: str, pinned: bool = True) -> None:
        """Protects a tensor from eviction or, with ``pinned=False``, allows its eviction again."""
        self._store.pin(name, pinned)

    def seal(self, name: str) -> None:
        """Declares that a tensor will not be written again. This is a convention between processes, not a lock."""
        self._store.seal(name)

    def evict(self, nbytes: int = 0) -> int:
        """Deletes tensors that are neither leased nor pinned, least recently used first; returns the bytes freed.

        `nbytes` is the number of bytes to free; 0 deletes all such tensors.
        """
        return self._store.evict(nbytes)


def connect(socket: str | os.PathLike[str] | None = None, patience: float = 10.0) -> Store:
    """Connects to the store that listens at `socket`; see `Store`."""
    return Store(socket, patience)


__all__ = [
    "Store",
    "StoreError",
    "StoreFull",
    "StoreLimit",
    "StoreUnreachable",
    "Tensor",
    "TensorExists",
    "TensorNotFound",
    "connect",
    "standard_socket",
]
