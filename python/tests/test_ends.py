"""An interpreter exits with its own exit code, even while its threads are inside the extension."""

import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import feedrate
import pytest

CALLS = [
    "ring.call(b'x')",
    "ring.submit(b'x').result()",
    "store.stat('weights')",
    "store.get('weights').numpy()",
    "store.create(f'{os.getpid()} {next(numbers)}', 4, dtype='f32')",
    "store.wait('never', 0.02)",
]


@pytest.fixture(scope="module")
def socket(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("s") / "s")
    with subprocess.Popen(
        [feedrate.executable(), "store", "serve", "--socket", path, "--memory", "256Mi"], stderr=subprocess.PIPE
    ) as daemon:
        assert b" at " in daemon.stderr.readline()
        feedrate.tensors.connect(path).create("weights", 4, dtype="f32")
        yield path
        daemon.send_signal(signal.SIGTERM)
        daemon.communicate(timeout=20)


def run(code, *arguments):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code), *arguments], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("end", "code"),
    [("pass", 0), ("sys.exit(3)", 3), ("raise SystemExit(5)", 5), ("os._exit(4)", 4), ("atexit.register(time.sleep, 0.05)", 0)],
)
def test_interpreter_exits_with_daemon_threads_in_the_extension(end, code, socket):
    def ended(fork):
        return run(
            f"""
            import atexit, contextlib, itertools, os, sys, threading, time
            import feedrate
            from feedrate import tensors
            if {fork}:
                child = os.fork()
                if child:
                    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256)
            ring, store, numbers = feedrate.Ring(device="cpu"), tensors.connect(sys.argv[1]), itertools.count()
            calls = {CALLS!r}
            started = threading.Barrier(len(calls) + 1)
            def forever(call):
                started.wait()
                while True:
                    with contextlib.suppress(Exception):
                        eval(call)
            for call in calls:
                threading.Thread(target=forever, args=[call], daemon=True).start()
            started.wait()
            time.sleep(0.02)
            {end}
            """,
            socket,
        )

    with ThreadPoolExecutor(2) as two:
        for ran in two.map(ended, [False, False, True]):
            assert ran.returncode == code and "terminate" not in ran.stderr, ran


def test_threads_return_for_exit_handlers_older_than_the_package(socket):
    ran = run(
        """
        import atexit, sys, threading, time
        stop = threading.Event()
        def end():
            stop.set()
            worker.join()
            print("clean end", flush=True)
        atexit.register(end)  # runs after the package's own handler
        import feedrate
        from feedrate import tensors
        store = tensors.connect(sys.argv[1])
        def work():
            while not stop.is_set():
                try:
                    store.wait("never", 0.1)
                except TimeoutError:
                    pass
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        time.sleep(0.3)
        """,
        socket,
    )
    assert ran.returncode == 0 and ran.stdout == "clean end\n", ran


@pytest.mark.parametrize("module", ["_interpreters", "_xxsubinterpreters"])
def test_sub_interpreter_is_rejected_by_name(module):
    ran = run(
        """
        import importlib, sys
        try:
            interpreters = importlib.import_module(sys.argv[1])
        except ImportError:
            sys.exit(77)
        made = interpreters.create("legacy") if sys.version_info >= (3, 13) else interpreters.create(isolated=False)
        importing = "try: import feedrate\\nexcept ImportError as error: raise ImportError(error.__cause__)"
        try:
            print(interpreters.run_string(made, importing))
        except Exception as failure:
            print(failure)
        """,
        module,
    )
    if ran.returncode == 77:
        pytest.skip(f"this Python has no {module}")
    assert ran.returncode == 0 and "sub-interpreter" in ran.stdout, ran
