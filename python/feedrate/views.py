"""Blocks of messages and of results, as NumPy views of the ring's slots."""

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
    """A slot: the fields id, length, checksum and payload, and what fills it up to `slot_bytes`."""
    return np.dtype({
        "names": ["id", "length", "checksum", "payload"],
        "formats": ["<u8", "<u4", "<u4", ("u1", (payload_bytes,))],
        "offsets": [0, 8, 12, HEADER.itemsize],
        "itemsize": slot_bytes,
    })  # fmt: skip


class Lease:
    """Whether a block's slots may still be used."""

    __slots__ = ("ended",)

    def __init__(self) -> None:
        self.ended = False


class SlotView(np.ndarray):
    """An array of slots that knows when its block has ended. From then on every use raises `ViewExpired`.

    What NumPy made of it as a plain array (``np.asarray``, ``memoryview``) cannot know; it keeps the slots' memory, so
    it reads what lies there later, and never freed memory.
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
        if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:  # NumPy takes objects by their values
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


# What may be asked of a view whose block has ended: what Python and NumPy need to drop it.
_ALWAYS = frozenset(("_lease", "__class__", "__dict__", "__array_ufunc__", "__array_function__", "__array_finalize__"))


def _check(view: SlotView) -> None:
    lease = view._lease
    if lease is not None and lease.ended:
        raise ViewExpired("this view's block has ended: its slots hold other messages by now")


def _plain(one: Any) -> Any:
    """A plain array of the same memory, after a look whether that may be used."""
    if not isinstance(one, SlotView):
        return one
    _check(one)
    return one.view(np.ndarray)


def _leased(array: NDArray[Any], lease: Lease) -> SlotView:
    view = array.view(SlotView)
    view._lease = lease
    return view


class _Block:
    """Slots between the entry of a ``with`` block and its end."""

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
        """The slots themselves, headers and all, as records (messages,) with the fields ``id``, ``length``, ``checksum``
        and ``payload``. They lie side by side, so that ``slots.view("u8")`` is one contiguous array: NumPy is fastest
        there. What is written there is sent as it is; the `length` of a failed result is `FAILED` and its fault. A single
        record, ``slots[0]``, is a plain one of NumPy's, which cannot know when its block has ended."""
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
        What is sent. It holds what lay there before: write all of it, or shorten `length`.
    length : array of uint32, shape (messages,)
        Bytes of each message; at first message_bytes.
    id : array of uint64, shape (messages,)
        Comes back with the result; at first counts up from 0.
    count : int
        How many are sent at the end of the block; at first all. 0 sends none.
    """

    def __init__(self, slots: NDArray[np.uint8], message_bytes: int) -> None:
        super().__init__(slots, message_bytes)
        self.length: SlotView = _leased(self._headers["length"], self._lease)
        self.count = self._count

    def _valid(self) -> None:
        self.count = operator.index(self.count)
        if not 0 <= self.count <= self._count:
            raise ValueError(f"count: {self.count} is not possible; allowed: 0 to {self._count}, what was reserved")


class Answers(_Block):
    """Results that have come, to be read in place.

    Attributes
    ----------
    payload : array of uint8, shape (results, result_bytes)
        Read-only. Of each row the first `length` bytes count.
    length : array of uint32, shape (results,)
        Bytes of each result; 0 of a failed one.
    status : array of int32, shape (results,)
        0: ok; else an index of `feedrate.FAULTS`. A copy: it may be kept.
    id : array of uint64, shape (results,)
        Of the message.
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
    """Of results in rows of `shape`. Raises ValueError or TypeError for what is no length of such a row."""
    lengths = np.asarray(sizes)
    if lengths.dtype.kind not in "iu":
        raise TypeError(f"lengths: {lengths.dtype} is not possible; allowed: integers")
    if lengths.size and not (0 <= lengths.min() and lengths.max() <= shape[1]):
        outside = lengths[(lengths < 0) | (lengths > shape[1])].flat[0]
        raise ValueError(f"lengths: {outside} is not possible; allowed: 0 to {shape[1]}, the bytes of a row of the results")
    return lengths


def serve_batches(
    function: Callable[..., Any], message_bytes: int, result_bytes: int, failed: Callable[[BaseException], None]
) -> Callable[[NDArray[np.uint8], NDArray[np.uint8]], None]:
    """Makes of a function on batches what the extension calls with rows of slots. An exception of the function fails
    the batch, and goes to `failed`."""

    def serve(slots_in: NDArray[np.uint8], slots_out: NDArray[np.uint8]) -> None:
        head_in, head_out = (slots[:, : HEADER.itemsize].view(HEADER)[:, 0] for slots in (slots_in, slots_out))
        head_out["id"] = head_in["id"]
        head_out["checksum"] = 0
        lengths = head_in["length"].copy()
        # A copy: the function may keep it longer than the slots last.
        messages = slots_in[:, HEADER.itemsize : HEADER.itemsize + message_bytes].copy()
        messages.flags.writeable = False
        try:
            given = function(messages, lengths)
            results, sizes = given if isinstance(given, tuple) else (given, None)
            results = np.asanyarray(results)
            check_array("results", results)
            rows = np.ascontiguousarray(results)
            if rows.shape[:1] != lengths.shape:
                raise ValueError(f"{len(lengths)} messages got results of the shape {rows.shape}")
            rows = rows.reshape(len(lengths), -1).view(np.uint8)
            if rows.shape[1] > result_bytes:
                raise ValueError(f"results of {rows.shape[1]} bytes; result_bytes is {result_bytes}")
            slots_out[:, HEADER.itemsize : HEADER.itemsize + rows.shape[1]] = rows
            head_out["length"] = rows.shape[1] if sizes is None else _lengths(sizes, rows.shape)
        except BaseException as error:  # noqa: BLE001  (whatever it is: the caller of the messages hears of it)
            head_out["length"] = FAILED | FAULTS.index("refused")
            # Without this frame, which holds the slots.
            failed(error.with_traceback(error.__traceback__.tb_next if error.__traceback__ else None))

    return serve
