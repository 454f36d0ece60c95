"""The executable parses URLs as redis-py does. tests/common/redis_url_test.cpp checks the same list."""

import json
from pathlib import Path
from typing import Any

import pytest
from redis.connection import parse_url

URLS = json.loads((Path(__file__).parent / "redis_urls.json").read_text())


@pytest.mark.parametrize("one", URLS, ids=lambda one: one["url"])
def test_redis_py_parses_url_as_listed(one: dict[str, Any]) -> None:
    read = {name: value for name, value in parse_url(one["url"]).items() if name != "connection_class"}
    assert {"url": one["url"], **read} == one
