"""Tasks for `feedrate worker` from Python, and workers in Python for the same queues, over redis-py.

A web service feeds a worker that is written in C++::

    client = feedrate.redis.Client("redis://localhost")
    result = client.result(client.submit(b"four"), timeout=1)

and a Python function on batches serves the same queues::

    feedrate.redis.serve("redis_stream", model, url="redis://localhost", batch=64)

The bytes on the wire are those of common/redis/README.md.
"""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("redis") is None:
    raise ImportError("feedrate.redis needs redis-py: pip install 'feedrate[redis]'")

from ..errors import MessageFailed
from .client import AsyncClient, Client
from .wire import QUEUES, checksum, decode, encode
from .worker import SERVED, serve

__all__ = ["QUEUES", "SERVED", "AsyncClient", "Client", "MessageFailed", "checksum", "decode", "encode", "serve"]
