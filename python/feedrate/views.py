"""Blocks of messages and of results: NumPy views of the ring's slots."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .buffers import check_array
from .errors import ViewExpired

HEADER = np.dtype([("id", "<u8"), ("length", "<u4"), ("checksum", "<u4")])
FAILED = 0x8000_0000
FAULTS = ("none", "bad_length", "too_long", "refused", "again", "expired", "worker_died", "bad_version")


@cache
def slot_type(payload_bytes: int, slot_bytes: int) -> np.dtype[np.void]:
    """Returns the dtype of a slot: id, length, checksum and payload, with padding up to `slot_bytes`."""
    return np.dtype({
        "names": ["id", "length", "checksum", "payload"],
        "formats": ["<u8", "<u4", "<u4", ("u1", (payload_bytes,))],
        "offsets": [0, 8, 12, HEADER.itemsize],
        "itemsize": slot_bytes,
    })  # fmt: skip


class Lease:
    """Records whether a block has ended, after which its slots must not be used."""

    __slots__ = ("ended",)

    def __init__(self) -> None:
        self.ended = False


class SlotView(np.ndarray):
    """An array of slots whose every use raises `ViewExpired` once its block has ended.

    A plain array made from a view (``np.asarray``, ``memoryview``) cannot detect the end of the block. It keeps the
    slots' memory alive, so it may read later messages but never freed memory.
    """

    _lease: Lease | None = None

    def __array_finalize__(self, made_from: Any) -> None:
        if made_from is not None:
            self._lease = np.ndarray.__getattribute__(made_from, "__dict__").get("_lease") if isinstance(
                made_from, SlotView
            ) else None

    def __getattribute__(self, name: str) -> Any:
        if name not in _ALWAYS:
            _check(self)
        return super().__getattribute__(name)

    def __getitem__(self, key: Any) -> Any:
        _check(self)
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _check(self)
        if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:  # NumPy converts objects by value
            check_array("value", value)
        super().__setitem__(key, value)

    def __len__(self) -> int:
        _check(self)
        return super().__len__()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        outputs = options.get("out")
        if outputs is not None:
            options["out"] = tuple(_plain(one) for one in outputs)
        return getattr(ufunc, method)(*(_plain(one) for one in inputs), **options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        _check(self)
        return super().__array_function__(function, types, arguments, options)


# Attributes that remain accessible after the end of the block: Python and NumPy need them to destroy the view.
_ALWAYS = frozenset(("_lease", "__class__", "__dict__", "__array_ufunc__", "__array_function__", "__array_finalize__"))


def _check(view: SlotView) -> None:
    lease = view._lease
    if lease is not None and lease.ended:
        raise ViewExpired("this view's block has ended; its slots may already hold other messages")


def _plain(one: Any) -> Any:
    """Returns a plain array of the same memory, after checking that the block has not ended."""
    if not isinstance(one, SlotView):
        return one
    _check(one)
    return one.view(np.ndarray)


def _leased(array: NDArray[Any], lease: Lease) -> SlotView:
    view = array.view(SlotView)
    view._lease = lease
    return view


class _Block:
    """The slots of one ``with`` block."""

    def __init__(self, slots: NDArray[np.uint8], payload_bytes: int) -> None:
        self._lease = Lease()
        self._count = len(slots)
        self._all = slots.view(slot_type(payload_bytes, slots.strides[0]))[:, 0]
        headers = slots[:, : HEADER.itemsize].view(HEADER)[:, 0]
        self._headers = headers
        self.payload: SlotView = _leased(slots[:, HEADER.itemsize : HEADER.itemsize + payload_bytes], self._lease)
        self.id: SlotView = _leased(headers["id"], self._lease)

    @property
    def slots(self) -> SlotView:
        """The slots including their headers, as records with the fields ``id``, ``length``, ``checksum``, ``payload``.

        Slots are adjacent in memory, so ``slots.view("u8")`` is one contiguous array, which NumPy processes fastest.
        Records are sent exactly as written. The ``length`` of a failed result is `FAILED` combined with its fault. A
        single record, such as ``slots[0]``, is a plain NumPy record and cannot detect the end of the block.
        """
        return _leased(self._all, self._lease)

    def __len__(self) -> int:
        return self._count

    def _end(self) -> None:
        self._lease.ended = True


class Messages(_Block):
    """Empty messages, to be written in place.

    Attributes
    ----------
    payload : array of uint8, shape (messages, message_bytes)
        Payloads of the messages. They contain old data at first: overwrite all bytes, or reduce `length`.
    length : array of uint32, shape (messages,)
        Size of each message in bytes; initially message_bytes.
    id : array of uint64, shape (messages,)
        Identifiers, which are returned with the results. By default the ring numbers its messages from 0.
    count : int
        Number of messages to send at the end of the block; initially all. 0 sends none.
    """

    def __init__(self, slots: NDArray[np.uint8], message_bytes: int) -> None:
        super().__init__(slots, message_bytes)
        self.length: SlotView = _leased(self._headers["length"], self._lease)
        self.count = self._count

    def _valid(self) -> None:
        self.count = operator.index(self.count)
        if not 0 <= self.count <= self._count:
            raise ValueError(f"count: invalid value {self.count}; allowed: 0 to {self._count}, the number reserved")


class Answers(_Block):
    """Results that have arrived, to be read in place.

    Attributes
    ----------
    payload : array of uint8, shape (results, result_bytes)
        Payloads of the results, read-only. Only the first `length` bytes of each row are valid.
    length : array of uint32, shape (results,)
        Size of each result in bytes; 0 for a failed message.
    status : array of int32, shape (results,)
        0 for success, otherwise an index into `feedrate.FAULTS`. This array is a copy and may be kept after the block.
    id : array of uint64, shape (results,)
        Identifiers of the messages.
    """

    def __init__(self, slots: NDArray[np.uint8], some_failed: bool, result_bytes: int) -> None:
        super().__init__(slots, result_bytes)
        words = self._headers["length"]
        if some_failed:
            failed = (words & FAILED) != 0
            self.status: NDArray[np.int32] = np.where(failed, words & ~np.uint32(FAILED), 0).astype(np.int32)
            lengths = np.where(failed, 0, words).astype(np.uint32)
        else:
            self.status = np.zeros(len(words), np.int32)
            lengths = words
        self.length: SlotView = _leased(lengths, self._lease)
        self.payload.flags.writeable = False
        self._all.flags.writeable = False


def _lengths(sizes: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Validates `sizes` and returns them as an array of result lengths, none longer than a row of `shape`. Raises
    ValueError or TypeError for invalid lengths."""
    lengths = np.asarray(sizes)
    if lengths.dtype.kind not in "iu":
        raise TypeError(f"lengths: invalid dtype {lengths.dtype}; allowed: integers")
    if lengths.size and not (0 <= lengths.min() and lengths.max() <= shape[1]):
        outside = lengths[(lengths < 0) | (lengths > shape[1])].flat[0]
        raise ValueError(f"lengths: invalid value {outside}; allowed: 0 to {shape[1]}, the size of a row of results")
    return lengths


