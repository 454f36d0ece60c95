"""Distributes work over the machine's cores."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def on_all(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """The results of `work` for each item, in the order of the items. The processes are forked, because items such as
    matplotlib's figures cannot be pickled; only the results must be. An exception in `work` is raised here."""
    count = min(len(os.sched_getaffinity(0)), len(items))
    if count < 2:
        return [work(item) for item in items]
    fork = multiprocessing.get_context("fork")
    workers = []
    for first in range(count):
        here, there = fork.Pipe(duplex=False)
        worker = fork.Process(target=_serve, args=(there, work, items[first::count]))
        worker.start()
        there.close()
        workers.append((worker, here))
    results: list = [None] * len(items)
    thrown = None
    for first, (worker, here) in enumerate(workers):
        try:
            answer = here.recv()
        except (EOFError, OSError):  # possibly in the middle of its answer
            answer = RuntimeError("a worker process was killed")
        worker.join()
        if isinstance(answer, Exception):
            thrown = answer
        else:
            results[first::count] = answer
    if thrown:
        raise thrown
    return results


def _serve(there: Connection, work: Callable, items: Sequence) -> None:
    try:
        there.send([work(item) for item in items])
    except Exception as error:  # noqa: BLE001 - passed on to the caller
        there.send(error)
