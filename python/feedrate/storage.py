"""Reads records of files and block devices into GPU memory or host memory, and writes them back.

::

    source = feedrate.storage.open(["train-0.bin", "train-1.bin"])    # the files lie end to end
    images = source.add_kind("images", record_bytes=150_528)
    images.read(0, 256, batch)                                        # 256 records, side by side, into a tensor
    later = images.read_async(256, 256, other)
    later.wait()

A destination is an array in the source's device (DLPack, ``__cuda_array_interface__``, NumPy), or an address.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import operator
import os
import weakref
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from .arrays import LEGACY_STREAM, Array, stream_address
from .errors import Error, StorageError
from .kernels import device_of

_FOREVER = 1e9  # seconds
_ANY = -1  # index of a GPU that an object does not name


class _Place:
    """Where the bytes of a destination or an origin are. It keeps the memory."""

    def __init__(self, name: str, given: Any, needed: int, device: tuple[str, int], stream: int, written: bool) -> None:
        self._given = given
        if hasattr(given, "__index__") and not hasattr(given, "__dlpack__"):
            self.address = operator.index(given)
            if not 0 <= self.address < 2**64 or (self.address == 0 and needed):
                raise ValueError(f"{name}: invalid address {self.address}; allowed: an address in the device's memory")
            return
        found = self._of_interface(name, given, written) or self._of_array(name, given, stream, written)
        self.address, size, where = found
        if where != device and where != (device[0], _ANY):
            raise ValueError(f"{name}: invalid device {_text(where)}; allowed: {_text(device)}, that of the source")
        if size < needed:
            raise ValueError(f"{name}: invalid size of {size} bytes; allowed: at least {needed} bytes")

    def _of_interface(self, name: str, given: Any, written: bool) -> tuple[int, int, tuple[str, int]] | None:
        """Returns address, bytes and device of an object with ``__cuda_array_interface__`` but without DLPack (PyCUDA)."""
        if hasattr(given, "__dlpack__") or not hasattr(given, "__cuda_array_interface__"):
            return None
        about = given.__cuda_array_interface__
        address, read_only = about["data"]
        if written and read_only:
            raise ValueError(f"{name}: invalid read-only array; allowed: writable arrays")
        if about.get("strides") is not None:
            raise ValueError(f"{name}: invalid strides {about['strides']}; allowed: contiguous arrays")
        size = int(np.prod(about["shape"], dtype=np.int64)) * np.dtype(about["typestr"]).itemsize
        return int(address), size, ("cuda", _ANY)

    def _of_array(self, name: str, given: Any, stream: int, written: bool) -> tuple[int, int, tuple[str, int]]:
        if not hasattr(given, "__dlpack__") and not isinstance(given, np.ndarray):
            with contextlib.suppress(TypeError, ValueError, BufferError):
                given = np.frombuffer(given, dtype=np.uint8)
        self._array = Array(name, given, stream, written)
        if not self._array.in_rows():
            raise ValueError(f"{name}: invalid strides {self._array.strides}; allowed: contiguous arrays")
        return self._array.address, self._array.bytes, self._array.device


def _text(device: tuple[str, int]) -> str:
    return f"{device[0]}:{device[1]}" if device[0] == "cuda" else device[0]


def _count(name: str, given: Any, least: int = 0, most: int = 2**63 - 1) -> int:
    try:
        value = operator.index(given)
    except TypeError:
        raise TypeError(f"{name}: invalid type {type(given).__name__}; allowed: an integer") from None
    if not least <= value <= most:
        raise ValueError(f"{name}: invalid value {value}; allowed: {least} to {most}")
    return value


def _numbers(name: str, given: Any) -> NDArray[np.uint64]:
    values = np.asarray(given)
    if values.size and values.dtype.kind not in "iu":
        raise TypeError(f"{name}: invalid dtype {values.dtype}; allowed: integers")
    if values.ndim != 1:
        raise ValueError(f"{name}: invalid shape {values.shape}; allowed: one dimension")
    if values.size and values.min() < 0:
        raise ValueError(f"{name}: invalid value {values.min()}; allowed: 0 and above")
    return np.ascontiguousarray(values, dtype=np.uint64)


class Pending:
    """A read or write that is under way. It keeps the memory of its destination.

    If it is dropped before its end, that waits, because the memory may be freed then.
    """

    def __init__(self, held: _core.StoragePending, result: Any) -> None:
        self._held = held
        self._result = result

    @property
    def ready(self) -> bool:
        """Whether it has ended, successfully or not."""
        return self._held.ready()

    def wait(self, timeout: float | None = None) -> Any:
        """Waits for the end, and returns the destination.

        Raises
        ------
        StorageError
            A file or a drive failed; other requests are not affected.
        TimeoutError
            It has not ended within `timeout` seconds; it goes on.
        """
        if not self._held.wait_for(_FOREVER if timeout is None else float(timeout)):
            raise TimeoutError(f"the request has not ended within {timeout} seconds")
        return self._result


class Kind:
    """Records in an extent of a source; made by `Source.add_kind`."""

    def __init__(self, source: Source, number: int, name: str, record_bytes: int | None) -> None:
        self._source = source
        self._number = number
        self._name = name
        self._record_bytes = record_bytes

    @property
    def name(self) -> str:
        """Name of the kind."""
        return self._name

    @property
    def record_bytes(self) -> int | None:
        """Size of each record; None if they differ."""
        return self._record_bytes

    def __len__(self) -> int:
        return self._source._core.records(self._number)

    def bytes_of(self, first: int, count: int = 1) -> int:
        """Bytes of `count` consecutive records."""
        return self._source._core.bytes_of(self._number, _count("first", first), _count("count", count))

    def sizes(self, indices: Any) -> list[int]:
        """Bytes of each of these records."""
        numbers = _numbers("indices", indices)
        return self._source._core.sizes(np.full(len(numbers), self._number, np.uint64), numbers)

    def read(self, first: int, count: int, destination: Any = None) -> Any:
        """Reads consecutive records, side by side, into `destination`, and returns it.

        Parameters
        ----------
        first, count : int
            The records.
        destination : array or int
            A contiguous writable array in the source's device, or an address. None: a new array of bytes of NumPy, or on
            GPUs of PyTorch or CuPy, with one row per record if they have one size.
        """
        return self.read_async(first, count, destination).wait()

    def read_async(self, first: int, count: int, destination: Any = None, stream: Any = None) -> Pending:
        """Starts the same read.

        Parameters
        ----------
        stream : CUDA stream or int
            The read begins once the work queued on this stream so far has ended, and later work on it waits for the
            data. Until then no thread may make a call that waits for the entire GPU. None: the read begins after the
            work that the owner of `destination` has queued, and only `wait` waits for the data. GPUs only.
        """
        first, count = _count("first", first), _count("count", count)
        needed = self._source._core.bytes_of(self._number, first, count)
        if destination is None:
            shape = (count, self._record_bytes) if self._record_bytes else (needed,)
            destination = self._source._empty(shape)
        order = self._source._order(stream)
        place = self._source._place("destination", destination, needed, order, True)
        core = self._source._core
        return self._source._pending(core.read(self._number, first, count, place.address, *order, place), destination)

    def read_batch(self, indices: Any, destination: Any = None) -> Any:
        """Reads the records with these indices, side by side in this order. Neighbours are read together."""
        return self.read_batch_async(indices, destination).wait()

    def read_batch_async(self, indices: Any, destination: Any = None, stream: Any = None) -> Pending:
        """Starts the same read; see `read_async`."""
        numbers = _numbers("indices", indices)
        kinds = np.full(len(numbers), self._number, np.uint64)
        shape = (len(numbers), self._record_bytes) if self._record_bytes else None
        return self._source._read_batch(kinds, numbers, destination, shape, stream)

    def write(self, first: int, count: int, origin: Any) -> None:
        """Writes consecutive records from `origin`, a contiguous array in the source's device or an address."""
        self.write_async(first, count, origin).wait()

    def write_async(self, first: int, count: int, origin: Any, stream: Any = None) -> Pending:
        """Starts the same write; see `read_async`."""
        first, count = _count("first", first), _count("count", count)
        needed = self._source._core.bytes_of(self._number, first, count)
        order = self._source._order(stream)
        place = self._source._place("origin", origin, needed, order, False)
        core = self._source._core
        return self._source._pending(core.write(self._number, first, count, place.address, *order, place), None)


