"""Records of files: kinds, batches, destinations of all libraries, errors, and the life of a source."""

import array
import os
import random
import threading

import feedrate
import feedrate.storage
import numpy as np
import pytest
from conftest import GPU, on_gpu, run_code


@pytest.fixture
def content() -> np.ndarray:
    return np.random.default_rng(7).integers(0, 256, 300_000, dtype=np.uint8)


@pytest.fixture
def paths(tmp_path, content) -> list[str]:
    """Three files, the second one empty."""
    files = []
    for number, part in enumerate((content[:100_001], content[:0], content[100_001:])):
        files.append(str(tmp_path / f"part{number}"))
        part.tofile(files[-1])
    return files


@pytest.fixture
def source(paths):
    with feedrate.storage.open(paths, device="cpu") as opened:
        yield opened


def test_records_of_one_size_are_rows(source, content):
    rows = source.add_kind("rows", record_bytes=1000, start=7)
    assert len(rows) == 299 and rows.record_bytes == 1000 and len(source.kind("rows")) == 299
    got = rows.read(95, 20)
    assert got.shape == (20, 1000) and np.array_equal(got.reshape(-1), content[95_007:115_007])
    assert rows.bytes_of(3, 4) == 4000 and rows.read(0, 0).shape == (0, 1000)


def test_records_of_several_sizes_have_offsets(source, content):
    words = source.add_kind("words", offsets=[0, 0, 5, 70_000], start=50_000)
    assert len(words) == 3 and words.record_bytes is None
    assert np.array_equal(words.read(1, 2), content[50_000:120_000])
    assert np.array_equal(words.read_batch([2, 0, 1]), np.concatenate([content[50_005:120_000], content[50_000:50_005]]))


def test_batches_mix_kinds_and_read_neighbours_together(source, content):
    rows = source.add_kind("rows", record_bytes=100)
    pairs = source.add_kind("pairs", record_bytes=2, start=1)
    picked = [random.Random(3).randrange(3000) for _ in range(500)]
    got = rows.read_batch(np.array(picked))
    assert np.array_equal(got, content.reshape(-1, 100)[picked])
    assert source.statistics()["requests"] < 100
    mixed = source.read_batch([(pairs, 4), (rows, 9), (pairs, 0)])
    assert np.array_equal(mixed, np.concatenate([content[9:11], content[900:1000], content[1:3]]))
    assert source.read_batch([]).size == 0


def test_blocks_and_bytes_need_no_kind(source, content):
    assert source.block_bytes == 512 and source.bytes == len(content) and source.begin_of(2) == 100_001
    assert np.array_equal(source.read(190, 10).reshape(-1), content[190 * 512 : 200 * 512])
    assert np.array_equal(source.read_bytes(299_990, 10), content[-10:])


def test_destinations_are_arrays_of_any_kind_or_addresses(source, content):
    rows = source.add_kind("rows", record_bytes=400)
    numpy = np.zeros((3, 100), np.float32)
    plain = bytearray(1200)
    typed = array.array("i", [0] * 300)
    for destination in (numpy, plain, typed, memoryview(bytearray(1200))):
        assert rows.read(2, 3, destination) is destination
        assert bytes(memoryview(destination).cast("B")) == content[800:2000].tobytes()
    numpy[:] = 0
    rows.read(2, 3, numpy.ctypes.data)
    assert numpy.tobytes() == content[800:2000].tobytes()
    larger = np.zeros(5000, np.uint8)
    rows.read(2, 3, larger)
    assert not larger[1200:].any()


def test_unusable_destinations_are_rejected(source):
    rows = source.add_kind("rows", record_bytes=400)
    frozen = np.zeros(400, np.uint8)
    frozen.flags.writeable = False
    for destination, error, text in (
        (np.zeros(399, np.uint8), ValueError, "destination: invalid size of 399 bytes; allowed: at least 400 bytes"),
        (frozen, ValueError, "invalid read-only array"),
        (bytes(400), ValueError, "invalid read-only array"),
        (np.zeros(800, np.uint8)[::2], ValueError, r"invalid strides \(2,\)"),
        (np.zeros(400, object), TypeError, "invalid dtype object"),
        ("text", TypeError, "invalid type str"),
        (0, ValueError, "invalid address 0"),
    ):
        with pytest.raises(error, match=text):
            rows.read(0, 1, destination)


def test_written_records_are_read_back(paths, content):
    with feedrate.storage.open(paths, device="cpu", writable=True) as source:
        rows = source.add_kind("rows", record_bytes=999)
        rows.write(99, 3, content[:2997].copy())
        source.write(3, 1, bytes(512))
        source.write_bytes(5, 2, b"ab")
        source.sync()
        assert np.array_equal(rows.read(99, 3).reshape(-1), content[:2997])
        assert not source.read(3, 1).any() and source.read_bytes(4, 4).tobytes()[1:3] == b"ab"
    with feedrate.storage.open(paths, device="cpu") as source, pytest.raises(ValueError, match="writable: invalid value"):
        source.write(0, 1, bytes(512))


