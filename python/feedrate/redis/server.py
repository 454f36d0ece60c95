"""Servers as redis-py reaches them: URLs, and refusals that pass."""

from __future__ import annotations

import re
from typing import Any

import redis as _redis

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds between two attempts, as the C++ worker has them
# What a server answers in a state that passes: redis-py has classes for some, and drops the word then.
_PASSING = frozenset(
    ("BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "NOREPLICAS", "OOM", "READONLY", "TRYAGAIN", "UNBLOCKED")
)
_PASSING_CLASSES = (
    _redis.exceptions.BusyLoadingError,
    _redis.exceptions.ClusterDownError,
    _redis.exceptions.OutOfMemoryError,
    _redis.exceptions.ReadOnlyError,
    _redis.exceptions.TryAgainError,
)
# Settings that redis-py wants as objects, which a URL cannot hold.
_NO_TEXTS = frozenset(
    ("cache", "credential_provider", "encoder_class", "parser_class", "redis_connect_func", "retry", "retry_on_error")
)


def words_of(error: Exception) -> str:
    """The server's own, without the command that a pipeline puts before them."""
    said = str(error).rpartition("caused error: ")[2].rpartition("because of: ")[2]
    return re.sub(r"""^\((['"])(.*)\1,\)$""", r"\2", said)  # redis-py's pipelines for asyncio put a tuple there


def code_of(error: Exception) -> str:
    """The first word of what the server said, or "" where redis-py dropped it; of a transaction, the reason's."""
    if type(error) in (_redis.ResponseError, _redis.exceptions.ExecAbortError):
        return words_of(error).split(" ", 1)[0]
    return getattr(error, "status_code", None) or ""


def refused_for_now(error: Exception) -> bool:
    """Whether the server has done nothing, and may do it later: it loads, is full, is a replica until a failover ends."""
    return isinstance(error, _PASSING_CLASSES) or (
        isinstance(error, _redis.ResponseError) and code_of(error) in _PASSING
    )


def may_pass(error: Exception) -> bool:
    """The same, or the server can't be reached. What a wrong password brings about is no matter of time."""
    if isinstance(error, (_redis.AuthenticationError, _redis.exceptions.AuthorizationError)):
        return False
    return isinstance(error, (_redis.ConnectionError, _redis.TimeoutError)) or refused_for_now(error)


class Pauses:
    """Longer and longer ones, until something works again."""

    def __init__(self) -> None:
        self.works()

    def works(self) -> None:
        self._following = FIRST_PAUSE
        self.refusal: Exception | None = None

    def after(self, refusal: Exception) -> float:
        self.refusal = refusal
        pause, self._following = self._following, min(2 * self._following, LONGEST_PAUSE)
        return pause


def pool_of(url: str, pool_class: Any, **settings: Any) -> Any:
    """A pool of connections by a URL of redis-py's, none of them open yet. Keys are UTF-8 and payloads bytes, whatever
    the URL says. Raises ValueError for settings that its connections do not have."""

    def refuse(setting: str) -> None:
        raise ValueError(f"{setting} is not possible; allowed: settings of redis-py's connections, and rediss:// for TLS")

    try:
        pool = pool_class.from_url(url, **settings)
        for setting in sorted(_NO_TEXTS & pool.connection_kwargs.keys()):
            refuse(setting)
        if pool.connection_kwargs.get("protocol") not in (None, 2, 3, "2", "3"):
            raise ValueError("protocol must be either 2 or 3")
        pool.connection_kwargs |= {"decode_responses": False, "encoding": "utf-8", "encoding_errors": "strict"}
        try:
            pool.connection_class(**pool.connection_kwargs)
        except TypeError as error:
            refuse(re.sub(r".*argument '(\w+)'.*", r"\1", str(error)))
    except (ValueError, _redis.RedisError) as error:
        # The parser quotes what it takes for the port: it may be a password with a character that was to be escaped.
        quoted = str(error).startswith("Port could not be cast")
        raise ValueError(f"url: {'the port is no number' if quoted else error}") from None
    return pool


def longest_wait(pool: Any, seconds: float) -> float:
    """Of a command that the server holds back: redis-py would take it for lost after socket_timeout."""
    timeout = pool.connection_kwargs.get("socket_timeout", 2 * seconds)
    return seconds if timeout is None else min(seconds, max(0.001, timeout / 2))


def entries_of(reply: Any) -> Any:
    """Of XREAD or XREADGROUP of one stream: redis-py gives lists, or dicts of two shapes, by protocol and version."""
    if not reply:
        return []
    entries = next(iter(reply.values())) if isinstance(reply, dict) else reply[0][1]
    return entries[0] if entries and isinstance(entries[0], list) else entries
