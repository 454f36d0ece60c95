"""Formatting of numbers with units. Input is always in base units: nanoseconds, bytes, per second."""

import math
import re
from collections.abc import Mapping
from functools import partial

NOTHING = "—"
_SI = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")]
_SMALL = [(1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"), (1e-15, "f")]
_SMALL_UNITS = ("J",)  # of figures that are usually far below 1
_TIME = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")]
_BINARY = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")]


def digits(value: float) -> str:
    """Three significant digits, never in scientific notation."""
    if value == 0:
        return "0"
    value = float(f"{value:.3g}")  # round first, because rounding may reach the next power of ten
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(decimals, 6)}f}"


def _missing(value) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _scaled(value, steps) -> tuple[str, str]:
    # 0.9995 prevents "1000 k": a value that rounds up to the next step at three digits uses that step.
    for size, name in steps:
        if abs(value) >= size * 0.9995:
            return digits(value / size), name
    return digits(value), steps[-1][1]


def number(value) -> str:
    """A count: 950, 12.3 k, 4.56 M."""
    if _missing(value):
        return NOTHING
    if abs(value) < 1000 and float(value).is_integer():
        return str(int(value))
    text, prefix = _scaled(value, _SI)
    return f"{text} {prefix}".strip()


def of_unit(unit: str, kinds: Mapping[str, str] = {}):
    """The formatter for a unit of the catalogue; `kinds` gives the kind of each unit. A unit of unknown kind is written
    after the number."""
    kind = kinds.get(unit) or _KINDS.get(unit, "")
    if kind == "time":
        return nanoseconds
    if kind == "binary":
        return size
    if kind == "ratio":
        return ratio
    return partial(_si, unit=_SPELT.get(unit, unit)) if kind == "si" else partial(_with_unit, unit=unit)


_KINDS = {"ns": "time", "B/s": "si", "bytes/s": "si", "1/s": "si", "bytes": "binary", "B": "binary", "": "ratio"}
_SPELT = {"bytes/s": "B/s", "1/s": "/s"}
_SYMBOLS = ("", "B", "b", "FLOP", "W", "J", "Hz")  # symbols take a prefix: GB/s; words do not: M msg/s


def _si(value, unit: str) -> str:
    if _missing(value):
        return NOTHING
    text, prefix = _scaled(value, [*_SI, *_SMALL] if unit in _SMALL_UNITS else _SI)
    if unit.partition("/")[0] in _SYMBOLS:
        return f"{text} {prefix}{unit}".strip()
    return f"{text} {prefix} {unit}" if prefix else f"{text} {unit}"


def _with_unit(value, unit: str) -> str:
    return NOTHING if _missing(value) else f"{digits(value)} {unit}"


messages_per_second = partial(_si, unit="msg/s")
bytes_per_second = partial(_si, unit="B/s")


def nanoseconds(value) -> str:
    if _missing(value):
        return NOTHING
    text, unit = _scaled(value, _TIME)
    return f"{text} {unit}"


def size(value) -> str:
    """Bytes; exact multiples have no decimals (64 B, 4 KiB, 1 MiB)."""
    if _missing(value):
        return NOTHING
    for step, unit in _BINARY:
        if abs(value) >= step:
            count = value / step
            return f"{int(count) if float(count).is_integer() else digits(count)} {unit}"
    return "0 B"


def ratio(value) -> str:
    """A dimensionless ratio, '0.83'."""
    return NOTHING if _missing(value) else digits(value)


def percent(value) -> str:
    """A share, '83 %'; below 10 % with two significant digits, '0.42 %'."""
    if _missing(value):
        return NOTHING
    scaled = 100 * value
    return f"{scaled:.0f} %" if scaled >= 9.95 else f"{scaled:.2g} %"


def spread(formatter, value, low, high) -> str:
    """A median with its range: '24.1 M msg/s (23.9–24.4)'; the unit is written once if all three share it."""
    if _missing(value) or _missing(low) or low == high:
        return formatter(value)
    text, ends = formatter(value), [formatter(low), formatter(high)]
    unit = text.partition(" ")[2]
    if unit and all(end.partition(" ")[2] == unit for end in ends):
        ends = [end.partition(" ")[0] for end in ends]
    dash = " to " if any(end.startswith("-") for end in ends) else "–"
    return f"{text} ({ends[0]}{dash}{ends[1]})"


def tick(formatter):
    """The formatter for axis ticks, without trailing zeros: '10 µs' rather than '10.0 µs'."""

    def short(value: float) -> str:
        text, space, unit = formatter(value).partition(" ")
        return (text.rstrip("0").rstrip(".") if "." in text else text) + space + unit

    return short


def unit_of(name: str):
    """The formatter for a limit, from the unit at the end of its name."""
    if name.endswith("_ns"):
        return nanoseconds
    if name.endswith("_bytes_per_second"):
        return bytes_per_second
    if name.endswith("_per_second"):
        return messages_per_second
    return number


_LIMITS = {
    "launch_per_second": "launches",
    "redis_bytes_per_second": "Redis bytes",
    "copy_launch_copy_ns": "copy, launch, copy",
    "mapped_launch_sync_ns": "launch on mapped memory",
}
_FIO = re.compile(r"fio_(sequential|random)_(read|write)_(\d+)_(\d+)x(\d+)_bytes_per_second")
_ACRONYMS = {"redis": "Redis", "cpu": "CPU", "sm": "SM", "dram": "DRAM", "l2": "L2", "fma": "FMA"}


def words(name: str) -> str:
    """A limit in words, without its unit: 'copy engine both', 'fio random read, 4 KiB, depth 256 × 1'."""
    if known := _LIMITS.get(name):
        return known
    if job := _FIO.fullmatch(name):
        access, operation, block, depth, threads = job.groups()
        return f"fio {access} {operation}, {size(int(block))}, depth {depth} × {threads}"
    for ending in ("_bytes_per_second", "_operations_per_second", "_per_second", "_ns"):
        name = name.removesuffix(ending)
    return " ".join(_ACRONYMS.get(word, word) for word in name.split("_"))
