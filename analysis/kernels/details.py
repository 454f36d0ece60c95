"""Columns of a cell from the details of its row."""

import math

# Columns with medians: the state of the GPU next to the samples, and the check of the results.
CLOCK, AT_CLOCK, ERROR, TOLERANCE = "clock_mhz", "share_at_clock", "relative_error", "tolerance_share"
PER_BYTE = "operations_per_byte"
DRAM, DRAM_TIMES, L2_TIMES = "dram_bytes_rate", "dram_times", "l2_times"  # moved bytes; as multiples of the least
NUMBERS = (CLOCK, AT_CLOCK, ERROR, TOLERANCE, PER_BYTE, DRAM, DRAM_TIMES, L2_TIMES)


def columns(row: dict) -> dict:
    """The numbers above (`DRAM`: bytes per second from and to DRAM, by the GPU's counters; `DRAM_TIMES` and `L2_TIMES`:
    the bytes that moved by DRAM, and those of requests to the L2 cache, as multiples of the inputs and results), and:
    the rung's place in its ladder (`row_step`; 0 for a peer), the share of each peer that was timed in turn (`peers`),
    the errors of peers that failed (`failed_peers`), the resources of the compiled kernel (`compiled`), and the reasons
    why the clock was below its maximum (`clock_reasons`)."""
    details, figures = row.get("details") or {}, row.get("figures") or {}
    samples, verified = details.get("samples") or {}, details.get("verified") or {}
    rate, moved = figures.get("operations_per_second", math.nan), figures.get("bytes_per_second", math.nan)
    counters = details.get("counters") or {}
    seconds = (figures.get("time_ns") or {}).get("p50", math.nan) * 1e-9
    dram, least = figures.get("dram_bytes_per_second", math.nan), moved or math.nan
    return {
        DRAM: dram,
        DRAM_TIMES: dram / least,
        L2_TIMES: counters.get("l2_bytes", math.nan) / (least * seconds),
        CLOCK: (samples.get("sm_clock_mhz") or {}).get("median", math.nan),
        AT_CLOCK: details.get("share_of_peak_at_this_clock", math.nan),
        ERROR: verified.get("relative_error", math.nan),
        TOLERANCE: verified.get("share_of_tolerance", math.nan),
        "row_step": details.get("step", 0),
        PER_BYTE: rate / moved if moved else math.nan,
        "peers": {name: peer["share"] for name, peer in (details.get("peers") or {}).items()},
        "failed_peers": details.get("failed_peers") or {},
        "compiled": details.get("compiled") or {},
        "clock_reasons": samples.get("clock_reasons") or [],
    }