class Source:
    """Files laid end to end, or one block device; made by `open`. Any thread may use it."""

    def __init__(self, core: _core.StorageSource, device: tuple[str, int], block_bytes: int) -> None:
        self._open: _core.StorageSource | None = core
        self._device = device
        self._kinds: dict[str, tuple[int, int | None]] = {}  # number and size of the records
        self._under_way: weakref.WeakSet[Pending] = weakref.WeakSet()
        self._block_bytes = block_bytes
        whole = core.bytes // block_bytes * block_bytes
        self._block_kind = core.add_kind("", 0, whole, block_bytes, np.empty(0, np.uint64))

    @property
    def _core(self) -> _core.StorageSource:
        if self._open is None:
            raise Error("the source is closed")
        return self._open

    @property
    def _blocks(self) -> Kind:
        return Kind(self, self._block_kind, "", self._block_bytes)

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return self._core.bytes

    @property
    def device(self) -> str:
        """The device whose memory holds destinations: ``"cpu"`` or ``"cuda:0"``."""
        return _text(self._device)

    @property
    def engine(self) -> str:
        """Name of the engine, and the reason for its choice."""
        return self._core.engine

    @property
    def block_bytes(self) -> int:
        """Size of a block of `read` and `write`."""
        return self._block_bytes

    def begin_of(self, file: int) -> int:
        """First byte of a file, by its position in the list of paths."""
        return self._core.begin_of(_count("file", file, 0, 2**32 - 1))

    def add_kind(
        self,
        name: str,
        *,
        record_bytes: int | None = None,
        offsets: Any = None,
        start: int = 0,
        bytes: int | None = None,
    ) -> Kind:
        """Adds a kind of records.

        Parameters
        ----------
        name : str
            Name for messages and for `kind`.
        record_bytes : int
            Size of each record.
        offsets : sequence of int
            Instead, where each record begins, from `start`, and where the last one ends.
        start : int
            First byte in the source.
        bytes : int
            Length of the extent, a multiple of `record_bytes`; default: as many records as fit.
        """
        given = _numbers("offsets", [] if offsets is None else offsets)
        size = 0 if record_bytes is None else _count("record_bytes", record_bytes)
        extent = None if bytes is None else _count("bytes", bytes)
        number = self._core.add_kind(str(name), _count("start", start), extent, size, given)
        self._kinds[str(name)] = number, record_bytes
        return self.kind(str(name))

    def kind(self, name: str) -> Kind:
        """The kind with that name. Raises KeyError."""
        if name not in self._kinds:
            raise KeyError(f"no kind {name!r}; there are: {', '.join(self._kinds) or 'none'}")
        number, record_bytes = self._kinds[name]
        return Kind(self, number, name, record_bytes)

    def read(self, block: int, count: int, destination: Any = None) -> Any:
        """Reads consecutive blocks of `block_bytes`; see `Kind.read`."""
        return self._blocks.read(block, count, destination)

    def read_async(self, block: int, count: int, destination: Any = None, stream: Any = None) -> Pending:
        """Starts the same read; see `Kind.read_async`."""
        return self._blocks.read_async(block, count, destination, stream)

    def write(self, block: int, count: int, origin: Any) -> None:
        """Writes consecutive blocks; see `Kind.write`."""
        self._blocks.write(block, count, origin)

    def write_async(self, block: int, count: int, origin: Any, stream: Any = None) -> Pending:
        """Starts the same write; see `Kind.read_async`."""
        return self._blocks.write_async(block, count, origin, stream)

    def read_bytes(self, start: int, bytes: int, destination: Any = None, stream: Any = None) -> Any:
        """Reads any bytes of the source; see `Kind.read`."""
        start, needed = _count("start", start), _count("bytes", bytes)
        if destination is None:
            destination = self._empty((needed,))
        order = self._order(stream)
        place = self._place("destination", destination, needed, order, True)
        held = self._core.read_bytes(start, needed, place.address, *order, place)
        return self._pending(held, destination).wait()

    def write_bytes(self, start: int, bytes: int, origin: Any, stream: Any = None) -> None:
        """Writes any bytes of the source; see `Kind.write`."""
        start, needed = _count("start", start), _count("bytes", bytes)
        order = self._order(stream)
        place = self._place("origin", origin, needed, order, False)
        self._pending(self._core.write_bytes(start, needed, place.address, *order, place), None).wait()

    def read_batch(self, records: Iterable[tuple[Kind, int]], destination: Any = None) -> Any:
        """Reads records of several kinds, side by side in this order. Neighbours are read together."""
        return self.read_batch_async(records, destination).wait()

    def read_batch_async(
        self, records: Iterable[tuple[Kind, int]], destination: Any = None, stream: Any = None
    ) -> Pending:
        """Starts the same read; see `Kind.read_async`."""
        pairs = []
        for kind, index in records:
            if kind._source is not self:
                raise ValueError(f"records: invalid kind {kind.name!r}; allowed: kinds of this source")
            pairs.append((kind._number, _count("record", index)))
        kinds, indices = np.array(pairs, np.uint64).reshape(-1, 2).T
        return self._read_batch(np.ascontiguousarray(kinds), np.ascontiguousarray(indices), destination, None, stream)

    def sync(self) -> None:
        """Waits until all data written so far is on the drive."""
        self._core.sync()

    def statistics(self) -> dict[str, int]:
        """Totals since the source was opened: records, record_bytes, requests, request_bytes, errors."""
        return self._core.statistics()

    def close(self) -> None:
        """Waits for the requests under way, and closes the files."""
        for pending in list(self._under_way):
            with contextlib.suppress(Error):
                pending.wait()
        self._open = None

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read_batch(
        self,
        kinds: NDArray[np.uint64],
        indices: NDArray[np.uint64],
        destination: Any,
        shape: tuple[int, ...] | None,
        stream: Any,
    ) -> Pending:
        if shape is not None:
            sizes = np.full(len(indices), shape[1], np.uint64)
        else:
            sizes = np.array(self._core.sizes(kinds, indices), np.uint64)
        ends = np.cumsum(sizes, dtype=np.uint64)
        needed = int(ends[-1]) if len(ends) else 0
        if destination is None:
            destination = self._empty(shape or (needed,))
        order = self._order(stream)
        place = self._place("destination", destination, needed, order, True)
        places = ends - sizes + np.uint64(place.address)
        return self._pending(self._core.read_batch(kinds, indices, places, *order, place), destination)

    def _pending(self, held: _core.StoragePending, result: Any) -> Pending:
        made = Pending(held, result)
        self._under_way.add(made)
        return made

    def _order(self, stream: Any) -> tuple[int | None, bool]:
        """The address of the stream after whose work a request begins (None on the CPU), and whether later work waits."""
        if self._device[0] == "cpu":
            if stream is not None:
                raise ValueError("stream: invalid value; allowed: None, because the source's device is the CPU")
            return None, False
        return (LEGACY_STREAM, False) if stream is None else (stream_address(stream), True)

    def _place(self, name: str, given: Any, needed: int, order: tuple[int | None, bool], written: bool) -> _Place:
        return _Place(name, given, needed, self._device, order[0] or LEGACY_STREAM, written)

    def _empty(self, shape: tuple[int, ...]) -> Any:
        """A new array of bytes: NumPy's, or in GPU memory PyTorch's or CuPy's."""
        if self._device[0] == "cpu":
            return np.empty(shape, np.uint8)
        if importlib.util.find_spec("torch"):
            torch = importlib.import_module("torch")
            return torch.empty(shape, dtype=torch.uint8, device=self.device)
        if importlib.util.find_spec("cupy"):
            cupy = importlib.import_module("cupy")
            with cupy.cuda.Device(self._device[1]):
                return cupy.empty(shape, np.uint8)
        raise TypeError("destination: invalid value None; allowed: an array in GPU memory, because there is no PyTorch or CuPy")


