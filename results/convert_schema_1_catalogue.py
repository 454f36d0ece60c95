"""The catalogue of the executable that wrote rows of schema 1, in the shape that `feedrate list --json` has since
schema 2."""

MOST_PAYLOAD = 64 << 20
RING, REDIS, STREAMS, FMA = ["gpu_ring"], ["redis_list", "redis_stream"], ["mapped", "pinned"], ["fma_chain"]
UNITS = {"ns": "time", "B/s": "si", "msg/s": "si", "1/s": "si", "": "ratio"}

FEEDING = {
    "name": "feeding",
    "description": "how messages get to the GPU and results back",
    "variant": ["queue", "transfer"],
    "rate": "messages_per_second",
    "time": "latency_ns",
    "offered_load": "rate",
    "figures": [
        {"name": "messages_per_second", "unit": "msg/s", "better": "higher", "distribution": False, "headline": True,
         "unstable_from": 1.5, "description": "verified messages"},
        {"name": "bytes_per_second", "unit": "B/s", "better": "higher", "distribution": False, "headline": True,
         "description": "payload bytes, one way"},
        {"name": "latency_ns", "unit": "ns", "better": "lower", "distribution": True, "headline": True,
         "unstable_from": {"p50": 1.5, "p99": 3},
         "description": "until the result is verified; in an open load from when the message was due"},
        {"name": "service_ns", "unit": "ns", "better": "lower", "distribution": True, "headline": False,
         "description": "open load: from publish on"},
        {"name": "send_lag_ns", "unit": "ns", "better": "lower", "distribution": True, "headline": False,
         "description": "open load: from when the message was due to publish"},
    ],
}  # fmt: skip


def axis(name: str, kind: str, default, description: str, owners=(), key: str = "", **more) -> dict:
    found = {"experiment": "feeding", "name": name, "key": key or name.replace("-", "_"), "owners": list(owners)}
    return found | {"kind": kind, "default": default, **more, "description": description}


def number(name: str, default, least, most, description: str, owners=(), **more) -> dict:
    return axis(name, "number", default, description, owners, least=least, most=most, **more)


def word(name: str, values: list[str], description: str, owners=(), default: str = "") -> dict:
    return axis(name, "word", default or values[0], description, owners, values=values)


