"""The tensor store from Python: shared memory, leases, versions and errors."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import feedrate
from feedrate import tensors
from conftest import wait_until
from test_buffers import no_values

CHILD = """
import sys, time
import numpy as np
from feedrate import tensors
store = tensors.connect(sys.argv[1])
{work}
"""


@pytest.fixture
def store(socket):
    return tensors.connect(socket)


def child(socket, work):
    return subprocess.Popen([sys.executable, "-c", CHILD.format(work=work), socket])


def test_processes_share_the_same_memory(socket, store):
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    made = store.put("x", array)
    assert made.version == 1
    work = "t = store.wait('x', 10); assert t.numpy()[2, 3] == 11; t.numpy()[0, 0] = 7; t.publish()"
    process = child(socket, work)
    assert made.wait_for(2, 20)
    assert made.numpy()[0, 0] == 7
    assert process.wait(20) == 0


def test_view_holds_the_lease(store):
    array = store.put("x", np.ones(3_000_000)).numpy()
    assert store.stat("x")["leases"] == 1
    part = array[10:20]
    del array
    store.delete("x")
    assert store.status()["deleted"] == 1
    part[:] = 5
    del part
    wait_until(lambda: store.status()["deleted"] == 0)


def test_dlpack_and_numpy_share_the_memory(store):
    made = store.create("x", (2, 3), np.int16)
    view = np.from_dlpack(made)  # NumPy imports a DLPack capsule as read-only
    made.numpy()[1, 2] = 9
    assert view[1, 2] == np.asarray(made)[1, 2] == 9
    assert made.numpy().dtype == np.int16
    strided = store.create("s", (2, 3), "int32", strides=(1, 2))
    assert strided.numpy().strides == (4, 8)
    scalar = store.put("scalar", 2.5)
    assert scalar.shape == () and scalar.numpy()[()] == 2.5
    assert store.create("none", (0, 4)).numpy().shape == (0, 4)


def test_torch_writes_into_the_store(store):
    torch = pytest.importorskip("torch")
    made = store.create("x", (4,), torch.bfloat16)
    torch.from_dlpack(made).fill_(3)
    assert torch.from_dlpack(store.get("x"))[3] == 3


@pytest.mark.parametrize("dtype", ["bool", "uint64", "float64", "complex64", "int8", "float16"])
def test_numpy_dtypes_round_trip(store, dtype):
    array = (np.arange(10) % 2).astype(dtype)
    np.testing.assert_array_equal(store.put("x", array).numpy(), array)
    assert store.get("x").numpy().dtype == array.dtype


@pytest.mark.parametrize("dtype", [">f4", ">i8", ">c16", ">f2", "<u4"])
def test_other_byte_order_is_converted(store, dtype):
    for array in (np.arange(6, dtype=dtype).reshape(2, 3).T, np.array(2, dtype), np.zeros((0, 3), dtype)):
        made = store.put("x", array)
        assert made.numpy().dtype.isnative and made.shape == array.shape
        np.testing.assert_array_equal(made.numpy(), array)
        store.delete("x")


@pytest.mark.parametrize("name, own", [("bfloat16", "bf16"), ("float8_e4m3fn", "e4m3"), ("float8_e5m2", "e5m2")])
def test_ml_dtypes_are_stored(store, name, own):
    array = np.arange(6).astype(getattr(pytest.importorskip("ml_dtypes"), name)).reshape(2, 3).T
    made = store.put("x", array)
    assert made.dtype == own and made.shape == (3, 2)
    assert ctypes.string_at(made._held.address, made.nbytes) == array.tobytes()


@no_values
def test_store_rejects_addresses(store, array):
    with pytest.raises(TypeError, match="^array: invalid .*; allowed: "):
        store.put("x", array)
    assert store.list() == []


def test_dtype_none_is_rejected(store):
    with pytest.raises(TypeError, match="dtype: invalid value None; allowed: "):
        store.create("x", 4, None)


@pytest.mark.parametrize("dtype", ["longdouble", "U3", "S3", [("a", "i4")]])
def test_unsupported_dtype_is_named(store, dtype):
    with pytest.raises(ValueError, match="dtype: .*'.*'.*; allowed: f16, bf16"):
        store.put("x", np.zeros(2, dtype))


def test_object_that_numpy_cannot_convert_is_named(store):
    class Tensor:  # behaves like a bfloat16 tensor of PyTorch
        def __array__(self, dtype=None, copy=None):
            raise TypeError("unsupported ScalarType BFloat16")

    with pytest.raises(TypeError, match="array: invalid type Tensor .*BFloat16.*; allowed: objects that NumPy"):
        store.put("x", Tensor())


@pytest.mark.parametrize("ttl", [float("nan"), float("inf"), -float("inf"), 0, -1, 1e300])
def test_invalid_time_to_live_is_rejected(store, ttl):
    for make in (lambda: store.create("x", 4, ttl=ttl), lambda: store.put("x", np.ones(3), ttl=ttl)):
        with pytest.raises(ValueError, match="ttl: .*; allowed: seconds above 0, at most 1e9"):
            make()
    assert store.list() == []


def test_error_names_the_invalid_argument(store):
    made = store.create("x", np.int64(4), ttl=np.float32(60))
    assert made.shape == (4,) and store.stat("x")["expires"]
    nan = float("nan")
    for error, name, ask in (
        (TypeError, "shape", lambda: store.create("y", [4.0])),
        (ValueError, "shape", lambda: store.create("y", 2**70)),
        (TypeError, "strides", lambda: store.create("y", (2, 2), strides=(1.0, 2.0))),
        (TypeError, "dtype", lambda: store.create("y", 4, 5)),
        (TypeError, "ttl", lambda: store.create("y", 4, ttl="5")),
        (TypeError, "timeout", lambda: store.wait("y", "1")),
        (ValueError, "timeout", lambda: store.wait("y", nan)),
        (ValueError, "timeout", lambda: made.wait_for(2, nan)),
        (ValueError, "patience", lambda: tensors.connect(store.socket, nan)),
    ):
        with pytest.raises(error, match=f"^{name}: .*; allowed: "):
            ask()
    assert tensors.connect(store.socket, float("inf")).get("x").shape == (4,)


def test_errors_name_tensor_and_reason(store):
    with pytest.raises(tensors.TensorNotFound, match="no tensor 'x'"):
        store.get("x")
    with pytest.raises(KeyError):
        store.delete("x")
    store.create("x", 10)
    with pytest.raises(tensors.TensorExists, match="'x' exists"):
        store.create("x", 10)
    with pytest.raises(MemoryError, match="1073741824 bytes are more than"):
        store.create("y", 1 << 28)
    with pytest.raises(TimeoutError, match="tensor 'y'"):
        store.wait("y", 0.05)
    with pytest.raises(ValueError, match="dtype: invalid value 'strange'"):
        store.create("y", 1, "strange")
    with pytest.raises(ValueError, match="shape: invalid value '-1'"):
        store.create("y", -1)
    with pytest.raises(ValueError, match="invalid value 'bf16'"):
        store.create("y", 1, "bfloat16").numpy()
    with pytest.raises(feedrate.Error):
        tensors.connect("/nowhere/s")


def test_failed_put_leaves_no_tensor(store, monkeypatch):
    def fails(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "ascontiguousarray", fails)
    with pytest.raises(KeyboardInterrupt):
        store.put("x", np.ones(3))
    assert store.list() == []


def test_names_expire_and_are_evicted(store):
    store.create("short", 10, ttl=0.05)
    store.create("pinned", 10, pin=True)
    store.create("idle", 10)
    wait_until(lambda: [about["name"] for about in store.list()] == ["idle", "pinned"])
    assert store.evict() == 256
    assert [about["name"] for about in store.list()] == ["pinned"]
    store.pin("pinned", False)
    store.evict()
    assert store.list() == []


def test_read_half_is_consistent(socket, store):
    made = store.create("x", (2, 5000), np.int64)
    work = "t = store.get('x')\nfor i in range(1, 500):\n    t.next_half()[:] = i\n    t.publish()"
    process = child(socket, work)
    version, end = 0, time.monotonic() + 60
    while version < 499:
        assert time.monotonic() < end
        version, copy = made.read_half()
        assert (copy == version).all()
    assert process.wait(20) == 0
    store.seal("x")
    assert made.sealed
    with pytest.raises(ValueError, match="not sealed"):
        made.next_half()


def test_killed_process_loses_its_leases(socket, store):
    store.create("x", 10)
    process = child(socket, "t = store.get('x'); time.sleep(60)")
    wait_until(lambda: store.stat("x")["leases"] == 1)
    process.kill()
    process.wait()
    wait_until(lambda: store.stat("x")["leases"] == 0)


def test_forked_child_must_connect_again(socket, store):
    held = store.create("x", 10)
    reader, writer = multiprocessing.Pipe()
    pid = os.fork()
    if pid == 0:
        try:
            store.get("x")
            writer.send("taken")
        except feedrate.Error as error:
            again = tensors.connect(socket).get("x")
            writer.send(f"{error} {again.name}")
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert "before a fork" in reader.recv()
    assert store.stat("x")["leases"] == 1
    assert held.numpy().size == 10


def test_ctrl_c_ends_a_wait(socket):
    work = """
