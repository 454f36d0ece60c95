"""Clients that send tasks to `feedrate worker`, and Python workers for the same queues, based on redis-py.

A web service sends tasks to a worker written in C++::

    client = feedrate.redis.Client("redis://localhost")
    result = client.result(client.submit(b"four"), timeout=1)

A Python function on batches serves the same queues::

    feedrate.redis.serve("redis_stream", model, url="redis://localhost", batch=64)

common/redis/README.md documents the wire format.
"""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("redis") is None:
    raise ImportError("feedrate.redis needs redis-py; run pip install 'feedrate[redis]'")

from ..errors import MessageFailed
from .client import AsyncClient, Client
from .wire import QUEUES, checksum, decode, encode
from .worker import SERVED, serve

__all__ = ["QUEUES", "SERVED", "AsyncClient", "Client", "MessageFailed", "checksum", "decode", "encode", "serve"]
