"""The command line: `python -m analysis report|compare|figures|readme|ring …`."""

import argparse
import sys

from .compare import write_comparison
from .errors import BadInput
from .readme import BLOCKS, update_readme, write_figures
from .report import write_report
from .ring.note import write_ring


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m analysis", description="Reports and comparisons of Feedrate results.")
    commands = top.add_subparsers(dest="command", required=True)

    report = commands.add_parser(
        "report", help="write report.html, report.md and PNGs of one or more result directories"
    )
    report.add_argument("directories", nargs="+", metavar="DIR", help="a directory that holds rows.jsonl")
    report.add_argument("--out", metavar="DIR", help="where to write (default: the first DIR)")
    report.add_argument("--title", help="the report's title (default: the directories' names)")

    compare = commands.add_parser("compare", help="ratios B / A of equal points, with 95 %% intervals")
    compare.add_argument("before", metavar="A", help="the result directory to compare with")
    compare.add_argument("after", metavar="B", help="the result directory to judge")
    compare.add_argument("--out", metavar="DIR", help="where to write compare.md and compare.png (default: B)")

    figures = commands.add_parser("figures", help="write only the PNGs, and the headline table as headline.md")
    figures.add_argument("directory", metavar="DIR", help="a directory that holds rows.jsonl")
    figures.add_argument("--out", metavar="DIR", required=True, help="where to write")

    readme = commands.add_parser("readme", help="rewrite the figures' block of a README from result rows")
    readme.add_argument("directory", metavar="DIR", help="a directory that holds rows.jsonl")
    readme.add_argument(
        "readme", metavar="README.md", help="a file with the lines <!-- figures:begin --> and <!-- figures:end -->"
    )
    readme.add_argument(
        "--block",
        choices=list(BLOCKS),
        default="figures",
        help="which block: the figures, or the GPU ring's tables between <!-- ring:begin --> and <!-- ring:end -->",
    )
    readme.add_argument("--figures", metavar="DIR", help="where the PNGs lie that the block shows (default: DIR)")
    readme.add_argument("--check", action="store_true", help="write nothing; exit 1 if the block would change")

    ring = commands.add_parser("ring", help="the GPU ring's axes: PNGs, and a table in a note about the ring")
    ring.add_argument("directory", metavar="DIR", help="a directory that holds the rows.jsonl of the spec ring")
    ring.add_argument("--out", metavar="DIR", help="where to write the PNGs, and where the note finds them")
    ring.add_argument(
        "--note", metavar="NOTE.md", help="a file with the lines <!-- axes:begin --> and <!-- axes:end --> to rewrite"
    )
    ring.add_argument("--check", action="store_true", help="write nothing; exit 1 if the note's block would change")
    return top


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        match options.command:
            case "report":
                print(write_report(options.directories, options.out, options.title))
            case "compare":
                print(write_comparison(options.before, options.after, options.out))
            case "figures":
                print("\n".join(map(str, write_figures(options.directory, options.out))))
            case "readme":
                return update_readme(options.directory, options.readme, options.block, options.figures, options.check)
            case "ring":
                return write_ring(options.directory, options.out, options.note, options.check)
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