def axes() -> list[dict]:
    queues, transfers = [one["name"] for one in QUEUES], [*(one["name"] for one in TRANSFERS), "none"]
    text = [
        ("payload-mix", "open load: sizes by share, 64:0.9,4Ki:0.1, or lognormal:MEDIAN:SIGMA up to the payload"),
        ("priority-mix", "open load: priorities by share, 0:0.1,1:0.9; their latencies are told apart"),
        ("trace-file", "arrivals trace: CSV or JSONL of time (s), and payload, priority, workload if wanted"),
    ]
    return [
        word("queue", queues, "carries messages to the device and results back"),
        word("transfer", transfers, "moves batches to the device and back, for queues that don't do it themselves",
             default="pinned"),
        word("workload", [one["name"] for one in WORKLOADS], "what the device does with a message"),
        word("device", ["auto", "cpu", "cuda"], "where it runs; auto = cuda where there is a GPU"),
        number("payload", 64, 0, MOST_PAYLOAD, "bytes in a message", key="payload_bytes"),
        number("batch", 64, 1, 1 << 20, "most messages handed on at once"),
        number("window", 256, 1, 1 << 24, "messages in flight per producer; 1 = lone messages"),
        number("producers", 1, 0, 1024, "producing threads, and as many collecting",
               automatic="0 = as many as this machine's cores suffice for"),
        number("workers", 1, 1, 64, "threads between a broker queue and the device"),
        number("streams", 4, 1, 128, "device streams per worker", STREAMS),
        number("block", 256, 32, 1024, "GPU threads per block, whole warps", multiple_of=32),
        number("lanes", 0, 0, 4096, "rings, one resident block each", RING,
               automatic="0 = one a batch in flight, up to 32"),
        number("pollers", 0, 0, 16, "teams of warps that poll a lane by turns", RING,
               automatic="0 = by notify and size"),
        number("mirrors", 0, 0, 16, "copies of flagged slots for different pollers", RING,
               automatic="0 = one each for small lone messages, else 1"),
        word("granularity", ["auto", "thread", "warp", "block"], "who works on one message; auto = by size", RING),
        word("notify", ["auto", "counter", "flags"],
             "how a side learns of messages; auto = flags for a few messages, one at a time", RING),
        word("slots", ["auto", "pinned", "vram"],
             "where the GPU finds messages; auto = vram where the floors say that copies win", RING),
        word("results", ["in_order", "as_finished"], "the order in which results come back", RING),
        word("ring-idle", ["spin", "backoff", "park"], "what it does while nothing comes", RING),
        number("slot-bytes", 0, 0, MOST_PAYLOAD, "payload bytes that a slot holds", RING,
               automatic="0 = the payload's"),
        number("pack", 1, 1, 1 << 16, "messages per list element or stream entry", REDIS),
        number("capacity", 0, 0, 1 << 24, "messages (Redis: elements) a queue holds before it pushes back",
               automatic="0 = the window"),
        number("flops-per-byte", 1, 0.5, 65536, "floating-point operations per payload byte", FMA),
        word("arrivals", ["closed", "constant", "poisson", "bursts", "trace"],
             "closed = each result lets the next message go; else messages are due by a schedule"),
        number("rate", 0, 0, 1_000_000_000,
               "messages a second that are due, of all producers together; 0 = closed load, or a trace's own"),
        number("burst-us", 0, 0, 3_600_000_000, "arrivals bursts: length of a burst"),
        number("pause-us", 0, 0, 3_600_000_000, "arrivals bursts: time between two"),
        *(axis(name, "text", "none", description) for name, description in text),
    ]  # fmt: skip


def queue(name: str, description: str, delivery: str, order: str, axes=(), **more) -> dict:
    told = {"durable": False, "works": True, "uses_transfer": False, "external_worker": False, "unavailable": ""} | more
    return {"name": name, "description": description, "delivery": delivery, "order": order, **told, "axes": list(axes)}


RING_AXES = ["lanes", "pollers", "mirrors", "granularity", "notify", "slots", "results", "ring-idle", "slot-bytes"]
BROKER = {"durable": True, "uses_transfer": True, "external_worker": True}
QUEUES = [
    queue("gpu_ring", "rings in pinned host memory or the GPU's, served by one resident kernel",
          "exactly once in process", "per lane", RING_AXES),
    queue("host_polled", "in-process ring, polled by a worker that launches kernels", "exactly once in process",
          "per producer", uses_transfer=True),
    queue("null", "delivers nothing; measures the load generator's ceiling", "nothing is delivered", "per producer",
          works=False),
    queue("redis_list", "Redis lists: LPUSH, RPOP with a count, BRPOP when idle", "at most once",
          "per producer with one worker", ["pack"], **BROKER),
    queue("redis_stream", "Redis streams: XADD, consumer group, XACK, trimming", "at least once",
          "per producer with one worker", ["pack"], **BROKER),
]  # fmt: skip


def member(name: str, description: str, axes=None, **more) -> dict:
    return {"name": name, "description": description, **more, "unavailable": ""} | (
        {} if axes is None else {"axes": axes}
    )


TRANSFERS = [
    member("mapped", "the kernel reads and writes pinned host memory itself, no copies", ["streams"], memory="pinned"),
    member("pageable", "synchronous copies from and to ordinary memory, one batch at a time", [], memory="pageable"),
    member("pinned", "asynchronous copies from and to pinned memory over several streams", ["streams"],
           memory="pinned"),
]  # fmt: skip
WORKLOADS = [
    member("echo", "every 32-bit word plus one, with checksum", []),
    member("fma_chain", "a chain of fused multiply-adds on every float, --flops-per-byte long", ["flops-per-byte"]),
    member("scale", "every 32-bit word times three; the template to copy; payload a multiple of 16", []),
    member("vecadd", "sum of the payload's two float arrays; payload a multiple of 32 bytes", []),
]
DEVICES = [member("cpu", "the host's cores"), member("cuda", "an NVIDIA GPU")]

