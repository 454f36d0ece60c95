"""Output: files that are written whole or not at all, and lines on stdout."""

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from .errors import CannotWrite


def write_all(contents: Mapping[Path, str | bytes]) -> list[Path]:
    """Writes files that belong together; returns their paths. Each is written beside its place first, and all are
    renamed only when all are complete: a full disk leaves what was there before, and nothing by halves."""
    renames: dict[Path, Path] = {}
    place = None
    try:
        for place, content in contents.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            if (number := _descriptor(place)) is not None:
                with open(number, "wb", closefd=False) as file:
                    file.write(_bytes(content))
                continue
            final = place.resolve()  # the file that a link names, not the link
            if final.exists() and not final.is_file():  # a pipe or a device takes no other file's name
                final.write_bytes(_bytes(content))
                continue
            # A short name: the final one may have all the bytes that a name can.
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
    """Of an open file that is named by it (/dev/stdout, /dev/fd/3): others write there, too, and it is not replaced."""
    for _ in range(40):
        if str(path.parent) in ("/dev/fd", "/proc/self/fd"):
            return int(path.name) if path.name.isdecimal() else None
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


def _bytes(content: str | bytes) -> bytes:
    # Of names of files that are not UTF-8.
    return content.encode(errors="backslashreplace") if isinstance(content, str) else content


def say(text: str) -> None:
    """Prints to stdout, now: a reader who has gone, or a full disk, is an error of this command."""
    try:
        if sys.stdout is None:  # closed before the program began
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        print(text, flush=True)
    except OSError as error:
        if sys.stdout is not None:
            # What could not be printed is still buffered, and the interpreter's end would try, and fail, again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise CannotWrite("stdout", error) from error