import _thread, threading
threading.Timer(0.1, _thread.interrupt_main).start()
try:
    store.wait("never", 60)
except KeyboardInterrupt:
    sys.exit(3)
"""
    assert child(socket, work).wait(30) == 3


def test_default_socket_is_in_the_runtime_directory(monkeypatch):
    monkeypatch.delenv("FEEDRATE_SOCKET", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/me")
    assert tensors.standard_socket() == "/run/me/feedrate-store.sock"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    with pytest.raises(ValueError, match="socket"):
        tensors.standard_socket()


def test_stream_is_rejected_for_a_tensor_in_host_memory(store):
    tensor = store.create("host", 4)
    assert tensor.publish() == 1
    for call in (lambda: tensor.publish(7), lambda: tensor.wait_on(7, 1)):
        with pytest.raises(ValueError, match="host memory"):
            call()
    with pytest.raises(TypeError, match="a CUDA stream"):
        tensor.publish("a stream")
    assert tensor.version == 1


def test_streams_of_frameworks_are_supported():
    class Torch:
        cuda_stream = 11

    class CuPy:
        ptr = 12

    class Protocol:
        def __cuda_stream__(self):
            return (0, 13)

    address = feedrate.arrays.stream_address
    assert [address(Torch()), address(CuPy()), address(Protocol()), address(14)] == [11, 12, 13, 14]


def test_dlpack_rejects_copies(store):
    tensor = store.put("x", np.arange(3))
    with pytest.raises(BufferError, match="without a copy"):
        tensor.__dlpack__(copy=True)
