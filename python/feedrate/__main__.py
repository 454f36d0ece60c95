"""`python -m feedrate …` and the command `feedrate`: the executable of the package; `python -m feedrate devices` tells
what a ring can run on."""

from __future__ import annotations

import os
import sys

USAGE = """\
Usage: python -m feedrate devices        what a ring can run on, as JSON
       python -m feedrate COMMAND …      a command of the executable, below
"""


def main() -> int:
    import json

    import feedrate
    from feedrate import harness

    words = sys.argv[1:]
    if words == ["devices"]:
        print(json.dumps(feedrate.devices(), indent=2))
        return 0
    program = harness.executable()
    if not words or words[0] in ("-h", "--help"):
        print(USAGE, flush=True)
        words = ["--help"]
    specs = program.parent.parent / "specs"
    if specs.is_dir():
        os.environ.setdefault("FEEDRATE_SPECS", str(specs))
    os.execv(program, [str(program), *words])


if __name__ == "__main__":
    sys.exit(main())
