import os

import pytest

from analysis.cores import on_all


def test_results_come_in_the_order_of_the_items():
    assert on_all(lambda item: item * item, range(11)) == [item * item for item in range(11)]
    assert on_all(lambda item: item, []) == []


def test_the_work_is_shared_out():
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core only")
    assert len(set(on_all(lambda _: os.getpid(), range(4)))) > 1


def test_what_the_work_throws_is_thrown():
    with pytest.raises(ZeroDivisionError):
        on_all(lambda item: 1 // item, [2, 1, 0, 1])


def test_a_killed_process_is_an_error():
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core only")
    parent = os.getpid()
    with pytest.raises(RuntimeError, match="killed"):
        on_all(lambda item: os.kill(os.getpid(), 9) if os.getpid() != parent and item == 1 else item, range(4))
