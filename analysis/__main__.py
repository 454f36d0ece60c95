"""`python -m analysis COMMAND …`. Checks for missing packages first and reports them in one line."""

import io
import sys

from . import needs
from .errors import CannotWrite
from .files import say


def main(arguments=None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if isinstance(sys.stdout, io.TextIOWrapper):  # escape unencodable characters, as on stderr
        sys.stdout.reconfigure(errors="backslashreplace")
    if arguments == ["needs"]:
        return _print_needs()
    complaint = needs.complaint()
    if complaint:
        print(complaint, file=sys.stderr)
        return 1
    try:
        from . import commands
    except ImportError as error:  # a package is installed but broken
        print(f"error: {error}", file=sys.stderr)
        return 1
    return commands.run(arguments)


def _print_needs() -> int:
    lacks = needs.missing()
    try:
        say("\n".join(lacks) or "nothing is missing")
    except CannotWrite as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 1 if lacks else 0


if __name__ == "__main__":
    sys.exit(main())
