"""Synthetic rows of the `kernels` experiment, and a catalogue that describes them."""

import numpy as np
import rows

TERA = 1e12
LIMITS = {
    "fma_f32_operations_per_second": 60 * TERA, "tensor_bf16_operations_per_second": 800 * TERA,
    "tensor_f8_operations_per_second": 1600 * TERA, "dram_copy_bytes_per_second": 2e12, "l2_read_bytes_per_second": 5e12,
    "cpu_core_fma_f32_operations_per_second": 150e9, "cpu_fma_f32_operations_per_second": 300e9,
    "host_memory_read_bytes_per_second": 20e9,
}  # fmt: skip
ARITHMETIC = {"fp32": "fma_f32", "bf16": "tensor_bf16", "fp8": "tensor_f8"}
BYTES = {"fp32": (4, 4), "bf16": (2, 2), "fp8": (1, 2)}  # of an element of the inputs and of the result
# Name -> step (0: a peer), device, whether it uses one core, what it changes, why it is unavailable.
RUNGS = {
    "cpu_naive": (1, "cpu", True, "three loops", ""), "cpu_packed": (4, "cpu", True, "panels", ""),
    "naive": (1, "cuda", False, "one thread per element", ""),
    "coalesced": (2, "cuda", False, "the threads of a warp compute one row", ""),
    "warp_tensor": (8, "cuda", False, "tensor cores by mma.sync", ""),
    "persistent": (11, "cuda", False, "one block per SM", ""), "tma_store": (13, "cuda", False, "results through TMA", ""),
    "openblas_one_core": (0, "cpu", True, "OpenBLAS on one core", "OpenBLAS is missing: install libopenblas0-pthread"),
    "cublas": (0, "cuda", False, "NVIDIA's cuBLAS", ""), "cublaslt": (0, "cuda", False, "NVIDIA's cuBLASLt", ""),
}  # fmt: skip


def _axis(name: str, default, values: tuple = (), owners: tuple = ()) -> dict:
    return {"experiment": "kernels", "name": name, "key": name, "default": default, "owners": list(owners),
            "kind": "word" if isinstance(default, str) else "number", "values": list(values), "description": name}  # fmt: skip


def _figure(name: str, unit: str, better: str, headline: bool, distribution: bool = False) -> dict:
    return {"name": name, "unit": unit, "better": better, "distribution": distribution, "headline": headline,
            "unstable_from": {"p50": 1.5, "p99": 3.0} if distribution else 1.5, "description": name}  # fmt: skip


_OWN, _BOTH = ("matmul",), ("linear", "matmul")
_AXES = [
    _axis("ladder", "matmul", _BOTH), _axis("rung", "cpu_naive", tuple(RUNGS)), _axis("device", "auto"),
    _axis("against", "peers"), _axis("cache", "cold"), _axis("pace", "sustained"), _axis("m", 1024, (), _OWN),
    _axis("n", 1024, (), _OWN), _axis("k", 1024, (), _OWN), _axis("batch", 1, (), _OWN),
    _axis("dtype", "fp32", ("fp32", "tf32", "bf16", "fp16", "fp8"), _BOTH), _axis("layout", "nt", (), _OWN),
    _axis("inputs", "normal", (), _BOTH), _axis("rows", 1024, (), ("linear",)), _axis("pass", "all", (), ("linear",)),
]  # fmt: skip
CATALOGUE = rows.CATALOGUE | {
    "experiments": [*rows.CATALOGUE["experiments"], {
        "name": "kernels", "description": "how near kernels come to the roofline", "variant": ["ladder", "rung"],
        "rate": "operations_per_second", "time": "time_ns", "axes": [axis["name"] for axis in _AXES],
        "figures": [
            _figure("operations_per_second", "1/s", "higher", True), _figure("bytes_per_second", "B/s", "higher", False),
            _figure("share_of_best_peer", "", "higher", True), _figure("energy_per_operation", "J", "lower", False),
            _figure("dram_bytes_per_second", "B/s", "higher", False), _figure("time_ns", "ns", "lower", True, True),
        ],
    }],
    "axes": [*rows.CATALOGUE["axes"], *_AXES],
    "limits": [*rows.CATALOGUE["limits"], {"name": "cpu_core_fma_f32_operations_per_second", "unit": "1/s"},
               {"name": "cpu_fma_f32_operations_per_second", "unit": "1/s"}],
    "units": rows.CATALOGUE["units"] | {"J": "si"},
    "ladders": [{"name": name, "description": name, "axes": [axis["name"] for axis in _AXES if name in axis["owners"]]}
                for name in _BOTH],
    "rungs": [
        {"name": name, "ladder": "matmul", "step": step, "device": device, "one_core": one_core, "description": changes,
         "unavailable": unavailable, "axes": []} for name, (step, device, one_core, changes, unavailable) in RUNGS.items()
    ],
}  # fmt: skip


def catalogue(**unavailable: str) -> dict:
    """The catalogue of a machine on which these rungs or peers are unavailable for these reasons."""
    known = [one | {"unavailable": unavailable.get(one["name"], one["unavailable"])} for one in CATALOGUE["rungs"]]
    return CATALOGUE | {"rungs": known}


