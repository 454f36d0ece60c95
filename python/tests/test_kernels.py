"""Work functions in CUDA C++. Compiling needs no GPU; tests that run them are skipped without one."""

import time

import feedrate
import numpy as np
import pytest
from conftest import LONG, on_gpu
from feedrate import kernels

pytest.importorskip("cuda.core", reason="feedrate[kernel] is not installed")

SCALE = """
struct Scale {
  float factor = 1;
  template <class Group>
  void operator()(const Group& group, const Vec16* in, std::size_t bytes, Vec16* out) const {
    auto* from = reinterpret_cast<const float*>(in);
    auto* to = reinterpret_cast<float*>(out);
    for (unsigned i = group.rank(); i < bytes / 4; i += group.size()) to[i] = from[i] * factor;
  }
};
"""
PICKY = """
struct Table { int unused; };
struct Picky {
  const float* table;
  unsigned entries;
  bool negative;
  static bool accepts(std::size_t bytes) { return bytes % 4 == 0; }
  static std::size_t result_bytes(std::size_t bytes) { return bytes / 2; }
  Fault fault(const Header&, const std::byte* payload, std::size_t) const {
    return *reinterpret_cast<const unsigned*>(payload) < entries ? Fault::none : Fault::again;
  }
  template <class Group>
  std::uint32_t operator()(const Group& group, const Vec16* in, std::size_t bytes, Vec16* out) const {
    auto* from = reinterpret_cast<const unsigned*>(in);
    auto* to = reinterpret_cast<float*>(out);
    for (unsigned i = group.rank(); i < bytes / 8; i += group.size()) {
      to[i] = (negative ? -1 : 1) * table[from[2 * i] % entries];
    }
    return 0;
  }
};
"""


def scaled(messages, lengths):
    return messages.view(np.float32) * np.float32(2.5)


def quickest(call) -> float:
    """Shortest time of five identical calls in seconds, which excludes most delays of a busy machine."""
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "feedrate"


@pytest.fixture
def compiled(monkeypatch):
    """Replaces the compiler, which takes seconds. Returns the list of sources passed to it."""
    texts = []
    monkeypatch.setattr(kernels, "_compile", lambda text, arch: (texts.append(text), (b"image", ["name"]))[1])
    return texts


@pytest.mark.parametrize("capability", ["8.0", "9.0", "10.0"] if LONG else ["9.0"])
def test_compiled_kernel_is_cached(folder, capability):
    feedrate.kernel(SCALE, factor=2.5).compile(capability)
    (cached,) = folder.iterdir()
    before = cached.stat().st_mtime_ns
    assert quickest(lambda: feedrate.kernel(SCALE, factor=3.5).compile(capability)) < 0.1  # same source, new value
    assert [cached] == list(folder.iterdir()) and cached.stat().st_mtime_ns == before
    assert str(folder) == str(kernels.cache()), "the tests use the user's cache"


def test_member_of_another_type_is_compiled_separately(folder, compiled):
    for factor in (2.5, 3):
        feedrate.kernel(SCALE, factor=factor).compile("9.0")
    assert len(list(folder.iterdir())) == len(set(compiled)) == 2


def test_damaged_cache_file_is_compiled_again(folder, compiled):
    one = feedrate.kernel(SCALE, factor=2.5)
    one.compile("9.0")
    (cached,) = folder.iterdir()
    intact = cached.read_bytes()
    for damaged in (b"", b"{}", intact[:-1], intact[:20]):
        cached.write_bytes(damaged)
        one.compile("9.0")
        assert cached.read_bytes() == intact
    one.compile("9.0")
    assert len(compiled) == 1 + 4


def test_unwritable_cache_is_ignored(folder, compiled):
    folder.write_text("a file in place of the folder")
    for _ in range(2):
        feedrate.kernel(SCALE, factor=2.5).compile("9.0")
    assert len(compiled) == 2


def test_source_file_is_compiled_under_its_own_name(tmp_path, compiled):
    file = tmp_path / "scale.cu"
    file.write_text(SCALE)
    for source in (SCALE, file, str(file)):
        feedrate.kernel(source).compile("9.0")
    without_file, with_file = compiled  # the third source equals the second
    assert with_file == without_file.replace('#line 1 "kernel.cu"', f'#line 1 "{file}"') != without_file


def test_compile_errors_name_source_lines():
    wrong = SCALE.replace("from[i] * factor", "from[i] * fractor")
    line = 1 + SCALE[: SCALE.index("to[i] =")].count("\n")
    with pytest.raises(feedrate.CompileError, match=rf'^kernel.cu\({line}\): error: identifier "fractor"'):
        feedrate.kernel(wrong).compile("9.0")
    with pytest.raises(feedrate.CompileError, match=r'the members that feedrate.kernel was given.*"Scale" has no member "size"'):
        feedrate.kernel(SCALE, size=3).compile("9.0")


def test_optional_members_compile():
    feedrate.kernel(PICKY, name="Picky", table=0, entries=3, negative=True).compile("9.0")