def open(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    device: str = "auto",
    engine: str = "auto",
    direct: bool = False,
    writable: bool = False,
    block_bytes: int = 512,
    request_bytes: int = 1 << 20,
    depth: int = 32,
    gap_bytes: int = 16 << 10,
) -> Source:
    """Opens files, laid end to end, or one block device.

    Parameters
    ----------
    paths : str or sequence of str
        One or several paths.
    device : str
        Where destinations are: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, or ``"auto"``: the first GPU, or the CPU without one.
    engine : str
        ``"threads"``, ``"io_uring"`` or ``"auto"``.
    direct : bool
        Bypass the page cache (O_DIRECT).
    writable : bool
        Open for writing as well.
    block_bytes : int
        Size of a block of `Source.read` and `Source.write`.
    request_bytes, depth : int
        Bytes of the largest request to the system, a multiple of 4096, and the number of requests in flight.
    gap_bytes : int
        A batch reads up to this many bytes between two records to read them together.

    Raises
    ------
    ValueError
        An option is invalid, or a path is neither a file nor a block device.
    feedrate.Error
        A path cannot be opened.
    """
    one = isinstance(paths, (str, os.PathLike))
    files = [os.fspath(path) for path in ([paths] if one else paths)]  # type: ignore[list-item, union-attr]
    for path in files:
        if not isinstance(path, str) or not path.isprintable():
            raise ValueError(f"paths: invalid value {path!r}; allowed: strings of printable characters")
    for name, value in (("device", device), ("engine", engine)):
        if not isinstance(value, str):
            raise TypeError(f"{name}: invalid type {type(value).__name__}; allowed: str")
    size = _count("block_bytes", block_bytes, 1, 1 << 40)
    request = _count("request_bytes", request_bytes, 4096, 256 << 20)
    if request % 4096:
        raise ValueError(f"request_bytes: invalid value {request}; allowed: multiples of 4096")
    where = device_of(device)
    if where[1] >= 1 << 16:
        raise ValueError(f"device: invalid value {device!r}; allowed: the index of a GPU")
    core = _core.StorageSource(
        files,
        where[0],
        where[1],
        engine,
        bool(direct),
        bool(writable),
        request,
        _count("depth", depth, 1, 4096),
        _count("gap_bytes", gap_bytes, 0, 256 << 20),
    )
    return Source(core, where, size)


__all__ = ["Kind", "Pending", "Source", "StorageError", "open"]
