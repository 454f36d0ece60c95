"""The bytes on the wire (common/redis/README.md), and the keys that they lie in."""

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
    """A task. `deadline`: Unix seconds; a worker that gets it later answers with the fault ``expired``."""
    padding = bytes(-len(payload) % 16)
    if deadline is None:
        return HEADER.pack(message_id, len(payload), 0) + payload + padding
    extension = EXTENSION.pack(int(deadline * 1e3), 0)
    return HEADER.pack(message_id, len(payload), 1) + extension + payload + padding


def decode(element: bytes, *, tasks: bool = False) -> Iterator[tuple[int, int, bytes, int]]:
    """Each message of an element: id, length word, payload, and a task's deadline in Unix milliseconds (0: none). The
    length word of a task that no worker can take names its fault, as a result's does.

    Raises ValueError where the element ends within a message.
    """
    at = 0
    while at < len(element):
        if at + HEADER.size > len(element):
            raise ValueError(f"an element of {len(element)} bytes ends within a header")
        message_id, length, word = HEADER.unpack_from(element, at)
        at += HEADER.size
        deadline = 0
        if tasks and word & 0xFF == 1:
            if at + EXTENSION.size > len(element):
                raise ValueError(f"an element of {len(element)} bytes ends within a header")
            deadline, _ = EXTENSION.unpack_from(element, at)
            at += EXTENSION.size
        size = 0 if length & FAILED else length
        if at + size > len(element):
            raise ValueError(f"a message of {size} bytes in an element with {len(element) - at} left")
        payload = element[at : at + size]
        if tasks and word & 0xFF > 1:
            length, payload = FAILED | FAULTS.index("bad_version"), b""
        elif tasks and length & FAILED:
            length = FAILED | FAULTS.index("bad_length")
        yield message_id, length, payload, deadline
        at += size + (-size % 16)


def checksum(payload: bytes) -> int:
    """The sum of the 32-bit words, the last one padded with zeros, modulo 2^32."""
    padded = payload + bytes(-len(payload) % 4)
    words: tuple[int, ...] = struct.unpack(f"<{len(padded) // 4}I", padded)
    return sum(words) & 0xFFFF_FFFF


class Names:
    def __init__(self, prefix: str, queue: str) -> None:
        if queue not in QUEUES:
            raise ValueError(f"queue: {queue!r} is not possible; allowed: {', '.join(QUEUES)}")
        self.queue, self.tasks, self.clients = queue, f"{prefix}:tasks", f"{prefix}:clients"
        self._prefix = prefix

    def results(self, reply_list: int) -> str:
        return f"{self._prefix}:results:{reply_list}"
