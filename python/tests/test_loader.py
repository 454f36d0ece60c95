"""The loader: every record is delivered once per epoch, in an order that a resumed run continues."""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import feedrate
import feedrate.storage
import numpy as np
import pytest
from conftest import LONG
from feedrate.loader import shuffled

RECORDS = 1003


@pytest.fixture
def path(tmp_path) -> str:
    """Records of 16 bytes; each begins with its own number."""
    content = np.zeros((RECORDS, 2), np.int64)
    content[:, 0] = np.arange(RECORDS)
    content.tofile(tmp_path / "records")
    return str(tmp_path / "records")


@pytest.fixture
def records(path):
    with feedrate.storage.open(path, device="cpu") as source:
        yield source.add_kind("records", record_bytes=16)


def numbers(batch: np.ndarray) -> list[int]:
    return batch.view(np.int64).reshape(-1, 2)[:, 0].tolist()


def epoch(loader: feedrate.Loader) -> list[int]:
    return [number for batch in loader for number in numbers(batch)]


def steps(records, batch: int, world: int, state=None, most: int = 1 << 30) -> tuple[list[list[int]], dict]:
    """What `world` ranks receive in lockstep, a list per step in the order of the ranks; and the state after it."""
    loaders = [feedrate.Loader(records, batch, shuffle=7, shard=(rank, world), prefetch=5000) for rank in range(world)]
    for loader in loaders:
        if state:
            loader.load_state_dict(state)
    count = min(most, len(loaders[0]))
    iterators = [iter(loader) for loader in loaders]
    received = []
    for _ in range(count):
        received.append([number for one in iterators for number in numbers(next(one, np.empty((0, 16), np.uint8)))])
    return received, loaders[0].state_dict()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 64, 1000, 65_537])
def test_order_is_a_permutation_that_seed_and_epoch_decide(count):
    positions = np.arange(count, dtype=np.uint64)
    order = shuffled(positions, count, 1, 0)
    assert sorted(order.tolist()) == list(range(count))
    assert np.array_equal(shuffled(positions[::-1].copy(), count, 1, 0), order[::-1])
    if count > 60:
        assert not np.array_equal(shuffled(positions, count, 1, 1), order)
        assert not np.array_equal(shuffled(positions, count, 2, 0), order)
        # Neighbours in the order are no neighbours in the file, and no part of the file comes first.
        assert abs(np.corrcoef(positions, order)[0, 1]) < 0.4
        assert np.mean(np.abs(np.diff(order.astype(np.int64))) < 3) < 0.2


def test_every_record_comes_once_an_epoch(records):
    plain = feedrate.Loader(records, 100)
    assert len(plain) == 11 and epoch(plain) == list(range(RECORDS))
    loader = feedrate.Loader(records, 100, shuffle=3, prefetch="1Ki")
    first, second = epoch(loader), epoch(loader)
    assert sorted(first) == sorted(second) == list(range(RECORDS)) and first != second
    assert epoch(feedrate.Loader(records, 17, shuffle=3)) == first
    assert loader.statistics()["delivered"] == 2 * RECORDS


def test_last_step_can_be_left_out(records):
    loader = feedrate.Loader(records, 100, drop_last=True)
    assert len(loader) == 10 and len(epoch(loader)) == 1000 and len(epoch(loader)) == 1000
    assert loader.state_dict()["epoch"] == 1


@pytest.mark.parametrize("world", [1, 2, 3, 4])
def test_ranks_share_each_step(records, world):
    alone, _ = steps(records, 12, 1)
    shared, state = steps(records, 12, world)
    assert [number for step in shared for number in step] == [number for step in alone for number in step]
    assert state["position"] == RECORDS


def test_resumed_runs_continue_the_order_with_other_ranks_and_batches(records):
    whole = [number for step in steps(records, 10, 1)[0] for number in step]
    generator = random.Random(5)
    for _ in range(20):
        state, received = None, []
        while state is None or state["position"] < RECORDS:
            batch, world, most = generator.randrange(1, 60), generator.randrange(1, 5), generator.randrange(1, 8)
            some, state = steps(records, batch, world, state, most)
            received += [number for step in some for number in step]
        assert received == whole


def test_state_of_other_records_is_rejected(records):
    loader = feedrate.Loader(records, 10, shuffle=1)
    state = loader.state_dict()
    for change, text in (
        ({"records": 5}, "invalid records 5; allowed: 1003"),
        ({"shuffle": None}, "invalid shuffle None; allowed: 1"),
        ({"position": 2000}, "invalid position 2000"),
        ({"position": -1}, "position: invalid value -1"),
    ):
        with pytest.raises(ValueError, match=text):
            loader.load_state_dict({**state, **change})


