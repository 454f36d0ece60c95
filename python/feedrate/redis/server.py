"""Redis servers as seen through redis-py: connection URLs and temporary rejections."""

from __future__ import annotations

import re
from typing import Any

import redis as _redis

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds between two attempts, as in the C++ worker
# Error codes for temporary states of a server. redis-py has exception classes for some of them, which lack the code.
_TEMPORARY_CODES = frozenset(
    (
        "BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "NOREPLICAS", "OOM", "READONLY", "TRYAGAIN",
        "UNBLOCKED",
    )  # fmt: skip
)
_TEMPORARY_ERRORS = (
    _redis.exceptions.BusyLoadingError,
    _redis.exceptions.ClusterDownError,
    _redis.exceptions.OutOfMemoryError,
    _redis.exceptions.ReadOnlyError,
    _redis.exceptions.TryAgainError,
)
# Settings that redis-py expects as objects, which a URL cannot contain.
_OBJECT_SETTINGS = frozenset(
    ("cache", "credential_provider", "encoder_class", "parser_class", "redis_connect_func", "retry", "retry_on_error")
)


def server_message(error: Exception) -> str:
    """Returns the server's own message, without the command that a pipeline puts before it."""
    message = str(error).rpartition("caused error: ")[2].rpartition("because of: ")[2]
    return re.sub(r"""^\((['"])(.*)\1,\)$""", r"\2", message)  # redis-py's asyncio pipelines format a tuple


def error_code(error: Exception) -> str:
    """Returns the error code, which is the first word of the server's message, or "" if redis-py dropped it.

    For a failed transaction, this is the code of the error that caused the failure.
    """
    if type(error) in (_redis.ResponseError, _redis.exceptions.ExecAbortError):
        return server_message(error).split(" ", 1)[0]
    return getattr(error, "status_code", None) or ""


def is_temporary_rejection(error: Exception) -> bool:
    """Returns whether the server rejected the command temporarily and executed nothing.

    Examples are a server that is loading or full, or is a replica until a failover ends.
    """
    return isinstance(error, _TEMPORARY_ERRORS) or (
        isinstance(error, _redis.ResponseError) and error_code(error) in _TEMPORARY_CODES
    )


def is_temporary(error: Exception) -> bool:
    """Returns whether the error is temporary: a temporary rejection or no connection. A wrong password is permanent."""
    if isinstance(error, (_redis.AuthenticationError, _redis.exceptions.AuthorizationError)):
        return False
    return isinstance(error, (_redis.ConnectionError, _redis.TimeoutError)) or is_temporary_rejection(error)


class Pauses:
    """Pauses between attempts, which double until an attempt succeeds."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._following = FIRST_PAUSE
        self.rejection: Exception | None = None

    def after(self, rejection: Exception) -> float:
        self.rejection = rejection
        pause, self._following = self._following, min(2 * self._following, LONGEST_PAUSE)
        return pause


def pool_of(url: str, pool_class: Any, **settings: Any) -> Any:
    """Creates a connection pool from a redis-py URL, without opening a connection.

    Keys are UTF-8 and payloads are bytes, regardless of the URL. Raises ValueError for unknown connection settings.
    """

    def reject(setting: str) -> None:
        raise ValueError(f"invalid setting {setting}; allowed: redis-py's connection settings, and rediss:// for TLS")

    try:
        pool = pool_class.from_url(url, **settings)
        for setting in sorted(_OBJECT_SETTINGS & pool.connection_kwargs.keys()):
            reject(setting)
        if pool.connection_kwargs.get("protocol") not in (None, 2, 3, "2", "3"):
            raise ValueError("protocol must be either 2 or 3")
        pool.connection_kwargs |= {"decode_responses": False, "encoding": "utf-8", "encoding_errors": "strict"}
        try:
            pool.connection_class(**pool.connection_kwargs)
        except TypeError as error:
            reject(re.sub(r".*argument '(\w+)'.*", r"\1", str(error)))
    except (ValueError, _redis.RedisError) as error:
        # The parser quotes the supposed port, which may be part of a password with an unescaped character.
        quoted = str(error).startswith("Port could not be cast")
        raise ValueError(f"url: {'the port is not a number' if quoted else error}") from None
    return pool


def longest_wait(pool: Any, seconds: float) -> float:
    """Returns how long a blocking command may wait, in seconds: shorter than socket_timeout, at most `seconds`."""
    timeout = pool.connection_kwargs.get("socket_timeout", 2 * seconds)
    return seconds if timeout is None else min(seconds, max(0.001, timeout / 2))


def entries_of(reply: Any) -> Any:
    """Returns the entries in a reply to XREAD or XREADGROUP for one stream.

    Depending on protocol and version, redis-py returns lists, or dicts of two shapes.
    """
    if not reply:
        return []
    entries = next(iter(reply.values())) if isinstance(reply, dict) else reply[0][1]
    return entries[0] if entries and isinstance(entries[0], list) else entries