@pytest.mark.parametrize("engine, direct", [("threads", False), ("threads", True), ("io_uring", False), ("io_uring", True)])
def test_every_engine_reads_the_same(paths, content, engine, direct):
    try:
        source = feedrate.storage.open(paths, device="cpu", engine=engine, direct=direct, request_bytes=4096, depth=3)
    except (ValueError, feedrate.Error) as error:
        pytest.skip(str(error))
    with source:
        assert source.engine.startswith(engine) and source.device == "cpu"
        assert np.array_equal(source.read_bytes(1, len(content) - 1), content[1:])


def test_errors_name_record_and_cause(paths):
    with feedrate.storage.open(paths, device="cpu") as source:
        rows = source.add_kind("rows", record_bytes=1000)
        os.truncate(paths[0], 50_500)
        with pytest.raises(feedrate.storage.StorageError, match=r"record 50 of kind 'rows': .*part0: the file ends there") as caught:
            rows.read(40, 20)
        assert caught.value.errno == 0 and isinstance(caught.value, feedrate.Error)
        assert rows.read(0, 50).shape == (50, 1000)


def test_invalid_arguments_name_what_is_allowed(source, tmp_path):
    rows = source.add_kind("rows", record_bytes=1000)
    for call, error, text in (
        (lambda: rows.read(299, 2), ValueError, "2 from 299'; allowed: at most 300 records"),
        (lambda: rows.read(-1, 1), ValueError, "first: invalid value -1"),
        (lambda: rows.read("0", 1), TypeError, "first: invalid type str"),
        (lambda: rows.read_batch([0.5]), TypeError, "indices: invalid dtype float64"),
        (lambda: rows.read_batch([[1]]), ValueError, "indices: invalid shape"),
        (lambda: rows.read_batch([-1]), ValueError, "indices: invalid value -1"),
        (lambda: rows.read_async(0, 1, stream=7), ValueError, "stream: invalid value"),
        (lambda: source.add_kind("rows", record_bytes=1), ValueError, "kind: invalid value 'rows'"),
        (lambda: source.add_kind("x", record_bytes=7, bytes=8), ValueError, "bytes of kind 'x'"),
        (lambda: source.add_kind("x", offsets=[1, 0]), ValueError, "offset 1 of kind 'x'"),
        (lambda: source.kind("y"), KeyError, "no kind 'y'; there are: rows"),
        (lambda: feedrate.storage.open([]), ValueError, "paths: invalid value"),
        (lambda: feedrate.storage.open(tmp_path, device="cpu"), ValueError, "a file or a block device"),
        (lambda: feedrate.storage.open(tmp_path / "none", device="cpu"), feedrate.Error, "No such file"),
        (lambda: feedrate.storage.open(tmp_path, device="cpu", engine="dma"), ValueError, "engine: invalid value 'dma'"),
        (lambda: feedrate.storage.open(tmp_path, device="tpu"), ValueError, "device: invalid value 'tpu'"),
        (lambda: feedrate.storage.open(tmp_path, device="cpu", block_bytes=0), ValueError, "block_bytes: invalid value 0"),
        (lambda: feedrate.storage.open(tmp_path, request_bytes=5000), ValueError, "request_bytes: invalid value 5000"),
        (lambda: feedrate.storage.open(tmp_path, depth=2**40), ValueError, "depth: invalid value 1099511627776"),
        (lambda: feedrate.storage.open(tmp_path, engine=None), TypeError, "engine: invalid type NoneType"),
        (lambda: feedrate.storage.open(b"path"), TypeError, "int"),
        (lambda: feedrate.storage.open("a\0b"), ValueError, "paths: invalid value"),
        (lambda: source.begin_of(2**40), ValueError, "file: invalid value"),
    ):
        with pytest.raises(error, match=text):
            call()


def test_many_threads_and_requests_at_once(source, content):
    rows = source.add_kind("rows", record_bytes=500)
    wrong = []

    def read(seed: int) -> None:
        picks = [random.Random(seed).randrange(590) for _ in range(40)]
        pending = [rows.read_async(pick, 10) for pick in picks]
        for pick, one in zip(picks, pending):
            if not np.array_equal(one.wait(60).reshape(-1), content[500 * pick : 500 * pick + 5000]):
                wrong.append(pick)
            assert one.ready

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_kinds_of_other_sources_are_rejected(source, paths):
    with feedrate.storage.open(paths[0], device="cpu") as other:
        kind = other.add_kind("rows", record_bytes=10)
        with pytest.raises(ValueError, match="records: invalid kind 'rows'; allowed: kinds of this source"):
            source.read_batch([(kind, 0)])