def test_invalid_arguments_name_what_is_allowed(records):
    for arguments, error, text in (
        ({"batch_size": 0}, ValueError, "batch_size: invalid value 0; allowed: 1 and above"),
        ({"batch_size": 1.5}, TypeError, "batch_size: invalid type float"),
        ({"prefetch": "1MB"}, ValueError, "prefetch: invalid value '1MB'"),
        ({"shuffle": -1}, ValueError, "shuffle: invalid value -1"),
        ({"shard": (2, 2)}, ValueError, "shard: invalid value"),
        ({"bad_records": "ignore"}, ValueError, "bad_records: invalid value 'ignore'; allowed: raise, skip"),
    ):
        with pytest.raises(error, match=text):
            feedrate.Loader(records, **{"batch_size": 4, **arguments})


def test_records_of_several_sizes_come_with_their_offsets(path, tmp_path):
    with feedrate.storage.open(path, device="cpu") as source:
        kind = source.add_kind("words", offsets=[0, 16, 16, 48, 160])
        (data, offsets), *_ = list(feedrate.Loader(kind, 3))
        assert offsets.tolist() == [0, 16, 16, 48] and numbers(data) == [0, 1, 2]


def test_slow_consumer_does_not_grow_what_is_read_ahead(records):
    """At most `prefetch` bytes are under way, and one batch if that is more."""
    loader = feedrate.Loader(records, 10, prefetch=10 * 16 * 3)
    iterator = iter(loader)
    source = records._source
    next(iterator)
    time.sleep(0.05)
    assert source.statistics()["record_bytes"] <= 4 * 160
    assert len(source._under_way) <= 4


def test_bad_records_are_raised_or_skipped(path):
    with feedrate.storage.open(path, device="cpu") as source:
        records = source.add_kind("records", record_bytes=16)
        os.truncate(path, 16 * 900 + 3)
        with pytest.raises(feedrate.storage.StorageError, match="record 900 of kind 'records'"):
            epoch(feedrate.Loader(records, 64))
        loader = feedrate.Loader(records, 64, bad_records="skip")
        assert epoch(loader) == list(range(900))
        assert loader.statistics()["skipped"] == 103 and loader.statistics()["delivered"] == 900


def test_later_iteration_ends_an_earlier_one(records):
    loader = feedrate.Loader(records, 100)
    first = iter(loader)
    assert numbers(next(first)) == list(range(100))
    second = iter(loader)
    assert numbers(next(second))[0] == 100
    with pytest.raises((RuntimeError, StopIteration)):
        next(first)


def test_killed_runs_deliver_every_record_exactly_once(path, tmp_path):
    """Runs are killed at random moments and resumed with other ranks, over three epochs. A run writes what it received and
    its state together, as a training step does with its weights."""
    code = textwrap.dedent(
        """
        import json, os, sys
        import feedrate, feedrate.storage, numpy as np
        path, ledger, world = sys.argv[1], sys.argv[2], int(sys.argv[3])
        records = feedrate.storage.open(path, device="cpu").add_kind("records", record_bytes=16)
        lines = open(ledger).read().splitlines()
        state = json.loads(lines[-1])["state"] if lines else None
        loaders = [feedrate.Loader(records, 16, shuffle=9, shard=(rank, world), prefetch=1000) for rank in range(world)]
        for loader in loaders:
            if state:
                loader.load_state_dict(state)
        print("ready", flush=True)
        with open(ledger, "a") as file:
            while loaders[0].state_dict()["epoch"] < 3:
                for batches in zip(*loaders):
                    got = [n for batch in batches for n in batch.view(np.int64).reshape(-1, 2)[:, 0].tolist()]
                    state = loaders[0].state_dict()
                    if state["epoch"] == 3:
                        break
                    os.write(file.fileno(), (json.dumps({"got": got, "state": state}) + "\\n").encode())
        """
    )
    ledger = tmp_path / "ledger"
    ledger.touch()
    generator, kills = random.Random(1), 0
    wanted = 200 if LONG else 8
    while True:
        process = subprocess.Popen(
            [sys.executable, "-c", code, path, str(ledger), str(generator.randrange(1, 5))], stdout=subprocess.PIPE
        )
        assert process.stdout.readline() == b"ready\n"
        if kills < wanted:
            time.sleep(generator.random() * 0.004)
            process.send_signal(signal.SIGKILL)
            kills += 1
        ended = process.wait()
        process.stdout.close()
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
    received = [json.loads(line) for line in ledger.read_text().splitlines()]
    with feedrate.storage.open(path, device="cpu") as source:
        whole = feedrate.Loader(source.add_kind("records", record_bytes=16), 16, shuffle=9)
        expected = [number for _ in range(3) for number in epoch(whole)]
    assert [number for line in received for number in line["got"]] == expected