def serve_batches(
    function: Callable[..., Any], message_bytes: int, result_bytes: int, failed: Callable[[BaseException], None]
) -> Callable[[NDArray[np.uint8], NDArray[np.uint8]], None]:
    """Adapts a function on batches to the extension, which calls it with rows of slots. If the function raises an
    exception, the batch fails and `failed` gets the exception."""

    def serve(slots_in: NDArray[np.uint8], slots_out: NDArray[np.uint8]) -> None:
        head_in, head_out = (slots[:, : HEADER.itemsize].view(HEADER)[:, 0] for slots in (slots_in, slots_out))
        head_out["id"] = head_in["id"]
        head_out["checksum"] = 0
        lengths = head_in["length"].copy()
        # A copy, because the function may keep the array after the slots are reused.
        messages = slots_in[:, HEADER.itemsize : HEADER.itemsize + message_bytes].copy()
        messages.flags.writeable = False
        try:
            given = function(messages, lengths)
            results, sizes = given if isinstance(given, tuple) else (given, None)
            results = np.asanyarray(results)
            check_array("results", results)
            rows = np.ascontiguousarray(results)
            if rows.shape[:1] != lengths.shape:
                raise ValueError(f"the function returned results of shape {rows.shape} for {len(lengths)} messages")
            rows = rows.reshape(len(lengths), -1).view(np.uint8)
            if rows.shape[1] > result_bytes:
                raise ValueError(f"results of {rows.shape[1]} bytes are longer than result_bytes, {result_bytes}")
            slots_out[:, HEADER.itemsize : HEADER.itemsize + rows.shape[1]] = rows
            head_out["length"] = rows.shape[1] if sizes is None else _lengths(sizes, rows.shape)
        except BaseException as error:  # noqa: BLE001  (any exception is reported to the senders of the messages)
            head_out["length"] = FAILED | FAULTS.index("refused")
            # The traceback omits this frame, which holds references to the slots.
            failed(error.with_traceback(error.__traceback__.tb_next if error.__traceback__ else None))

    return serve
