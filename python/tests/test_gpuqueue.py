"""The gpuqueue package, with the API that the GPUQueue project promised."""

import gpuqueue
import pytest
from conftest import GPU, in_threads


@pytest.fixture
def queue():
    with gpuqueue.GpuQueue(gpuqueue.QueueConfig(capacity=64, slot_bytes=128)) as one:
        yield one


def result(queue, number):
    while True:
        found, payload = queue.try_dequeue_result(number)
        if found:
            return payload


@pytest.mark.parametrize(
    "capacity, slot_bytes, valid",
    [(1024, 512, True), (1, 1, True), (0, 512, False), (1000, 512, False), (-4, 8, False), (16, 0, False)],
)
def test_config_reports_whether_it_is_valid(capacity, slot_bytes, valid):
    config = gpuqueue.QueueConfig(capacity=capacity, slot_bytes=slot_bytes)
    assert config.is_valid() == valid
    assert repr(config) == f"QueueConfig(capacity={capacity}, slot_bytes={slot_bytes})"
    if not valid:
        with pytest.raises(ValueError, match="config: invalid value"):
            gpuqueue.GpuQueue(config)


def test_default_values():
    assert gpuqueue.QueueConfig() == gpuqueue.QueueConfig(capacity=1024, slot_bytes=512)
    stats = gpuqueue.QueueStats()
    assert (stats.enqueue_count, stats.dequeue_count, stats.processed_count, stats.queue_depth) == (0, 0, 0, 0)
    assert gpuqueue.QueueStatus.OK == 0
    assert isinstance(gpuqueue.is_available(), bool)
    assert gpuqueue.version() and gpuqueue.version() in gpuqueue.core_version()


def test_ids_count_up_and_payloads_come_back(queue):
    payloads = [bytes([n % 256]) * (n % 129) for n in range(300)]
    for n, payload in enumerate(payloads, start=1):
        assert queue.enqueue(payload) == n
    assert [result(queue, n) for n in range(1, 301)] == payloads
    assert queue.try_dequeue_result(5) == (False, b"")  # each result is returned once
    assert queue.try_dequeue_result(12345) == (False, b"")
    stats = queue.stats()
    assert (stats.enqueue_count, stats.dequeue_count, stats.processed_count, stats.queue_depth) == (300, 300, 300, 0)
    assert queue.depth() == 0


def test_completions_are_reported_once(queue):
    numbers = [queue.enqueue(b"x") for _ in range(50)]
    found = []
    while len(found) < 50:
        found += queue.poll_completions(7)
    assert sorted(found) == numbers and queue.poll_completions(7) == []


def test_too_large_message_or_closed_queue_raises_value_error(queue):
    with pytest.raises(ValueError, match="129 bytes"):
        queue.enqueue(bytes(129))
    number = queue.enqueue(b"last")
    assert queue.is_running()
    queue.shutdown()
    queue.shutdown()
    assert not queue.is_running()
    with pytest.raises(ValueError, match="shut down"):
        queue.enqueue(b"x")
    assert result(queue, number) == b"last"


@pytest.mark.skipif(GPU, reason="a GPU takes messages faster than this loop sends them")
def test_enqueue_nowait_raises_when_full_and_enqueue_waits():
    with gpuqueue.GpuQueue(gpuqueue.QueueConfig(capacity=16, slot_bytes=16)) as queue:
        for _ in range(2000):  # far more than its capacity
            queue.enqueue(b"x")
        full = False
        for _ in range(200_000):
            try:
                queue.enqueue_nowait(b"x")
            except gpuqueue.QueueError as error:
                assert error.status is gpuqueue.QueueStatus.ERR_FULL
                full = True
                break
        assert full


def test_threads_share_a_queue(queue):
    wrong = []

    def one(name):
        for i in range(200):
            payload = f"{name}{i}".encode()
            if result(queue, queue.enqueue(payload)) != payload:
                wrong.append(payload)

    in_threads(*(lambda name=name: one(name) for name in "abcd"))
    assert wrong == []


def test_init_rejects_a_missing_gpu():
    with pytest.raises(ValueError, match="device: invalid value 99"):
        gpuqueue.init(99)
    gpuqueue.init()
    gpuqueue.shutdown()
