"""Synthetic rows of the `storage` experiment, and a catalogue that describes them."""

import numpy as np
import rows

KI, MI, GI = 1 << 10, 1 << 20, 1 << 30
GB = 1e9
FIO, FIO_4K = "fio_sequential_read_1048576_16x1_bytes_per_second", "fio_random_read_4096_256x1_bytes_per_second"
H2D, D2H = "copy_engine_h2d_bytes_per_second", "copy_engine_d2h_bytes_per_second"
LIMITS = {H2D: 50 * GB, D2H: 40 * GB, FIO: 6 * GB, FIO_4K: 1 * GB}
NO_FIO = {H2D: 50 * GB, D2H: 40 * GB}
ENGINES = {"pread": (), "pread_pinned": ("streams",), "mmap": ("chunk",), "io_uring": ("uring", "streams"), "cufile": ("cufile",)}


def _figure(name: str, unit: str, better: str, headline: bool = True, factors=1.5) -> dict:
    distribution = isinstance(factors, dict)
    return {"name": name, "unit": unit, "better": better, "distribution": distribution, "headline": headline,
            "unstable_from": factors, "description": name}  # fmt: skip


def _axis(name: str, default, key: str = "", values: tuple = (), owners: tuple = ()) -> dict:
    kind = "number" if isinstance(default, int) else "word"
    return {"experiment": "storage", "name": name, "key": key or name, "default": default, "kind": kind, "owners": list(owners),
            "values": list(values), "description": name}  # fmt: skip


_TIME = {"p50": 1.5, "p99": 3.0}
_AXES = [
    _axis("engine", "pread_pinned", values=tuple(ENGINES)), _axis("device", "auto"), _axis("block", MI, "block_bytes"),
    _axis("depth", 16), _axis("threads", 1), _axis("access", "sequential"), _axis("operation", "read"), _axis("direct", "no"),
    _axis("residency", "warm"), _axis("lifetime", "run"), _axis("files", 1), _axis("size", GI, "file_bytes"),
    _axis("folder", "/tmp"), _axis("arrivals", "closed"), _axis("rate", 0),
    _axis("uring", "interrupt", owners=("io_uring",)), _axis("streams", 2, owners=("pread_pinned", "io_uring")),
]  # fmt: skip
CATALOGUE = rows.CATALOGUE | {
    "experiments": [*rows.CATALOGUE["experiments"], {
        "name": "storage", "description": "how bytes get into device memory", "variant": ["engine"], "rate": "bytes_per_second",
        "time": "latency_ns", "axes": [axis["name"] for axis in _AXES],
        "figures": [
            _figure("bytes_per_second", "B/s", "higher"), _figure("blocks_per_second", "1/s", "higher"),
            _figure("latency_ns", "ns", "lower", factors=_TIME), _figure("cpu_seconds_per_gib", "s/GiB", "lower"),
            _figure("service_ns", "ns", "lower", False, _TIME),
        ],
    }],
    "axes": [*rows.CATALOGUE["axes"], *_AXES],
    "engines": [{"name": name, "axes": list(axes)} for name, axes in ENGINES.items()],
}  # fmt: skip
MODES = {"pread": "pageable memory", "mmap": "registered page cache"}


def storage(
    engine: str = "io_uring", repetition: int = 0, rate: float = 5 * GB, in_flight: float = 16, cpu: float = 0.2,
    limits: dict = LIMITS, path: dict = {}, samples: int = 1000, figures: dict = {}, **changes,
) -> dict:  # fmt: skip
    """One ok row of `rate` bytes per second, varied by the repetition; for an open load, this is also the offered rate.
    `in_flight`: the mean number of blocks in flight, which gives the times by Little's law. `cpu`: CPU seconds per 10⁹
    bytes. `path` changes details.path."""
    point = {"engine": engine, "device": "cuda", "block_bytes": MI, "depth": 16, "threads": 1, "access": "sequential",
             "operation": "read", "direct": "no", "residency": "warm", "lifetime": "run", "files": 1, "file_bytes": GI,
             "folder": "/tmp", "arrivals": "closed", "rate": 0}  # fmt: skip
    point |= {axis: {"uring": "interrupt", "streams": 2}[axis] for axis in ENGINES[engine] if axis in ("uring", "streams")}
    point |= changes
    if point["direct"] == "yes":
        point["residency"] = "cold"
    if point["arrivals"] != "closed":
        point["rate"] = round(rate / point["block_bytes"])  # blocks due per second
    rate *= 1 + 0.002 * (repetition - 1)
    per_second = rate / point["block_bytes"]
    times = rows.latency(np.full(samples, round(in_flight / per_second * 1e9)))
    read, drive = point["operation"] == "read", point["residency"] == "cold"
    requested = 1000 * point["block_bytes"]
    resident = 0.0 if drive else 1.0
    found = {"mode": MODES.get(engine, "pinned memory"), "file_system": "ext4", "requested_bytes": requested,
             "read_bytes": requested if drive and read else 0, "written_bytes": 0 if read else requested,
             "resident_before": resident, "resident_after": resident}  # fmt: skip
    measured = {"bytes_per_second": rate, "blocks_per_second": per_second, "latency_ns": times,
                "cpu_seconds_per_gib": cpu * GI / GB * (1 + 0.002 * (repetition - 1))} | figures  # fmt: skip
    details = {"path": found | path}
    if point["arrivals"] != "closed":
        details["load"] = {"due_per_second": float(point["rate"])}
        measured.setdefault("service_ns", times)
    return {
        "schema": 3, "kind": "cell", "experiment": "storage", "run": rows.run(None, limits, experiment="storage"),
        "id": rows.row_id({"storage": point}, repetition), "repetition": repetition, "status": "ok", "cause": "", "reason": "",
        "params": point, "figures": measured, "time": dict(rows.TIME), "details": details,
        "cost": {"host_threads": 1, "spinning_threads": 1, "sms": 0}, **_bounds(point, measured, limits),
    }  # fmt: skip


def _bounds(point: dict, figures: dict, limits: dict) -> dict:
    """The tightest bound, as feedrate writes it, and the flag of a rate above it."""
    order = "sequential" if point["access"] == "sequential" else "random"
    job = f"{point['block_bytes']}_{point['depth']}x{point['threads']}"
    names = [H2D if point["operation"] == "read" else D2H]
    names += [f"fio_{order}_{point['operation']}_{job}_bytes_per_second"] if point["direct"] == "yes" else []
    known = [(limits[name], name) for name in names if name in limits]
    if not known:
        return {}
    value, name = min(known)
    ratio = figures["bytes_per_second"] / value
    bound = {"bytes_per_second": {"bound": {"ceiling": name}, "value": value, "ratio": ratio}}
    return {"bounds": bound} | ({"flags": ["above_limit"]} if ratio > 1.05 else {})


def repeated(engine: str = "io_uring", **changes) -> list[dict]:
    """Three repetitions of a point."""
    return [storage(engine, n, **changes) for n in range(3)]


def limit(name: str, *readings: float) -> dict:
    """A limit row with these readings; their number must be odd."""
    row = rows.limit(name, sorted(readings)[len(readings) // 2])
    row["limit"] |= {"least": min(readings), "greatest": max(readings)}
    return row | {"run": rows.run(None, LIMITS, experiment="storage")}


DIRECT, COLD = {"direct": "yes"}, {"residency": "cold"}
RANDOM = {"direct": "yes", "access": "random", "block_bytes": 4 * KI, "depth": 256}
