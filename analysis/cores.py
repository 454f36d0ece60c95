"""Distributes work over the machine's cores."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
_inherited: list = []  # in a worker process: the work and the items


def on_all(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """The results of `work` for each item, in the order of the items. The processes are forked and inherit the items,
    because items such as matplotlib's figures cannot be pickled; only the results must be picklable. An exception in
    `work` is raised here; if a process is killed, BrokenProcessPool is raised."""
    count = min(len(os.sched_getaffinity(0)), len(items))
    if count < 2:
        return [work(item) for item in items]
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(count, fork, initializer=_inherited.extend, initargs=([work, items],)) as pool:
        return list(pool.map(_at, range(len(items))))


def _at(place: int):
    work, items = _inherited
    return work(items[place])
