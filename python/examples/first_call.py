"""Sends one message to the GPU and back, then many at once."""

import feedrate

with feedrate.Ring("echo", message_bytes=64) as ring:  # on the GPU, or on CPU threads if there is no GPU
    print("device:", ring.device_name)
    print(ring.call(b"hello"))
    future = ring.submit(b"later")
    print(future.result(timeout=5))
    results = ring.map(n.to_bytes(4, "little") for n in range(10_000))
    print(sum(int.from_bytes(one, "little") for one in results), "is the sum of 10,000 results")