def test_closing_waits_for_requests(paths, content):
    with feedrate.storage.open(paths, device="cpu", depth=1, request_bytes=4096) as source:
        pending = [source.read_async(0, 500) for _ in range(20)]
    assert all(np.array_equal(one.wait().reshape(-1), content[:256_000]) for one in pending)


def test_unclosed_sources_leave_nothing(paths):
    before = threading.active_count(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    for _ in range(20):
        feedrate.storage.open(paths, device="cpu").add_kind("rows", record_bytes=10).read(0, 1)
    after = threading.active_count(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    assert after == before


def test_closed_source_says_so(paths):
    source = feedrate.storage.open(paths, device="cpu")
    rows = source.add_kind("rows", record_bytes=500)
    source.close()
    source.close()
    with pytest.raises(feedrate.Error, match="the source is closed"):
        rows.read(0, 1)


def test_dropped_requests_leave_their_memory_alone(paths):
    """The destination of a dropped request is freed only after the end of the request."""
    with feedrate.storage.open(paths, device="cpu") as source:
        for _ in range(200):
            source.read_async(0, 500, np.empty(256_000, np.uint8))


def test_child_of_a_fork_cannot_use_the_parents_source(paths):
    done = run_code(
        """
        import os, sys, feedrate, feedrate.storage
        source = feedrate.storage.open(sys.argv[1], device="cpu")
        source.read(0, 1)
        child = os.fork()
        if child == 0:
            try:
                source.read(0, 1)
            except feedrate.Error as error:
                print(error, flush=True)
            sys.exit()                                # destroys the source, whose thread exists only in the parent
        assert os.waitpid(child, 0)[1] == 0
        source.read(0, 1)
        """,
        paths[0],
    )
    assert done.returncode == 0, done.stderr
    assert "the source was opened in another process; open it again after a fork" in done.stdout


@pytest.mark.parametrize("signals", [1, 3])
def test_interrupted_requests_keep_their_memory(tmp_path, signals):
    """Ctrl-C arrives while requests are planned, started and waited for; their destinations must not be freed."""
    done = run_code(
        """
        import os, signal, sys, threading, time
        import feedrate.storage, numpy as np
        with open(sys.argv[1], "wb") as file:
            file.truncate(1 << 26)
        source = feedrate.storage.open(sys.argv[1], device="cpu", request_bytes=4096, depth=1)
        kind = source.add_kind("rows", record_bytes=64)
        started = threading.Event()

        def interrupt():
            started.wait()
            for _ in range(int(sys.argv[2])):
                time.sleep(0.1)
                os.kill(os.getpid(), signal.SIGINT)

        def handler(*_):
            global interrupted, armed
            interrupted = True
            if armed:
                armed = False
                raise KeyboardInterrupt

        def work():
            global armed
            while not interrupted or thread.is_alive():
                armed = True
                started.set()
                source.read(0, 1 << 14, np.zeros(1 << 23, "u1"))
                kind.read_batch(np.arange(200_000))

        interrupted = armed = False
        signal.signal(signal.SIGINT, handler)
        thread = threading.Thread(target=interrupt)
        thread.start()
        while True:
            try:
                work()
                break
            except KeyboardInterrupt:
                continue
        armed = False
        print("interrupted", flush=True)
        """,
        str(tmp_path / "data"),
        str(signals),
    )
    assert done.returncode == 0 and done.stdout == "interrupted\n", done.stderr


@on_gpu
def test_tensors_of_pytorch_are_destinations(paths, content):
    torch = pytest.importorskip("torch")
    with feedrate.storage.open(paths, device="cuda") as source:
        rows = source.add_kind("rows", record_bytes=1000)
        tensor = torch.zeros((50, 250), dtype=torch.float32, device="cuda")
        assert rows.read(3, 50, tensor) is tensor
        assert tensor.cpu().numpy().tobytes() == content[3000:53_000].tobytes()
        picked = [5, 299, 5, 0]
        batch = torch.empty((4, 1000), dtype=torch.uint8, device="cuda")
        rows.read_batch(picked, batch)
        assert np.array_equal(batch.cpu().numpy(), content.reshape(-1, 1000)[picked])
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            batch.fill_(7)
            pending = rows.read_async(10, 4, batch, stream)
            copy = batch.clone()
        stream.synchronize()
        pending.wait()
        assert np.array_equal(copy.cpu().numpy(), content[10_000:14_000].reshape(4, 1000))
        with pytest.raises(ValueError, match="destination: invalid device cpu"):
            rows.read(0, 1, np.zeros(1000, np.uint8))
        assert rows.read(0, 1).cpu().numpy().tobytes() == content[:1000].tobytes()


@pytest.mark.skipif(GPU, reason="this machine has a GPU")
def test_auto_takes_the_cpu_without_a_gpu(paths):
    with feedrate.storage.open(paths) as source:
        assert source.device == "cpu"
