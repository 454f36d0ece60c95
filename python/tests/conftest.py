"""Fixtures. The tests use the installed package and only the files in this folder."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import feedrate
import pytest
import redis

# Background jobs of a script ignore SIGINT, and so do their children. The tests send SIGINT to child processes.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Commands measure the machine's limits first, which takes a second on every core. Only the tests of limits need that.
os.environ["FEEDRATE_FLOOR_ROUNDS"] = "0"
LONG = os.environ.pop("LONG_TESTS", None) is not None  # the executable rejects unknown variables


def start_redis(socket: Path) -> subprocess.Popen[bytes]:
    """Starts a private Redis server that listens on the socket."""
    server = os.environ.get("FEEDRATE_REDIS_SERVER") or shutil.which("redis-server")
    assert server, "redis-server is missing; experiments/setup.sh tests installs it"
    process = subprocess.Popen(
        [server, "--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no"],
        stdout=subprocess.DEVNULL,
        cwd=socket.parent,
    )
    until = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(redis.ConnectionError):
            redis.Redis(unix_socket_path=str(socket)).ping()
            return process
        time.sleep(0.02)
    process.kill()
    pytest.fail(f"{server} did not answer on {socket} within 20 s (exit code {process.wait()})")


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory):
    """URL of a private Redis server that listens on a socket."""
    socket = tmp_path_factory.mktemp("redis") / "s"
    process = start_redis(socket)
    yield f"unix://{socket}"
    process.terminate()
    process.wait()


@pytest.fixture
def socket(tmp_path_factory):
    """Socket of a private tensor store, which must exit with code 0 on SIGTERM."""
    path = str(tmp_path_factory.mktemp("s", numbered=True) / "s")
    with subprocess.Popen(
        [feedrate.executable(), "store", "serve", "--socket", path, "--memory", "256Mi"], stderr=subprocess.PIPE
    ) as daemon:
        assert b" at " in daemon.stderr.readline()
        yield path
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(20) == 0