def kernels(
    rung: str = "tma_store", repetition: int = 0, rate: float = 600 * TERA, peers: dict | None = None, error: float = 1e-3,
    power: float = 650.0, clock: float = 1500.0, reasons: tuple = ("power cap",), details: dict = {}, **changes,
) -> dict:  # fmt: skip
    """One ok row of `rate` operations per second, varied by the repetition. `peers`: the shares of the peers that were
    timed in turn. `details` changes the row's details."""
    step, device, one_core, *_ = RUNGS[rung]
    point = {"ladder": "matmul", "rung": rung, "device": device, "against": "alone" if step == 0 else "peers",
             "cache": "cold", "pace": "sustained", "m": 4096, "n": 4096, "k": 4096, "batch": 1, "dtype": "bf16",
             "layout": "nt", "inputs": "normal"}  # fmt: skip
    point |= {"dtype": "fp32"} if device == "cpu" else {}
    point |= changes
    noise = 1 + 0.002 * (repetition - 1)
    rate *= noise
    m, n, k = (point[axis] for axis in "mnk")
    operations, (inside, out) = 2.0 * m * n * k, BYTES[point["dtype"]]
    moved = inside * k * (m + n) + out * m * n
    measured = {"operations_per_second": rate, "bytes_per_second": rate * moved / operations,
                "time_ns": rows.latency(np.full(50, max(1, round(operations / rate * 1e9))))}  # fmt: skip
    state: dict = {"count": 50}
    found = {
        "inputs": {"copies": 3, "bytes": inside * k * (m + n)}, "step": step, "launches_per_sample": 3,
        "verified": {"elements": 2048, "relative_error": error, "share_of_tolerance": 0.1}, "samples": state,
    }  # fmt: skip
    if device == "cuda":
        state |= {name: {"least": 0.9 * value, "median": value, "greatest": 1.1 * value}
                  for name, value in (("sm_clock_mhz", clock), ("power_w", power), ("temperature_c", 60.0))}  # fmt: skip
        state |= {"clock_reasons": list(reasons)} if reasons else {}
        if not peers:
            measured["energy_per_operation"] = power / rate
        measured["dram_bytes_per_second"] = 1.2 * measured["bytes_per_second"]
        found["counters"] = {"dram_read_bytes": 0.9 * moved, "dram_write_bytes": 0.3 * moved, "l2_bytes": 4 * moved}
        found["share_of_peak_at_this_clock"] = 0.75
        if step:
            found["compiled"] = {"registers": 168, "local_bytes": 0, "shared_bytes": 224 << 10, "blocks_per_sm": 1,
                                 "capability": 90}  # fmt: skip
    if peers:
        measured["share_of_best_peer"] = min(peers.values()) * noise
        found["peers"] = {
            name: {"time_ns": share * 1e5, "share": share * noise, "error": error, "samples": state,
                   "chosen": {"algorithm": "1 of 8"}} for name, share in peers.items()
        }  # fmt: skip
    limit = f"cpu{'_core' * one_core}_fma_f32" if device == "cpu" else ARITHMETIC[point["dtype"]]
    name = f"{limit}_operations_per_second"
    bound = {"bound": {"ceiling": name}, "value": LIMITS[name], "ratio": rate / LIMITS[name]}
    where = rows.environment(None) if device == "cpu" else None
    return {
        "schema": 3, "kind": "cell", "experiment": "kernels", "run": rows.run(where, LIMITS, experiment="kernels"),
        "id": rows.row_id({"kernels": point}, repetition), "repetition": repetition, "status": "ok", "cause": "", "reason": "",
        "params": point, "figures": measured, "time": dict(rows.TIME), "details": found | details,
        "cost": {"host_threads": 1, "spinning_threads": 1, "sms": 0}, "bounds": {"operations_per_second": bound},
    }  # fmt: skip


def repeated(rung: str = "tma_store", **changes) -> list[dict]:
    """Three repetitions of a point."""
    return [kernels(rung, n, **changes) for n in range(3)]


def ladder() -> list[list[dict]]:
    """A ladder of three rungs with two libraries, and its fastest rung alone and under other conditions."""
    alone = {"against": "alone"}
    return [
        repeated("warp_tensor", rate=400 * TERA, peers={"cublas": 0.6, "cublaslt": 0.57}),
        repeated("persistent", rate=600 * TERA, peers={"cublas": 0.9, "cublaslt": 0.86}),
        repeated("tma_store", rate=720 * TERA, peers={"cublas": 1.08, "cublaslt": 1.03}, power=700.0),
        repeated("cublas", rate=667 * TERA), repeated("cublaslt", rate=700 * TERA),
        repeated("tma_store", rate=720 * TERA, power=648.0, **alone),
        repeated("tma_store", rate=725 * TERA, cache="hot", **alone),
        repeated("tma_store", rate=792 * TERA, pace="burst", reasons=(), clock=1980.0, **alone),
        repeated("tma_store", rate=780 * TERA, inputs="zeros", power=390.0, **alone),
    ]  # fmt: skip


def errors() -> list[list[dict]]:
    """Two rungs at three depths with positive inputs; the error of one grows."""
    shape = {"m": 1024, "n": 1024, "dtype": "fp8", "inputs": "positive", "against": "alone"}
    return [
        repeated(rung, rate=700 * TERA, k=k, error=1e-3 * growth**place, **shape)
        for rung, growth in (("warp_tensor", 4), ("tma_store", 1)) for place, k in enumerate((512, 8192, 65536))
    ]  # fmt: skip
