"""Entry point of `python -m feedrate …` and of the `feedrate` command. It runs the executable in the package;
`python -m feedrate devices` lists the devices that a ring can use."""

from __future__ import annotations

import os
import sys

USAGE = """\
Usage: python -m feedrate devices        list the devices that a ring can use, as JSON
       python -m feedrate COMMAND …      run a command of the executable (listed below)
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
