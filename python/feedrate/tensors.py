"""Tensors by name, in memory that all processes of a machine share and that outlives its makers.

A daemon owns the memory: ``feedrate store serve``. ::

    store = feedrate.tensors.connect("/tmp/store.sock")
    weights = store.put("weights", array)              # in this process
    weights = store.wait("weights", timeout=5)         # in another: the same memory
    array = weights.numpy()                            # without a copy; torch.from_dlpack(weights) likewise

A lease on a tensor lives as long as the `Tensor` and all arrays made of it.
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
from .buffers import check_array
from .errors import StoreError, StoreFull, StoreLimit, StoreUnreachable, TensorExists, TensorNotFound

# Names of NumPy, ml_dtypes and PyTorch; the store's own are allowed, too.
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
    """The store's name of a dtype of NumPy's or PyTorch's, or of its name."""
    if isinstance(dtype, str):
        name = dtype
    elif str(dtype).startswith("torch."):
        name = str(dtype).removeprefix("torch.")
    else:
        try:
            if dtype is None:  # NumPy takes it for float64
                raise TypeError
            name = np.dtype(dtype).name
        except TypeError:
            raise TypeError(f"dtype: {dtype!r} is not possible; allowed: {', '.join([*_DTYPES, 'bool'])}") from None
    return _DTYPES.get(name, name)


def _lengths(name: str, given: Any) -> builtins.list[int]:
    try:
        lengths = [operator.index(one) for one in ([given] if hasattr(given, "__index__") else given)]
    except TypeError:
        raise TypeError(f"{name}: {given!r} is not possible; allowed: a whole number, or several") from None
    if not all(-(2**63) <= one < 2**63 for one in lengths):
        raise ValueError(f"{name}: {given!r} is not possible; allowed: whole numbers of 64 bits")
    return lengths


def _seconds(name: str, given: Any, allowed: str = "seconds") -> float:
    if not isinstance(given, numbers.Real) or math.isnan(given):
        kind = ValueError if isinstance(given, numbers.Real) else TypeError
        raise kind(f"{name}: {given!r} is not possible; allowed: {allowed}")
    return float(given)


def _ttl(given: Any) -> float | None:
    return None if given is None else _seconds("ttl", given, "seconds above 0, at most 1e9")


