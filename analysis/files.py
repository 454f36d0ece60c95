"""Files: output that is written completely or not at all, lines on stdout, and input of JSON lines."""

import contextlib
import errno
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from .errors import BadInput, CannotWrite


def write_all(contents: Mapping[Path, str | bytes]) -> list[Path]:
    """Writes files that belong together; returns their paths. Each is first written to a temporary file in the same
    folder, and all are renamed once all are complete. A full disk thus leaves the earlier files and no partial ones."""
    renames: dict[Path, Path] = {}
    place = None
    try:
        for place, content in contents.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            if (number := _descriptor(place)) is not None:
                with open(number, "wb", closefd=False) as file:
                    file.write(_bytes(content))
                continue
            final = place.resolve()  # the target of a link, not the link
            if final.exists() and not final.is_file():  # a pipe or a device must not be replaced
                final.write_bytes(_bytes(content))
                continue
            # A short name, because the final name may already have the maximum length.
            renames[final] = part = final.with_name(f".{os.getpid()}-{len(renames)}.part")
            part.write_bytes(_bytes(content))
            if final.exists():
                shutil.copymode(final, part)
        for place, part in renames.items():
            os.replace(part, place)
    except OSError as error:
        raise CannotWrite(place, error) from error
    finally:
        for part in renames.values():
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
    return list(contents)


def _descriptor(path: Path) -> int | None:
    """The descriptor if the path names an open file (/dev/stdout, /dev/fd/3). Such a file is not replaced, because
    other writers may use it."""
    for _ in range(40):
        if str(path.parent) in ("/dev/fd", "/proc/self/fd"):
            return int(path.name) if path.name.isdecimal() else None
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


def _bytes(content: str | bytes) -> bytes:
    # File names may contain bytes that are not UTF-8.
    return content.encode(errors="backslashreplace") if isinstance(content, str) else content


def json_lines(path: Path, take: Callable[[dict], dict], allowed: str) -> list[dict]:
    """The results of `take` for the lines of the file. Raises BadInput for an invalid line and for an empty file."""
    if not path.is_file():
        raise BadInput("FILE", path, "no such file", allowed)
    taken = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            taken.append(take(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput("FILE", path, f"line {number} is invalid ({error!r})", allowed) from None
    if not taken:
        raise BadInput("FILE", path, "has no line", allowed)
    return taken


def say(text: str) -> None:
    """Prints to stdout and flushes. A closed pipe or a full disk raises CannotWrite."""
    try:
        if sys.stdout is None:  # closed before the program started
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        print(text, flush=True)
    except OSError as error:
        if sys.stdout is not None:
            # The unprinted text is still buffered, and the interpreter would try to print it again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise CannotWrite("stdout", error) from error
