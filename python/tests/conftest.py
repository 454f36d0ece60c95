"""Fixtures and helpers. The tests use the installed package and only the files in this folder."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import feedrate
import feedrate.redis
import pytest
import redis

# A script's background jobs and their children ignore SIGINT, but the tests send SIGINT to child processes.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Commands measure the machine's limits first, which takes a second on every core. Only the tests of limits need that.
os.environ["FEEDRATE_FLOOR_ROUNDS"] = "0"
LONG = os.environ.pop("LONG_TESTS", None) is not None  # the executable rejects unknown variables
TIMEOUT = 60  # in seconds; a busy machine may delay a process by seconds, which no test measures
# Workers stop and retry quickly.
feedrate.redis.worker.LONGEST_WAIT = 0.02
feedrate.redis.server.LONGEST_PAUSE = 0.1

GPU = len(feedrate.devices()) > 1
on_gpu = pytest.mark.skipif(not GPU, reason="this machine has no GPU")


def python(*words: str, **options) -> subprocess.CompletedProcess[str]:
    """Runs a separate interpreter."""
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=120, **options)


def run_code(code: str, *arguments: str, **options) -> subprocess.CompletedProcess[str]:
    """Runs a program in a separate interpreter."""
    return python("-c", textwrap.dedent(code), *arguments, **options)


def wait_until(condition, pause: float = 0.005) -> None:
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end
        time.sleep(pause)


def in_threads(*functions) -> None:
    """Runs the functions in parallel and waits for all of them."""
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Worker:
    """A Python worker in a thread. `ended` receives its result or exception."""

    def __init__(self, function, queue, url, prefix, **how):
        self.stop, self.ended = threading.Event(), []
        self._serve = lambda: feedrate.redis.serve(queue, function, url=url, prefix=prefix, stop=self.stop, **how)
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        try:
            self.ended.append(self._serve())
        except Exception as error:  # noqa: BLE001
            self.ended.append(error)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self._thread.join(TIMEOUT)


@contextlib.contextmanager
def redis_server(folder: Path):
    """Runs a private Redis server that listens on the socket `s` in the folder; yields its URL and its process."""
    socket = folder / "s"
    server = os.environ.get("FEEDRATE_REDIS_SERVER") or shutil.which("redis-server")
    assert server, "redis-server is missing; experiments/setup.sh tests installs it"
    # hz: how often per second the server ends blocked commands whose time is up
    words = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no", "--hz", "100"]
    process = subprocess.Popen([server, *words], stdout=subprocess.DEVNULL, cwd=folder)

    def answers():
        assert process.poll() is None, f"{server} ended with exit code {process.returncode}"
        with contextlib.suppress(redis.ConnectionError):
            return redis.Redis(unix_socket_path=str(socket)).ping()

    try:
        wait_until(answers)
        yield f"unix://{socket}", process
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory):
    """URL of a private Redis server."""
    with redis_server(tmp_path_factory.mktemp("redis")) as (url, _):
        yield url


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
