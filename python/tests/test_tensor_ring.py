"""Tensors by address: arrays on the CPU device and PyTorch tensors on a GPU."""

import asyncio
import gc

import feedrate
import numpy as np
import pytest
from conftest import on_gpu

SQUARE = """
struct Square {
  template <class Group>
  void operator()(const Group& group, const Vec16* in, std::size_t bytes, Vec16* out) const {
    auto* from = reinterpret_cast<const float*>(in);
    auto* to = reinterpret_cast<float*>(out);
    for (std::size_t i = group.rank(); i < bytes / 4; i += group.size()) to[i] = from[i] * from[i];
  }
};
"""


def aligned(n: int, dtype=np.float32) -> np.ndarray:
    """Returns an array aligned to 16 bytes, which NumPy usually provides but does not guarantee."""
    raw = np.zeros(n * np.dtype(dtype).itemsize + 16, np.uint8)
    begin = -raw.ctypes.data % 16
    return raw[begin : begin + n * np.dtype(dtype).itemsize].view(dtype)


@pytest.fixture
def ring():
    with feedrate.TensorRing("echo", device="cpu", lanes=2) as made:
        yield made


@pytest.mark.parametrize("n", [4, 1024, 1 << 20])
def test_result_is_written_to_out(ring, n):
    source, out = aligned(n), aligned(n)
    source[:] = np.arange(n)
    assert ring.call(source, out) is out
    assert (out == source).all()
    assert ring.call(source) is source and (source == np.arange(n)).all()


def test_many_tensors_are_processed_at_once(ring):
    sources = [aligned(64) for _ in range(2000)]
    outs = [aligned(64) for _ in sources]
    for i, one in enumerate(sources):
        one[:] = i
    futures = [ring.submit(source, out) for source, out in zip(sources, outs, strict=True)]
    for i, (future, out) in enumerate(zip(futures, outs, strict=True)):
        assert future.result(10) is out and (out == i).all()

    async def main():
        return await asyncio.gather(*(ring.acall(source, out) for source, out in zip(outs, sources, strict=True)))

    assert all((one == i).all() for i, one in enumerate(asyncio.run(main())))
    assert ring.stats()["sent"] == ring.stats()["answered"] == 4000


def test_tensors_in_flight_are_kept_alive(ring):
    def send():
        source = aligned(1 << 16)
        source[:] = 7
        return ring.submit(source, aligned(1 << 16))

    futures = [send() for _ in range(50)]
    gc.collect()
    assert all((future.result(10) == 7).all() for future in futures)


def test_invalid_tensors_are_rejected(ring):
    valid = aligned(64)
    with pytest.raises(TypeError, match="tensor: invalid type bytes; allowed: arrays that support DLPack"):
        ring.call(b"x" * 16)
    with pytest.raises(ValueError, match="tensor: invalid array; allowed: contiguous"):
        ring.call(valid[::2])
    with pytest.raises(ValueError, match="tensor: invalid tensor of 20 bytes at address 0x.*; allowed: multiples"):
        ring.call(valid[:5])
    with pytest.raises(ValueError, match="out: invalid tensor of 16 bytes at address"):
        ring.call(valid[:4], valid[1:5])
    with pytest.raises(feedrate.MessageFailed, match="too_long"):
        ring.call(valid, aligned(32))
    with pytest.raises(TypeError, match="work: invalid type function; allowed: 'echo', a feedrate.kernel"):
        feedrate.TensorRing(lambda messages, lengths: messages)
    ring.close()
    with pytest.raises(feedrate.Error, match="closed"):
        ring.call(valid)


@on_gpu
def test_gpu_ring_rejects_a_host_tensor():
    with feedrate.TensorRing(device="cuda") as ring, pytest.raises(ValueError, match="invalid DLPack device type 1"):
        ring.call(aligned(16))


@on_gpu
def test_tensors_are_ordered_with_their_streams():
    """Work queued on the owner's stream before the call finishes first; work queued after it sees the result."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("cuda.core")
    torch.empty(1, device="cuda").add_(1).sum().item()
    with feedrate.TensorRing(feedrate.kernel(SQUARE), device="cuda", lanes=4) as ring:
        for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
            with torch.cuda.stream(stream):
                for i in range(200):
                    source = torch.zeros(1 << 20, device="cuda")
                    for _ in range(20):  # takes longer than sending the tensor
                        source += i
                    out = torch.empty_like(source)
                    ring.call(source, out)
                    assert float((out - (20.0 * i) ** 2).abs().max()) == 0, i
                    ring.call(source)
                    assert torch.equal(source, out)


@on_gpu
def test_repeated_tensor_is_read_again_each_time():
    """A resident block must not see stale memory contents in its L1."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("cuda.core")
    source, out = torch.zeros(4096, device="cuda"), torch.zeros(4096, device="cuda")
    with feedrate.TensorRing(feedrate.kernel(SQUARE), device="cuda", lanes=1) as ring:
        for i in range(2000):
            source.fill_(i % 97)
            ring.call(source, out)
            assert float(out[i % 4096]) == float((i % 97) ** 2)
        assert out.eq(float((1999 % 97) ** 2)).all()