def test_invalid_name_or_member_is_rejected():
    with pytest.raises(ValueError, match="the source has 2 structs: Table, Picky"):
        feedrate.kernel(PICKY)
    with pytest.raises(ValueError, match="name: invalid value 'Pick'; allowed: Table, Picky"):
        feedrate.kernel(PICKY, name="Pick")
    with pytest.raises(ValueError, match="0 structs: none"):
        feedrate.kernel("// struct Scale {")
    with pytest.raises(ValueError, match="factor: invalid value of type str"):
        feedrate.kernel(SCALE, factor="2.5")
    with pytest.raises(ValueError, match="factor: invalid value of type ndarray"):
        feedrate.kernel(SCALE, factor=np.zeros(3))


def test_python_function_runs_on_the_cpu():
    scale = feedrate.kernel(SCALE, cpu=scaled, factor=2.5)
    numbers = np.arange(16, dtype=np.float32)
    with feedrate.Ring(scale, message_bytes=64, device="cpu") as ring:
        assert (np.frombuffer(ring.call(numbers), np.float32) == numbers * 2.5).all()
    rows = np.tile(numbers, (5, 1)).view(np.uint8)
    assert (scale.run(rows, device="cpu").view(np.float32) == numbers * 2.5).all()
    for ask in (lambda one: feedrate.Ring(one, device="cpu"), lambda one: one.run(rows, device="cpu")):
        with pytest.raises(ValueError, match="device: invalid value 'cpu'; allowed: 'cuda', for CUDA C"):
            ask(feedrate.kernel(SCALE))
    with pytest.raises(ValueError, match="device: invalid value 'cpu'"):
        feedrate.TensorRing(scale, device="cpu")
    broken = feedrate.kernel(SCALE, cpu=lambda messages, lengths: 1 / 0)
    with pytest.raises(feedrate.MessageFailed) as failed:
        broken.run(rows, device="cpu")
    assert isinstance(failed.value.__cause__, ZeroDivisionError)


def test_cache_key_depends_on_headers(tmp_path, monkeypatch):
    first = kernels._key("text", "sm_90")
    monkeypatch.setattr(kernels, "INCLUDE", tmp_path)
    assert kernels._key("text", "sm_90") != first != kernels._key("text", "sm_80")


# --- on a GPU ---------------------------------------------------------------------------------------------------------


@on_gpu
def test_ring_runs_the_kernel():
    numbers = np.arange(16, dtype=np.float32)
    with feedrate.Ring(feedrate.kernel(SCALE, factor=2.5), message_bytes=64, lanes=2, device="cuda") as ring:
        assert (np.frombuffer(ring.call(numbers), np.float32) == numbers * 2.5).all()
        many = [np.full(1 + i % 16, i, np.float32) for i in range(3000)]
        for sent, result in zip(many, ring.map(many), strict=True):
            assert (np.frombuffer(result, np.float32) == sent * 2.5).all()
        with ring.reserve(512) as messages:
            messages.payload.view(np.float32)[:] = np.asarray(messages.id, np.float32)[:, None]
            sent = len(messages)
        while sent:
            with ring.poll(512) as answers:
                assert (answers.payload.view(np.float32) == np.asarray(answers.id, np.float32)[:, None] * 2.5).all()
                sent -= len(answers)


@on_gpu
@pytest.mark.parametrize(("bytes_each", "n"), [(16, 1000), (64, 5000), (1024, 700), (65536, 40)])
def test_run_uses_one_launch(bytes_each, n):
    rows = np.random.default_rng(1).random((n, bytes_each // 4), dtype=np.float32)
    found = feedrate.kernel(SCALE, factor=-0.5).run(rows.view(np.uint8), device="cuda")
    assert (found.view(np.float32) == rows * np.float32(-0.5)).all()


@on_gpu
def test_functor_can_use_pointers_faults_and_lengths():
    torch = pytest.importorskip("torch")
    table = torch.tensor([10.0, 20.0, 30.0], device="cuda")
    picky = feedrate.kernel(PICKY, name="Picky", table=table, entries=3, negative=True)
    with feedrate.Ring(picky, message_bytes=64, lanes=1, device="cuda") as ring:
        answer = ring.call(np.array([1, 0, 2, 0], np.uint32))
        assert np.frombuffer(answer, np.float32).tolist() == [-20.0, -30.0]
        with pytest.raises(feedrate.MessageFailed, match="again"):
            ring.call(np.array([7, 0], np.uint32))
        with pytest.raises(feedrate.MessageFailed, match="bad_length"):
            ring.call(b"abc")


@on_gpu
def test_kernel_loads_quickly_from_the_cache():
    scale = feedrate.kernel(SCALE, factor=2.5)
    with feedrate.Ring(scale, device="cuda") as ring:  # creates the context and fills the cache
        ring.call(bytes(64))
    assert quickest(lambda: scale._on("cuda", 0)) < 0.1
