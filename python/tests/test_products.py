"""Products by the ladder's rungs. Those on a GPU are skipped without one."""

from pathlib import Path

import feedrate
import numpy as np
import pytest
from conftest import on_gpu, run_code
from feedrate import kernels

LIBRARY = Path(__file__).with_name("libfeedrate_kernels.so")
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the library of kernels was not built")
CPU = ("cpu_naive", "cpu_blocked", "cpu_vectorised", "cpu_packed")


@pytest.fixture(autouse=True, scope="module")
def library():
    kernels.load(LIBRARY)

SQUARE = np.ones((8, 8), np.float32)
LOCKED = np.ones((4, 8), np.float32)
LOCKED.flags.writeable = False


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape, dtype=np.float32)


def stored(matrix: np.ndarray, way: str) -> np.ndarray:
    """The same matrix, stored in rows or transposed."""
    return matrix if way == "n" else np.ascontiguousarray(matrix.swapaxes(-1, -2)).swapaxes(-1, -2)


@pytest.mark.parametrize("rung", CPU)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_products_equal_numpys(rung, layout):
    a, b = stored(random(65, 130), layout[0]), stored(random(130, 33), layout[1])
    np.testing.assert_allclose(kernels.matmul(a, b, rung), a @ b, rtol=1e-4, atol=1e-4)


def test_batch_bias_gelu_and_scale():
    a, b, bias = random(3, 20, 16), random(3, 16, 24), random(24)
    value = 0.5 * (a @ b) + bias
    expected = value / (1 + np.exp(-2 * 0.7978845608 * (value + 0.044715 * value**3)))
    out = np.full((3, 20, 24), np.nan, np.float32)
    assert kernels.matmul(a, b, bias=bias, gelu=True, scale=0.5, out=out) is out
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(kernels.matmul(a, b, bias=bias), a @ b + bias, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(0, 5, 3), (5, 0, 3), (5, 3, 0), (1, 1, 1)])
def test_small_and_empty_products(shape):
    m, n, k = shape
    np.testing.assert_allclose(kernels.matmul(random(m, k), random(k, n)), random(m, k) @ random(k, n), atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"rung": "none"}, "rung: invalid value 'none'; allowed: .*cpu_packed"),
        ({"rung": "tma_store"}, "rung: invalid value 'tma_store'; allowed: rungs for the device 'cpu'"),
        ({"b": random(7, 8)}, r"b: invalid shape \(7, 8\); allowed: \(6, 'n'\)"),
        ({"b": random(6, 8).astype(np.float64)}, "a, b: invalid types fp32 and float64"),
        ({"a": random(4, 6).astype(">f4")}, "a, b: invalid types >f4 and fp32"),
        ({"a": random(4, 12)[:, ::2]}, "a: invalid strides"),
        ({"dtype": "int8"}, "dtype: invalid value 'int8'; allowed: tf32, fp32, fp16, bf16, fp8"),
        ({"dtype": "tf32"}, "rung: invalid value 'cpu_packed'; allowed: "),
        ({"out": random(4, 9)}, r"out: invalid array of fp32, shape \(4, 9\) and strides .*; allowed: fp32, \(4, 8\)"),
        ({"out": random(8, 4).T}, "out: invalid array"),
        ({"bias": random(4)}, r"bias: invalid array of fp32, shape \(4,\) and strides \(1,\); allowed: fp32, \(8,\)"),
        ({"bias": random(16)[::2]}, r"bias: invalid array of fp32, shape \(8,\) and strides \(2,\)"),
        ({"gelu": True}, "gelu: invalid value True; allowed: False without a bias"),
        ({"scale": np.nan}, "scale: invalid value nan; allowed: finite numbers"),
        ({"a": SQUARE, "b": SQUARE.T, "out": SQUARE}, "out: invalid array, which shares memory with a"),
        ({"out": LOCKED}, "out: invalid read-only array"),
        ({"a": np.ones((4, 6), "u1"), "b": np.ones((6, 8), "u1"), "dtype": "fp8"}, "out: an array of bfloat16 is required"),
    ],
)
def test_invalid_arguments_are_named(arguments, said):
    with pytest.raises(ValueError, match=said):
        kernels.matmul(**{"a": random(4, 6), "b": random(6, 8), **arguments})


class Temporary:
    """Exports a copy, which lives as long as its capsule."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **how):
        return self.array.copy().__dlpack__()


def test_temporary_tensors_live_until_the_product_is_complete():
    a, b = random(300, 300), random(300, 300)
    out = np.zeros((300, 300), np.float32)
    kernels.matmul(Temporary(a), Temporary(b), out=out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"rung": b"cpu_packed"}, "rung: invalid value b'cpu_packed'; allowed: str"),
        ({"stream": "x"}, "stream: invalid value 'x'; allowed: int"),
        ({"a": np.ma.masked_array(random(4, 6), mask=True)}, "a: invalid type masked array"),
    ],
)
def test_arguments_of_other_types_are_named(arguments, said):
    with pytest.raises(TypeError, match=said):
        kernels.matmul(**{"a": random(4, 6), "b": random(6, 8), **arguments})


def test_what_is_no_array_is_rejected():
    with pytest.raises(TypeError, match="a: invalid type list; allowed: arrays that support DLPack"):
        kernels.matmul([[1.0]], random(1, 1))


def test_rungs_are_listed_by_step():
    listed = kernels.rungs()
    names = [rung["name"] for rung in listed]
    assert [name for name in names if name in CPU] == list(CPU)
    assert {"tma_store", "cublaslt"} <= set(names)
    assert all(rung["changes"] for rung in listed)
    assert {rung["step"] for rung in listed if rung["name"].startswith("cublas")} == {0}


def test_missing_library_is_explained(tmp_path):
    with pytest.raises(feedrate.Error, match="feedrate_kernels_library"):
        kernels.load(tmp_path / "none.so")
    with pytest.raises(feedrate.Error, match="undefined symbol: feedrate_matmul"):
        kernels.load("libm.so.6")
    assert kernels.rungs(), "the library that was loaded before stays"


def test_without_a_library_matmul_says_how_to_build_it():
    code = "import numpy; from feedrate import kernels; one = numpy.eye(2, dtype='f4'); kernels.matmul(one, one)"
    done = run_code(code)
    assert done.returncode == 1 and "no library of kernels is loaded; build it" in done.stderr


@on_gpu
@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_products_on_the_gpu_equal_pytorchs(name):
    torch = pytest.importorskip("torch")
    a, b = (torch.randn(256, 256, device="cuda", dtype=getattr(torch, name)) for _ in range(2))
    expected = a @ b.T
    torch.testing.assert_close(kernels.matmul(a, b.T), expected, rtol=2e-2, atol=2e-1)
    other = torch.cuda.Stream()
    with torch.cuda.stream(other):
        c = a * 2  # the product must wait for it
        made = kernels.matmul(c, b.T, stream=other.cuda_stream) / 2
    other.synchronize()
    torch.testing.assert_close(made, expected, rtol=2e-2, atol=2e-1)