FLOORS = {
    "host": {
        "thread_round_trip_ns": "one word to another thread and back, median",
        "host_pause_p99_ns": "how late threads that only look are, on all cores but two, 99th percentile",
        "host_copy_bytes_per_second": "memcpy on all cores, out of cache",
    },
    "cuda": {
        "launch_sync_ns": "empty kernel: launch and synchronize, median",
        "launch_per_second": "empty kernels queued in one stream",
        "graph_launch_sync_ns": "graph of one empty kernel: launch and synchronize, median",
        "mapped_launch_sync_ns": "kernel that reads and writes 64 B of pinned memory, synchronize, median",
        "copy_launch_copy_ns": "64 B: copy in, kernel, copy out, synchronize, median",
        "word_round_trip_ns": "one word to a polling kernel and back, median",
        "lone_message_ns": "64 B to a polling kernel and back, no header, median; of 2, 4 and 8 pollers the best",
        "lone_4k_message_ns": "4 KiB to a polling kernel and back, no header, median; of 1 and 2 pollers the best",
        "copy_queued_ns": "64 B copies to the device, queued in one stream, each",
        "copy_engine_h2d_bytes_per_second": "64 MiB copies from pinned memory",
        "copy_engine_d2h_bytes_per_second": "64 MiB copies to pinned memory",
        "copy_engine_both_bytes_per_second": "both at once, each way",
        "sm_read_host_bytes_per_second": "a kernel reads pinned memory",
        "sm_write_host_bytes_per_second": "a kernel writes pinned memory",
        "sm_echo_bytes_per_second": "a kernel reads pinned memory and writes it back, each way",
        "round_ns": "look at a word, read 64 messages of 80 B, write them, release a word: 56 blocks at half the SM "
        "echo, median",
        "round_p99_ns": "the same, 99th percentile",
        "bulk_echo_bytes_per_second": "a kernel does the same by bulk asynchronous copies of 16 KiB; of 16, 32 and 64 "
        "blocks the best, each way",
    },
    "redis": {
        "redis_round_trip_ns": "PING and its answer, one spinning connection, median",
        "redis_list_push_per_second": "LPUSH of 64 B elements, 512 a command, 4 pipelined connections",
        "redis_list_pop_per_second": "RPOP of 64 B elements, 512 a command, 4 pipelined connections",
        "redis_stream_add_per_second": "XADD of 64 B entries, 4 pipelined connections",
        "redis_stream_read_per_second": "XREAD of 64 B entries, 512 a command, 4 pipelined connections",
        "redis_bytes_per_second": "64 KiB elements pushed to a list and popped, 4 pipelined connections",
    },
}


def unit(floor: str) -> str:
    if floor.endswith("_ns"):
        return "ns"
    if floor.endswith("_bytes_per_second"):
        return "B/s"
    return "msg/s" if floor.startswith("redis") else "1/s"


def catalogue() -> dict:
    # The shared axes first, then each member's, queues before transfers before workloads: as the executable has them.
    every = sorted(axes(), key=lambda one: [None, RING, REDIS, STREAMS, FMA].index(one["owners"] or None))
    shared = [one["name"] for one in every if not one["owners"]]
    return {
        "schema": 2,
        "version": "0.1.0",
        "units": UNITS,
        "experiments": [FEEDING | {"axes": shared}],
        "axes": every,
        "queues": QUEUES,
        "transfers": TRANSFERS,
        "workloads": WORKLOADS,
        "devices": DEVICES,
        "floors": [
            {"name": name, "unit": unit(name), "description": description, "owner": owner}
            for owner, floors in FLOORS.items()
            for name, description in floors.items()
        ],
    }
