"""The tests run against the installed package, with this folder's files only."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory):
    """A private server on a socket."""
    server = os.environ.get("FEEDRATE_REDIS_SERVER") or shutil.which("redis-server")
    assert server, "redis-server is needed: experiments/setup.sh tests installs it"
    socket = tmp_path_factory.mktemp("redis") / "s"
    process = subprocess.Popen(
        [server, "--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no"],
        stdout=subprocess.DEVNULL,
        cwd=socket.parent,
    )
    until = time.monotonic() + 20
    while not Path(socket).exists():
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.02)
    yield f"unix://{socket}"
    process.terminate()
    process.wait()
