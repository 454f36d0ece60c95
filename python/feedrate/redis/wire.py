"""Wire format of the Redis queues (common/redis/README.md), and the names of their keys."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ..views import FAILED, FAULTS

QUEUES = ("redis_list", "redis_reliable", "redis_stream")
HEADER = struct.Struct("<QII")
EXTENSION = struct.Struct("<QQ")
SEQUENCE_BITS = 48
GROUP, FIELD = "feedrate", "m"


def encode(message_id: int, payload: bytes, *, deadline: float | None = None) -> bytes:
    """Encodes a task.

    `deadline` is a Unix time in seconds. A worker that takes the task later replies with the fault ``expired``.
    """
    padding = bytes(-len(payload) % 16)
    if deadline is None:
        return HEADER.pack(message_id, len(payload), 0) + payload + padding
    extension = EXTENSION.pack(int(deadline * 1e3), 0)
    return HEADER.pack(message_id, len(payload), 1) + extension + payload + padding


def decode(element: bytes, *, tasks: bool = False) -> Iterator[tuple[int, int, bytes, int]]:
    """Yields each message of an element as a tuple: id, length word, payload, deadline.

    The deadline of a task is in Unix milliseconds; 0 means none. If a task is invalid, its length word contains the
    fault, as it does in a failed result. Raises ValueError if the element ends inside a message.
    """
    at = 0
    while at < len(element):
        if at + HEADER.size > len(element):
            raise ValueError(f"an element of {len(element)} bytes ends inside a header")
        message_id, length, word = HEADER.unpack_from(element, at)
        at += HEADER.size
        deadline = 0
        if tasks and word & 0xFF == 1:
            if at + EXTENSION.size > len(element):
                raise ValueError(f"an element of {len(element)} bytes ends inside a header")
            deadline, _ = EXTENSION.unpack_from(element, at)
            at += EXTENSION.size
        size = 0 if length & FAILED else length
        if at + size > len(element):
            raise ValueError(f"a message of {size} bytes starts in an element with only {len(element) - at} bytes left")
        payload = element[at : at + size]
        if tasks and word & 0xFF > 1:
            length, payload = FAILED | FAULTS.index("bad_version"), b""
        elif tasks and length & FAILED:
            length = FAILED | FAULTS.index("bad_length")
        yield message_id, length, payload, deadline
        at += size + (-size % 16)


def checksum(payload: bytes) -> int:
    """Returns the sum of the payload's 32-bit words modulo 2^32. The last word is padded with zeros."""
    padded = payload + bytes(-len(payload) % 4)
    words: tuple[int, ...] = struct.unpack(f"<{len(padded) // 4}I", padded)
    return sum(words) & 0xFFFF_FFFF


class Keys:
    """Names of a queue's keys."""

    def __init__(self, prefix: str, queue: str) -> None:
        if queue not in QUEUES:
            raise ValueError(f"queue: invalid value {queue!r}; allowed: {', '.join(QUEUES)}")
        self.queue, self.tasks, self.clients = queue, f"{prefix}:tasks", f"{prefix}:clients"
        self._prefix = prefix

    def results(self, reply_list: int) -> str:
        return f"{self._prefix}:results:{reply_list}"
