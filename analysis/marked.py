"""Generated blocks between markers in handwritten pages."""

import sys
from collections.abc import Callable
from pathlib import Path

from .errors import BadInput
from .files import say, write_all


def publish(make: Callable[[], str], page: str | None, argument: str, name: str, check: bool, source: str) -> int:
    """Prints the text from `make`, or rewrites the block of `page` if there is a page. Returns the exit code."""
    if page is not None:
        return rewrite(page, argument, name, make, check, source)
    if check:
        file = f"{argument.removeprefix('--').upper()}.md"
        raise BadInput("--check", "", "there is no block to check", f"--check with {argument} {file}")
    say(make())
    return 0


def write_whole(file: str, text: str, check: bool, source: str) -> int:
    """Writes a file that holds nothing but `text`, or with `check` only reports whether that would change it. Returns the
    exit code."""
    path = Path(file)
    before = path.read_bytes() if path.is_file() else b""
    return _update(path, before != text.encode(), text, check, f"{file} does not match the rows of {source}")


def _update(path: Path, changes: bool, text: str, check: bool, complaint: str) -> int:
    if not changes:
        return 0
    if check:
        print(complaint, file=sys.stderr)
        return 1
    write_all({path: text})
    say(str(path))
    return 0


def rewrite(file: str, argument: str, name: str, make: Callable[[], str], check: bool, source: str) -> int:
    """Writes the text from `make` between `<!-- name:begin -->` and `<!-- name:end -->`, or with `check` only reports
    whether that would change the file. `source` is the rows' directory, for messages. Returns the exit code."""
    begin_mark, end_mark = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    path = Path(file)
    allowed = f"a file with the lines {begin_mark} and {end_mark}"
    if not path.is_file():
        raise BadInput(argument, file, "no such file", allowed)
    try:
        text = path.read_bytes().decode()  # preserves line endings
    except UnicodeDecodeError:
        raise BadInput(argument, file, "is not UTF-8", allowed) from None
    before, begin, rest = text.partition(begin_mark)
    _, end, after = rest.partition(end_mark)
    if not begin or not end:
        raise BadInput(argument, file, "lacks the markers", f"{allowed}, in this order")
    # Escape text from rows that equals a marker: it would move the end of the block.
    block = f"\n{make().replace(f'<!-- {name}:', f'&lt;!-- {name}:')}\n"
    updated = before + begin_mark + (block.replace("\n", "\r\n") if "\r\n" in text else block) + end_mark + after
    complaint = f"{file}: the block '{name}' does not match the rows of {source}"
    return _update(path, updated != text, updated, check, complaint)
