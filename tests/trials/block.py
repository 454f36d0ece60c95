"""The command line of trials whose text is a generated block of a page."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from analysis.marked import publish  # noqa: E402


def run(about: str, name: str, make: Callable[[list[Path]], str]) -> int:
    """Prints the text that `make` returns for the given rows, or writes it into the block `name` of `--page`."""
    options = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("rows", type=Path, nargs="+", metavar="ROWS")
    options.add_argument("--page", help=f"update this page's `{name}` block")
    options.add_argument("--check", action="store_true", help="only check whether the block would change (exit code 1)")
    given = options.parse_args()
    return publish(lambda: make(given.rows), given.page, "--page", name, given.check, " ".join(map(str, given.rows)))