def _stream_address(stream: Any) -> int:
    """Of a stream of PyTorch's, CuPy's, or one that has the protocol ``__cuda_stream__``."""
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        return int((protocol() if callable(protocol) else protocol)[1])
    for name in ("cuda_stream", "ptr"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    if isinstance(stream, int):
        return stream
    raise TypeError(f"stream: {type(stream).__name__} is not possible; allowed: a CUDA stream, or its address")


def standard_socket() -> str:
    """Where a user's own store listens when nobody says otherwise.

    Raises
    ------
    ValueError
        The system gives this user no folder of its own (``$XDG_RUNTIME_DIR``).
    """
    socket = os.environ.get("FEEDRATE_SOCKET")
    if socket:
        return socket
    folder = os.environ.get("XDG_RUNTIME_DIR")
    if not folder:
        raise ValueError("socket: '' is not possible; allowed: a path (there is no $XDG_RUNTIME_DIR for a standard one)")
    return folder + "/feedrate-store.sock"


class Tensor:
    """A lease on a tensor: while it lives, or an array made of it, the memory stays, whoever deletes the name."""

    def __init__(self, held: _core.StoreTensor) -> None:
        self._held = held

    @property
    def name(self) -> str:
        return self._held.name

    @property
    def generation(self) -> int:
        """Tells it from a later tensor of its name."""
        return self._held.generation

    @property
    def dtype(self) -> str:
        """The store's name of the elements' type: ``"f32"``, ``"bf16"`` and so on."""
        return self._held.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._held.shape)

    @property
    def strides(self) -> tuple[int, ...] | None:
        """In elements; None: row by row."""
        return tuple(self._held.strides) or None

    @property
    def nbytes(self) -> int:
        return self._held.bytes

    @property
    def deleted(self) -> bool:
        """Whether its name was deleted; the memory stays."""
        return self._held.deleted

    @property
    def sealed(self) -> bool:
        """Whether nobody shall write any more."""
        return self._held.sealed

    @property
    def version(self) -> int:
        """Of what was published last; 0: nothing yet, all is zero."""
        return self._held.version

    def publish(self, stream: Any = None) -> int:
        """Says that what was written is whole: the next version, whose number it returns. One writer at a time.

        Parameters
        ----------
        stream : optional
            Of the tensor's GPU: PyTorch's, CuPy's, any with ``__cuda_stream__``, or a number. The version is whole once
            the stream comes there; nobody waits.

        Raises
        ------
        ValueError
            A stream for a tensor in host memory.
        """
        return self._held.publish() if stream is None else self._held.publish_on(_stream_address(stream))

    def commit(self) -> None:
        """Gives a tensor of `Store.stage` its name, once. Raises TensorExists, ValueError if it has had its name."""
        self._held.commit()

    def wait_on(self, stream: Any, version: int) -> None:
        """Holds a stream, as `publish` takes one, until that version or a later one is whole. This thread goes on."""
        self._held.wait_on(_stream_address(stream), version)

    def wait_for(self, version: int, timeout: float) -> bool:
        """Waits for that version or a later one; False when none comes within `timeout` seconds."""
        return self._held.wait_for(version, _seconds("timeout", timeout))

    def numpy(self) -> NDArray[Any]:
        """The elements as an array, without a copy. Raises ValueError for dtypes that NumPy does not have."""
        if self._held.cuda_index >= 0:
            raise ValueError(f"tensor '{self.name}' lies in a GPU's memory; torch.from_dlpack and cupy.asarray take it")
        if self.dtype in _NO_NUMPY:
            raise ValueError(f"dtype: '{self.dtype}' is not possible; allowed: NumPy's; torch.from_dlpack takes it")
        return self._held.numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError("another dtype needs a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, *, copy: bool | None = None, **how: Any) -> Any:
        """Without a copy. Nothing orders the consumer's stream behind a writer: `wait_on` does."""
        if copy:
            raise BufferError(f"tensor '{self.name}' is exported without a copy; copy what you made of it")
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
        """Of a tensor whose first dimension is 2: where the next version is written; `publish` ends it.

        Readers of the last version look at the other half.
        """
        half: NDArray[Any] = self.numpy()[self._held.begin_half()]
        return half

    def read_half(self) -> tuple[int, NDArray[Any]]:
        """The last version's number and a copy of it, whole whatever is written meanwhile."""
        copy = np.empty(self.shape[1:], self.numpy().dtype)
        version = self._held.read_half(copy.reshape(-1).view(np.uint8))
        return version, copy

    def __repr__(self) -> str:
        return f"<feedrate.tensors.Tensor '{self.name}' {self.dtype}{list(self.shape)} generation {self.generation}>"


class Store:
    """A connection to a store. Any thread; of one process: a child made by fork connects by itself.

    Parameters
    ----------
    socket : str, optional
        Where the store listens; default: ``$FEEDRATE_SOCKET``, else in ``$XDG_RUNTIME_DIR``.
    patience : float
        Seconds that an answer may take.

    Raises
    ------
    StoreUnreachable
        No store answers there.
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
        """A new tensor, all zero.

        Parameters
        ----------
        dtype
            Of NumPy's or PyTorch's, or a name, the store's own too.
        strides
            In elements; none: row by row.
        pin
            It is never evicted.
        evict
            Where there is no room, others are evicted that nobody holds or pinned.
        ttl
            Seconds after which its name is deleted: above 0, at most 1e9.

        Raises
        ------
        TensorExists, StoreFull, StoreLimit, ValueError
        """
        layout = _dtype_name(dtype), _lengths("shape", shape), _lengths("strides", strides)
        return Tensor(self._store.create(name, *layout, pin, evict, _ttl(ttl)))

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
        """As `create`, but the tensor gets its name from `Tensor.commit`: no reader finds it half written.

        A tensor that is never committed goes with its last lease.

        Parameters
        ----------
        replace
            The commit takes the name from the tensor that has it, which keeps it until then. The store must have memory
            for both.
        """
        layout = _dtype_name(dtype), _lengths("shape", shape), _lengths("strides", strides)
        return Tensor(self._store.stage(name, *layout, pin, evict, _ttl(ttl), replace))

    def put(self, name: str, array: Any, **how: Any) -> Tensor:
        """A new tensor with the elements of an array (NumPy's, or what NumPy makes one of); published.

        It has its name once it is whole. Options are those of `stage`: with ``replace=True``, the name leads to the old
        tensor until then.

        The dtypes are NumPy's numbers and truth values, and ml_dtypes' bfloat16, float8_e4m3fn and float8_e5m2. What is
        in another byte order is converted. TypeError for objects, dates and masked arrays.
        """
        try:
            source = np.asanyarray(array)
        except (TypeError, RuntimeError) as error:  # such as PyTorch's bfloat16
            raise TypeError(
                f"array: a {type(array).__name__} is not possible ({error}); allowed: what NumPy makes an array of"
            ) from error
        check_array("array", source)
        source = source.astype(source.dtype.newbyteorder("="), copy=False)
        made = self.stage(name, source.shape, source.dtype, **how)
        made._held.write(np.ascontiguousarray(source).reshape(-1).view(np.uint8))
        made.publish()
        made.commit()
        return made

    def get(self, name: str) -> Tensor:
        """The tensor that has the name. Raises TensorNotFound."""
        return Tensor(self._store.get(name))

    def wait(self, name: str, timeout: float) -> Tensor:
        """The same, once there is one. Raises TimeoutError after `timeout` seconds."""
        return Tensor(self._store.wait(name, _seconds("timeout", timeout)))

    def delete(self, name: str, generation: int = 0) -> None:
        """Deletes the name; who holds the tensor keeps it. `generation`: only if it is still that one's."""
        self._store.delete(name, generation)

    def list(self) -> builtins.list[dict[str, Any]]:
        """All that have a name: ``name``, ``dtype``, ``shape``, ``bytes``, ``generation``, ``leases``, ``pinned`` …"""
        return self._store.list()

    def stat(self, name: str) -> dict[str, Any]:
        """The same of one tensor. Raises TensorNotFound."""
        return self._store.stat(name)

    def status(self) -> dict[str, Any]:
        """What the store says of itself: device, memory, tensors, leases, clients."""
        found: dict[str, Any] = json.loads(self._store.status())
        return found

    def pin(self, name: str, pinned: bool = True) -> None:
        """Never evicts it; or again, when it is its turn."""
        self._store.pin(name, pinned)

    def seal(self, name: str) -> None:
        """Nobody shall write any more: a rule among those who keep to it, not a lock."""
        self._store.seal(name)

    def evict(self, nbytes: int = 0) -> int:
        """Deletes what nobody holds or pinned, least recently used first, until so many bytes are freed; 0: all of it."""
        return self._store.evict(nbytes)


def connect(socket: str | os.PathLike[str] | None = None, patience: float = 10.0) -> Store:
    """A connection to the store that listens at `socket`; see `Store`."""
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
