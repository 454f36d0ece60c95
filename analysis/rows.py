"""Reads the rows of a result folder, each joined with its run. An interrupted run is read as far as possible, and notes
record what was left out."""

import json
import lzma
import math
import zlib
from collections.abc import Callable
from pathlib import Path

from .errors import BadInput

SCHEMA_VERSION = 3
STATUSES = ("ok", "invalid", "unsustainable", "failed", "skipped")
FILES = ("rows.jsonl", "rows.jsonl.xz", "rows.jsonl.gz")  # the first that exists is read; a sweep appends to rows.jsonl
# By suffix: the program, the first bytes of a compressed file, and the decompressor.
UNPACKERS: dict[str, tuple[str, bytes, Callable]] = {
    ".gz": ("gzip", b"\x1f\x8b", lambda: zlib.decompressobj(wbits=31)),
    ".xz": ("xz", b"\xfd7zXZ", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ)),
}
NEEDED = {"run": "environment", "cell": "params", "limit": "limit", "capacity": "params"}
RUN = "of_run"  # the key of a row's run in the rows returned here


def read(directory: Path, argument: str, notes: list[str]) -> list[dict]:
    """The rows of a directory. If several rows have the same id, the last one counts, because a resumed sweep measures
    it again. Run rows are joined to the other rows and not returned."""
    file = _file(directory, argument)
    rows: dict[str, dict] = {}
    runs: dict[str, dict] = {}
    repeated = 0
    lines = _lines(file, argument, directory, notes)
    for line_number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = _parse(line)
        except ValueError as error:
            is_json = not isinstance(error, json.JSONDecodeError)
            cut = line_number == len(lines) and not is_json
            fault = str(error) if is_json else "the last line is cut off (interrupted run)" if cut else "not valid JSON"
            notes.append(f"{file}:{line_number}: {fault}; line left out")
            continue
        _check(row, f"{file}:{line_number}", argument, directory)
        if row["kind"] == "run":
            runs[row["id"]] = row
            continue
        key = row.get("id", f"line {line_number}")
        repeated += key in rows and row["kind"] != "limit"  # a limit's last row has the readings of the entire run
        rows[key] = row
    if not rows:
        raise BadInput(argument, directory, f"{file.name} has no complete row", "a directory in which a sweep ran")
    if repeated:
        notes.append(f"{file}: {repeated} row(s) repeat an id; the last of each counts")
    unknown = {row.get("run") for row in rows.values()} - runs.keys()
    if unknown:
        lost = sum(row.get("run") in unknown for row in rows.values())
        notes.append(f"{file}: {lost} row(s) refer to a run that is not in the file, so their environment is unknown")
    return [row | {RUN: runs.get(row.get("run"), {})} for row in rows.values()]


def experiment(row: dict) -> str:
    """The experiment of a row; for a limit, the experiment of its run."""
    return row.get("experiment") or row[RUN].get("experiment", "")


def _parse(line: bytes) -> object:
    """Parses a line. Raises ValueError for invalid JSON and for values that a page cannot show: numbers that are not
    finite, and lone surrogates."""
    row = json.loads(line, parse_float=_finite, parse_constant=_finite)
    if rb"\ud" in line.lower():
        json.dumps(row, ensure_ascii=False).encode()
    return row


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is not a finite number")
    return value


def _file(directory: Path, argument: str) -> Path:
    if not directory.is_dir():
        raise BadInput(argument, directory, "no such directory", "a results directory with rows.jsonl")
    for name in FILES:
        if (directory / name).is_file():
            return directory / name
    allowed = f"a results directory with {' or '.join(FILES)}"
    raise BadInput(argument, directory, f"has no {FILES[0]}", allowed)


def _lines(file: Path, argument: str, directory: Path, notes: list[str]) -> list[bytes]:
    content = file.read_bytes()
    if file.suffix not in UNPACKERS:
        return content.split(b"\n")
    program, magic, make = UNPACKERS[file.suffix]
    if not content.startswith(magic):
        raise BadInput(argument, directory, f"{file.name} is not compressed by {program}", f"output of {program}")
    parts, complete = [], True
    while content and complete:  # concatenated archives form a valid archive
        unpacker, at = make(), 0
        while at < len(content) and not unpacker.eof:
            try:
                parts.append(unpacker.decompress(content[at : at + (1 << 16)]))
            except (zlib.error, lzma.LZMAError):
                break
            at += 1 << 16
        complete = unpacker.eof
        content = unpacker.unused_data + content[at:]
    if not complete:  # an incomplete copy: read as much as can be unpacked
        notes.append(f"{file}: the compressed rows are cut off or damaged; the readable part is used")
    return b"".join(parts).split(b"\n")


def _check(row: object, place: str, argument: str, directory: Path) -> None:
    """Checks only the fields needed for reading; `feedrate validate` checks rows against the complete schema."""
    version = row.get("schema") if isinstance(row, dict) else None
    if version in (1, 2):
        converters = " and then ".join(f"results/convert_schema_{each}.py" for each in range(version, SCHEMA_VERSION))
        raise BadInput(
            argument,
            directory,
            f"{place} has schema version {version}, which this release does not read",
            f"version {SCHEMA_VERSION}; to convert the rows, use {converters} from this repository's history",
        )
    if version != SCHEMA_VERSION:
        raise BadInput(argument, directory, f"{place} has schema version {version!r}", str(SCHEMA_VERSION))
    kind = row.get("kind")
    needed = NEEDED.get(kind)
    if needed is None:
        raise BadInput(argument, directory, f"{place} has kind {kind!r}", ", ".join(NEEDED))
    if not isinstance(row.get(needed), dict):
        raise BadInput(argument, directory, f"{place} has no {needed}", f"a {kind} row with an object '{needed}'")
    if kind != "run" and row.get("status") not in STATUSES:
        raise BadInput(argument, directory, f"{place} has status {row.get('status')!r}", ", ".join(STATUSES))
    if kind == "run" and not row.get("id"):
        raise BadInput(argument, directory, f"{place} has no id", "a run row with the id that other rows refer to")
    if kind in ("cell", "capacity") and not row.get("experiment"):
        raise BadInput(argument, directory, f"{place} names no experiment", "an experiment in the catalogue")
