"""Every function that takes arrays accepts values and rejects arrays whose bytes have no meaning elsewhere."""

import asyncio
import ctypes

import feedrate
import feedrate.redis as fr
import gpuqueue
import numpy as np
import pytest
from feedrate.buffers import buffer_of, bytes_of

DATES = np.zeros(2, "datetime64[s]")
MASKED = np.ma.masked_array(np.array([1, 2], np.uint8), [False, True])
NO_VALUES = {
    "objects": np.array([1, None], dtype=object),
    "an object": np.array(None, dtype=object),
    "objects in records": np.zeros(2, [("a", "i4"), ("b", object)]),
    "dates": DATES,
    "a date": DATES[0],
    "durations": np.zeros(2, "timedelta64[ms]"),
    "dates in records": np.zeros(2, [("a", "i4"), ("b", [("c", "datetime64[ns]", (2,))])]),
    "masked": MASKED,
}
if hasattr(np, "dtypes") and hasattr(np.dtypes, "StringDType"):
    NO_VALUES["strings of any length"] = np.array(["a", "b"], np.dtypes.StringDType())
POINTERS = [
    ctypes.c_void_p, ctypes.c_char_p, ctypes.c_wchar_p, ctypes.py_object, ctypes.POINTER(ctypes.c_int),
    ctypes.CFUNCTYPE(ctypes.c_int),
]  # fmt: skip
VALUES = {
    "big-endian": np.arange(4, dtype=">f4"),
    "complex": np.arange(2, dtype="c16"),
    "wide complex": np.arange(2, dtype=np.clongdouble),
    "booleans": np.array([True, False]),
    "strings": np.array(["ab", "c"]),
    "records": np.array([(1, 2.0)], [("O", "i4"), ("P", "f8")]),
    "a number": np.float32(2.5),
    "an integer": np.array(5, np.int32),
    "a ctypes array": (ctypes.c_int * 3)(1, 2, 3),
    "a structure": type("Point", (ctypes.Structure,), {"_fields_": [("X", ctypes.c_int), ("Z", ctypes.c_float)]})(1, 2),
}

no_values = pytest.mark.parametrize("array", NO_VALUES.values(), ids=NO_VALUES)


def rejected(name):
    return pytest.raises(TypeError, match=f"^{name}: invalid .*; allowed: ")


@pytest.fixture(scope="module")
def ring():
    with feedrate.Ring("echo", device="cpu", message_bytes=256) as made:
        yield made


@no_values
def test_ring_rejects_addresses(ring, array):
    async def wait():
        return await ring.acall(array)

    for send in (ring.call, ring.submit, lambda one: list(ring.map([one])), lambda one: asyncio.run(wait())):
        with rejected("payload"):
            send(array)


@pytest.mark.parametrize("pointer", POINTERS)
def test_ring_rejects_pointers(ring, pointer):
    structure = type("Structure", (ctypes.Structure,), {"_fields_": [("n", ctypes.c_int), ("p", pointer)]})
    packed = type("Packed", (ctypes.Structure,), {"_pack_": 1, "_fields_": [("n", ctypes.c_uint8), ("p", pointer)]})
    union = type("Union", (ctypes.Union,), {"_fields_": [("n", ctypes.c_long), ("p", pointer)]})
    for one in ((pointer * 2)(), structure(), (structure * 2)(), packed(), (packed * 2)(), union()):
        with rejected("payload"):
            ring.call(one)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_values_are_sent_unchanged(ring, value):
    assert ring.call(value) == bytes_of(value) == memoryview(value).tobytes()
    with gpuqueue.GpuQueue() as queue:
        number, (found, payload) = queue.enqueue(value), (False, b"")
        while not found:
            found, payload = queue.try_dequeue_result(number)
    assert payload == memoryview(value).tobytes()


def test_dtypes_without_a_buffer_format_are_sent(ring):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    assert ring.call(np.ones((2, 2), bfloat16)) == b"\x80\x3f" * 4
    with pytest.raises(ValueError, match="contiguous"):
        buffer_of(np.ones((4, 4), bfloat16).T[1:])


def test_integer_is_not_interpreted_as_length():
    """bytes() turns a zero-dimensional array of 5 into five zeros; messages that wait for room must be unaffected."""

    async def main():
        return await asyncio.gather(*(ring.acall(np.array(5, np.int32)) for _ in range(500)))

    with feedrate.Ring("echo", device="cpu", lanes=1, capacity=16) as ring:
        assert set(asyncio.run(main())) == {b"\5\0\0\0"}


@no_values
def test_gpuqueue_rejects_addresses(array):
    with gpuqueue.GpuQueue() as queue:
        for send in (queue.enqueue, queue.enqueue_nowait):
            with rejected("buffer"):
                send(array)


@pytest.mark.parametrize("name", ["tensor", "out"])
@no_values
def test_tensor_ring_rejects_addresses(name, array):
    whole = np.zeros(64, np.uint8)
    with feedrate.TensorRing("echo", device="cpu") as tensors, rejected(name):
        tensors.call(*((array,) if name == "tensor" else (whole[-whole.ctypes.data % 16 :][:16], array)))


def test_tensor_ring_names_arrays_that_dlpack_rejects():
    read_only = np.zeros(64, np.uint8)
    read_only.flags.writeable = False
    with feedrate.TensorRing("echo", device="cpu") as tensors:
        for array in (np.zeros(4, ">f4"), np.zeros(4, [("a", "f4")]), read_only):
            with rejected("tensor"):
                tensors.call(array)


@no_values
def test_function_results_with_addresses_are_rejected(array):
    rows = array if isinstance(array, np.ndarray) and array.shape == (2,) else np.array([array, array])
    with feedrate.Ring(lambda messages, lengths: rows[: len(lengths)], device="cpu", result_bytes=256) as ring:
        with pytest.raises(feedrate.MessageFailed) as failed:
            ring.call(b"x")
    assert isinstance(failed.value.__cause__, TypeError) and "results: invalid" in str(failed.value.__cause__)


def test_view_rejects_dates_and_masks(ring):
    with ring.reserve(2, timeout=10) as messages:
        for array in (DATES, DATES[0], MASKED):
            with rejected("value"):
                messages.id[:] = array
        messages.id[:] = np.array([3, 4][: len(messages)], dtype=object)  # NumPy converts these by value
        assert messages.id[0] == 3
        messages.count = 0


def test_kernel_run_accepts_only_bytes():
    kernel = feedrate.kernel("struct Same {};", cpu=lambda messages, lengths: messages)
    assert (kernel.run([[1, 2], [3, 4]], device="cpu") == [[1, 2], [3, 4]]).all()
    for array in (*NO_VALUES.values(), np.full((2, 2), 1.5)):
        if isinstance(array, np.ndarray):
            with rejected("messages"):
                kernel.run(array, device="cpu")


@no_values
def test_redis_client_rejects_addresses(redis_url, array):
    async def main():
        async with fr.AsyncClient(redis_url, prefix="buffers") as client:
            await client.submit(array)

    with fr.Client(redis_url, prefix="buffers") as client, rejected("payload"):
        client.submit(array)
    with rejected("payload"):
        asyncio.run(main())


def test_redis_client_accepts_arrays_but_not_numbers(redis_url):
    with fr.Client(redis_url, prefix="buffers") as client:
        with pytest.raises(TypeError, match="payload: invalid type int"):
            client.submit(5)
        strided = np.arange(6, dtype=np.uint8)[::2]
        number = client.submit(strided)
        element = client._redis.lpop("buffers:tasks")
    assert [one[:3] for one in fr.decode(element)] == [(number, 3, strided.tobytes())]
