"""Reads records of a file in random order, a batch at a time, while the batch before is used."""

import tempfile

import numpy as np

import feedrate.storage

RECORD, RECORDS, BATCH = 4096, 10_000, 256

with tempfile.NamedTemporaryFile() as file:
    np.arange(RECORD * RECORDS // 8).tofile(file.name)
    with feedrate.storage.open(file.name, device="cpu") as source:  # with "cuda", `places` are tensors on the GPU
        records = source.add_kind("records", record_bytes=RECORD)
        order = np.random.default_rng(1).permutation(RECORDS)
        batches = [order[first : first + BATCH] for first in range(0, RECORDS, BATCH)]
        places = [np.empty((BATCH, RECORD), np.uint8) for _ in range(2)]
        total = 0
        ahead = records.read_batch_async(batches[0], places[0])
        for number, batch in enumerate(batches):
            ready = ahead.wait()
            if number + 1 < len(batches):
                ahead = records.read_batch_async(batches[number + 1], places[(number + 1) % 2])
            total += int(ready[: len(batch)].view(np.int64).sum())
        print(f"the sum of {len(order)} records is {total}; {source.statistics()['requests']} requests, {source.engine}")
