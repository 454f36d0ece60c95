"""Feeds a training loop with batches of records, in an order that a resumed run continues exactly.

::

    source = feedrate.storage.open("train.bin")
    images = source.add_kind("images", record_bytes=150_528)
    loader = feedrate.Loader(images, 256, shuffle=1, shard=(rank, world))
    for batch in loader:                                  # an epoch; the next loop is the next epoch
        step(batch)
        save(loader.state_dict())                         # what has been delivered, not what has been read ahead

The order of an epoch is one sequence for all ranks: a permutation of the records that follows from the seed, the epoch and
the position alone. A step takes the next `batch_size` records for each rank in turn. So a state counts positions, and a run
may be resumed with another number of ranks or another batch size.
"""

from __future__ import annotations

import hashlib
import operator
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import StorageError
from .storage import Kind, Pending

_BAD = ("raise", "skip")
_ROUNDS = 6
_UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


def shuffled(positions: NDArray[np.uint64], records: int, seed: int, epoch: int) -> NDArray[np.uint64]:
    """The records at these positions of an epoch's order: a permutation of 0 to `records` - 1.

    It is a Feistel network over the next even number of bits; values that are too large walk through it again (Black and
    Rogaway, "Ciphers with arbitrary finite domains", 2002). So no list of all records is needed.
    """
    half = max(1, ((records - 1).bit_length() + 1) // 2)
    mask, shift = np.uint64((1 << half) - 1), np.uint64(half)
    digest = hashlib.blake2b(f"{seed} {epoch} {records}".encode(), digest_size=8 * _ROUNDS).digest()
    keys = np.frombuffer(digest, "<u8").astype(np.uint64)
    values = positions.astype(np.uint64)
    outside = np.ones(len(values), bool)
    while outside.any():
        some = values[outside]
        left, right = some >> shift, some & mask
        for key in keys:
            mixed = (right ^ key) * np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
            left, right = right, left ^ ((mixed >> np.uint64(32)) & mask)
        values[outside] = (left << shift) | right
        outside = values >= np.uint64(records)
    return values


def _bytes(name: str, given: int | str) -> int:
    if isinstance(given, str):
        number, unit = given[:-2], given[-2:]
        if unit in _UNITS and number.isdecimal():
            return int(number) * _UNITS[unit]
        raise ValueError(f"{name}: invalid value {given!r}; allowed: bytes, or a number with Ki, Mi or Gi")
    return _whole(name, given, 1)


def _whole(name: str, given: Any, least: int = 0) -> int:
    try:
        value = operator.index(given)
    except TypeError:
        raise TypeError(f"{name}: invalid type {type(given).__name__}; allowed: an integer") from None
    if value < least:
        raise ValueError(f"{name}: invalid value {value}; allowed: {least} and above")
    return value


class _Step:
    """A batch of this rank: planned, and then being read."""

    __slots__ = ("indices", "pending", "size", "until")

    def __init__(self, indices: NDArray[np.uint64], size: int, until: int) -> None:
        self.indices = indices
        self.size = size  # in bytes
        self.until = until  # the position of all ranks after this step
        self.pending: Pending | None = None


class Loader:
    """Batches of records in the memory of the source's device, read ahead.

    Iterating yields the rest of the current epoch; the next iteration is the next epoch.

    Parameters
    ----------
    records : Kind
        The records. If they have one size, a batch is an array with a row of bytes per record, else a tuple of the bytes
        side by side and the offsets of the records.
    batch_size : int
        Records per batch and rank. The last batch of an epoch may be smaller; ranks then share the rest evenly.
    prefetch : int or str
        Most bytes that are read ahead of the consumer, at least one batch: ``"256Mi"``. A slow consumer needs no more.
    shuffle : int or None
        Seed of the order; None: the records' own order.
    shard : (int, int)
        This process's rank, and the number of ranks. All ranks take the same number of steps, except that some have none
        in the last step of an epoch with fewer records than ranks.
    drop_last : bool
        Leave out the records after the last full step of all ranks.
    bad_records : str
        ``"raise"``, or ``"skip"``: batches go on without records that cannot be read; `statistics` counts them.
    """

    def __init__(
        self,
        records: Kind,
        batch_size: int,
        *,
        prefetch: int | str = "256Mi",
        shuffle: int | None = None,
        shard: tuple[int, int] = (0, 1),
        drop_last: bool = False,
        bad_records: str = "raise",
    ) -> None:
        self._records = records
        self._count = len(records)
        self._batch = _whole("batch_size", batch_size, 1)
        self._prefetch = _bytes("prefetch", prefetch)
        self._seed = None if shuffle is None else _whole("shuffle", shuffle)
        rank, world = shard
        self._world = _whole("shard", world, 1)
        self._rank = _whole("shard", rank)
        if self._rank >= self._world:
            raise ValueError(f"shard: invalid value {tuple(shard)}; allowed: a rank below the number of ranks")
        if bad_records not in _BAD:
            raise ValueError(f"bad_records: invalid value {bad_records!r}; allowed: {', '.join(_BAD)}")
        self._bad, self._drop_last = bad_records, bool(drop_last)
        self._epoch = self._position = 0
        self._running: object = None  # the iteration that may go on
        self._skipped = self._delivered = 0
        self._waited = self._used = 0.0

    def __len__(self) -> int:
        """Steps left in the current epoch; a rank may have no record in the last one."""
        left, step = self._count - self._position, self._batch * self._world
        return left // step if self._drop_last else -(-left // step)

    def __iter__(self) -> Iterator[Any]:
        """Yields the rest of the epoch. A later iteration ends this one."""
        running = self._running = object()
        if len(self) == 0:
            self._epoch, self._position = self._epoch + 1, 0
        return self._steps(running)

    def state_dict(self) -> dict[str, Any]:
        """What all ranks have received if each has received as many steps as this one: pass it to `load_state_dict`."""
        return {"epoch": self._epoch, "position": self._position, "records": self._count, "shuffle": self._seed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues after the records that a state counts. The loader may have other ranks or another batch size.

        Raises
        ------
        ValueError
            The state is of other records or of another order.
        """
        for name, own in (("records", self._count), ("shuffle", self._seed)):
            if state[name] != own:
                raise ValueError(f"state: invalid {name} {state[name]!r}; allowed: {own!r}, that of this loader")
        position = _whole("position", state["position"])
        if position > self._count:
            raise ValueError(f"state: invalid position {position}; allowed: at most {self._count}")
        self._epoch, self._position = _whole("epoch", state["epoch"]), position
        self._running = None

    def statistics(self) -> dict[str, Any]:
        """Records delivered and skipped so far, the seconds for which the consumer waited for a batch and used it, and
        which of them is the limit: ``"storage"`` or ``"consumer"``."""
        limit = "storage" if self._waited > self._used else "consumer"
        return {
            "delivered": self._delivered,
            "skipped": self._skipped,
            "waited_seconds": self._waited,
            "used_seconds": self._used,
            "limit": limit,
        }

    def _own(self, position: int) -> tuple[int, int, int]:
        """First and last position of this rank in the step that begins at `position`, and where the next one begins."""
        step = self._batch * self._world
        left = self._count - position
        if left >= step:
            first = position + self._rank * self._batch
            return first, first + self._batch, position + step
        shares = [position + left * rank // self._world for rank in (self._rank, self._rank + 1)]
        return shares[0], shares[1], self._count

    def _plan(self, position: int) -> _Step:
        first, last, until = self._own(position)
        indices = np.arange(first, last, dtype=np.uint64)
        if self._seed is not None and len(indices):
            indices = shuffled(indices, self._count, self._seed, self._epoch)
        return _Step(indices, self._size(indices), until)

    def _size(self, indices: NDArray[np.uint64]) -> int:
        if self._records.record_bytes is not None:
            return len(indices) * self._records.record_bytes
        return int(sum(self._records.sizes(indices)))

    def _steps(self, running: object) -> Iterator[Any]:
        ahead: deque[_Step] = deque()  # those that are being read, and one that waits until there is room
        held = 0
        for left in range(len(self), 0, -1):
            while True:
                if not ahead or (ahead[-1].pending and len(ahead) < left):
                    ahead.append(self._plan(ahead[-1].until if ahead else self._position))
                last = ahead[-1]
                if last.pending or (held and held + last.size > self._prefetch):
                    break
                last.pending = self._records.read_batch_async(last.indices)
                held += last.size
            began = time.monotonic()
            one = ahead.popleft()
            batch, kept = self._received(one)
            self._waited += time.monotonic() - began
            held -= one.size
            if self._running is not running:
                raise RuntimeError("this iteration has ended, because a later one or load_state_dict has begun")
            self._position = one.until
            self._delivered += kept
            if kept == 0:
                continue
            began = time.monotonic()
            yield batch
            self._used += time.monotonic() - began
            if self._running is not running:
                return

    def _received(self, one: _Step) -> tuple[Any, int]:
        """The batch and the number of its records, without those that cannot be read if these are to be skipped."""
        indices = one.indices
        assert one.pending is not None
        try:
            data = one.pending.wait()
        except StorageError:
            if self._bad == "raise":
                raise
            good = [index for index in indices.tolist() if self._readable(index)]
            self._skipped += len(indices) - len(good)
            indices = np.array(good, np.uint64)
            data = self._records.read_batch(indices)
        if self._records.record_bytes is not None:
            return data, len(indices)
        offsets = np.concatenate([[0], np.cumsum(self._records.sizes(indices))]).astype(np.int64)
        return (data, offsets), len(indices)

    def _readable(self, index: int) -> bool:
        try:
            self._records.read(index, 1)
        except StorageError:
            return False
        return True


__all__ = ["Loader", "shuffled"]
