"""An interpreter exits with its own exit code, even while its threads are inside the extension."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import LONG, run_code
from feedrate import tensors

CALLS = [
    "ring.call(b'x')",
    "ring.submit(b'x').result()",
    "store.stat('weights')",
    "store.get('weights').numpy()",
    "store.create(f'{os.getpid()} {next(numbers)}', 4, dtype='f32')",
    "store.wait('never', 0.02)",
]


@pytest.mark.parametrize(
    ("end", "code"),
    [("pass", 0), ("sys.exit(3)", 3), ("raise SystemExit(5)", 5), ("os._exit(4)", 4), ("atexit.register(time.sleep, 0.05)", 0)],
)
def test_interpreter_exits_with_daemon_threads_in_the_extension(end, code, socket):
    def ended(fork):
        return run_code(
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

    tensors.connect(socket).create("weights", 4)
    with ThreadPoolExecutor(2) as two:
        for ran in two.map(ended, [False, True] * (10 if LONG else 1)):
            assert ran.returncode == code and "terminate" not in ran.stderr, ran


def test_exit_handler_registered_before_the_import_can_join_threads(socket):
    ran = run_code(
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
        time.sleep(0.1)
        """,
        socket,
    )
    assert ran.returncode == 0 and ran.stdout == "clean end\n", ran


@pytest.mark.parametrize("module", ["_interpreters", "_xxsubinterpreters"])
def test_import_in_a_sub_interpreter_is_rejected(module):
    ran = run_code(
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
