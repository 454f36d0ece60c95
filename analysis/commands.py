"""The command line: `python -m analysis report|compare|ab|aa|power|faults|export|figures|readme|ranks|ring|timeline|beside|torch|store|needs …`."""

import argparse
import sys

from .aa import write_aa
from .ab import Margins, write_ab
from .compare import write_comparison
from .errors import BadInput, CannotWrite
from .export import FORMATS, export
from .calibration import write_power
from .faults import write_faults
from .beside_nsys import write_beside
from .blocks import BLOCKS, update_readme, write_figures
from .feeding.ranks import write_ranks
from .feeding.ring.note import write_ring
from .files import say
from .gate import GRAMMAR, parse_margin
from .handoff.beside_torch import write_beside_torch
from .report import write_report
from .store_costs import write_store_costs
from .timeline import write_timeline
from .verdict import RUN_NOISE


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m analysis", description="Reports and comparisons of Feedrate results.")
    commands = top.add_subparsers(dest="command", required=True)

    report = commands.add_parser(
        "report", help="write report.html, report.md and PNGs of one or more result directories"
    )
    report.add_argument("directories", nargs="+", metavar="DIR", help="a directory that holds rows.jsonl")
    report.add_argument("--out", metavar="DIR", help="where to write (default: the first DIR)")
    report.add_argument("--title", help="the report's title (default: the directories' names)")

    compare = commands.add_parser(
        "compare",
        help="ratios B / A of equal points, each FASTER, SLOWER, SAME or UNCLEAR",
        description="Compares B with A point by point, for each metric that the catalogue beside the rows names "
        "(throughput, p50, p99 and others): the ratio B / A, its 95 % interval, and a verdict. FASTER and SLOWER: B "
        "differs by the margin or more, and not by chance even among so many points. SAME: the whole interval lies "
        "within the margin. UNCLEAR: everything else.",
        epilog="Exit code: 0, or 1 where --fail-on stops a point, or 2 for bad input.",
    )
    compare.add_argument("directories", nargs="+", metavar="DIR", help="A and B; with --with, the runs of A")
    compare.add_argument(
        "--with",
        dest="others",
        nargs="+",
        default=[],
        metavar="B",
        help="the runs of B, where a side has several: compare A1 A2 A3 --with B1 B2 B3. How much runs of one code differ "
        "is then measured, not assumed",
    )
    compare.add_argument("--out", metavar="DIR", help="where to write compare.md and compare.png (default: the first B)")
    compare.add_argument(
        "--fail-on",
        metavar="GATE",
        action="append",
        default=[],
        help=f"exit 1 and name the points on stderr; GATE is {GRAMMAR}. slower:5%% stops points that are SLOWER by "
        "5 %% or more (throughput 5 %% lower, or a latency 5 %% higher), slower:10%%:p99 only where p99 says so; "
        "unclear stops those that cannot be judged, and those ok in A that are not ok in B. May be given again",
    )

    aa = commands.add_parser(
        "aa",
        help="false verdicts between two runs of the same code",
        description="Two runs that are known to be of the same code: every FASTER and SLOWER between them is false. "
        "Says how many there are, and what to give compare as --run-noise.",
    )
    aa.add_argument("before", metavar="A", help="one result directory")
    aa.add_argument("after", metavar="B", help="another, measured by the same code on the same machine")
    aa.add_argument(
        "--readme", metavar="README.md", help="a file with the lines <!-- aa:begin --> and <!-- aa:end --> to rewrite"
    )
    aa.add_argument("--check", action="store_true", help="write nothing; exit 1 if README's block would change")

    ab = commands.add_parser(
        "ab",
        help="verdicts on the pairs that `feedrate ab` measured",
        description="Reads OUT/a and OUT/b, whose rows were measured in pairs next to each other. For each point and metric: "
        "the ratio B / A over the pairs, its 95 % interval, and FASTER, SLOWER, SAME or UNCLEAR.",
        epilog="Exit code: 0, or 1 where --fail-on stops a point, or 2 for bad input.",
    )
    ab.add_argument("folder", metavar="OUT", help="the folder that `feedrate ab` wrote")
    ab.add_argument("--out", metavar="DIR", help="where to write ab.md and ab.png (default: OUT)")
    ab.add_argument(
        "--same-margin",
        metavar="PERCENT",
        default="5%",
        help="SAME is said where the ratio is shown to lie within this (default: 5%%)",
    )
    ab.add_argument(
        "--fail-on", metavar="GATE", action="append", default=[], help=f"as of compare; GATE is {GRAMMAR}"
    )

    power = commands.add_parser(
        "power",
        help="what change a comparison finds, by the spread of measured rows",
        description="For each metric the smallest change of one point among many that is found in 80 %% of the cases with 3, "
        "5, 10, 20 and 30 pairs, repetitions or runs a side. Several runs of one revision also show what runs differ by.",
    )
    power.add_argument("directories", nargs="+", metavar="DIR", help="a result directory of several repetitions a point")
    power.add_argument(
        "--readme", metavar="README.md", help="a file with the lines <!-- power:begin --> and <!-- power:end --> to rewrite"
    )
    power.add_argument("--check", action="store_true", help="write nothing; exit 1 if README's block would change")

    faults = commands.add_parser(
        "faults",
        help="the table of what queues lost under faults, from the lines of the fault tests",
        description="What each queue lost, sent twice and how long it took to recover, by fault; the lines come from "
        "tests/cli with FEEDRATE_FAULTS=FILE.",
    )
    faults.add_argument("file", metavar="FILE", help="lines of JSON, one a case")
    faults.add_argument(
        "--readme", metavar="PAGE.md", help="a file with the lines <!-- BLOCK:begin --> and <!-- BLOCK:end --> to rewrite"
    )
    faults.add_argument("--block", default="faults", help="the name of that block (default: %(default)s)")
    faults.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page's block would change")

    for judging in (compare, aa, ab):
        judging.add_argument(
            "--margin",
            metavar="PERCENT",
            default="2%",
            help="the smallest effect of interest; less than that counts as the same (default: 2%%)",
        )
    for judging in (compare, aa):
        judging.add_argument(
            "--run-noise",
            metavar="PERCENT[:METRIC]",
            action="append",
            default=[],
            help="the standard deviation between runs of one code that their repetitions do not show, as aa measures "
            f"it (default: {100 * RUN_NOISE:g}%%; 0%% for what one run measured side by side); may be given again, for "
            "one metric each",
        )

    export = commands.add_parser("export", help="result rows in other tools' formats")
    export.add_argument("directory", metavar="DIR", help="a directory that holds rows.jsonl")
    export.add_argument(
        "--format",
        choices=list(FORMATS),
        required=True,
        help="google-benchmark: its JSON, for its tools/compare.py; hdr: HdrHistogram's interval logs, one a point",
    )
    export.add_argument("--out", metavar="PATH", required=True, help="the JSON file, or the logs' directory, to write")

    figures = commands.add_parser("figures", help="write only the PNGs, and of feeding the headline table as headline.md")
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
        help="which block, between <!-- BLOCK:begin --> and <!-- BLOCK:end -->: the best of each figure and every "
        "point (of any experiment); of feeding what is best for which messages, the figures and headlines, the GPU ring's tables, what one pair of threads carries, how open loads went up to "
        "saturation, which queue keeps which bound, what delivery guarantees cost, which transfer "
        "is best for which payload and batch, what holding batches back does; of overlap what each strategy makes of a "
        "pipeline, and how that changes by depth, item size and balance; of handoff the cheapest way by size, what "
        "each way costs, what is cheapest to another GPU, and what moves of several tensors or to several readers",
    )
    readme.add_argument("--figures", metavar="DIR", help="where the PNGs lie that the block shows (default: DIR)")
    readme.add_argument("--check", action="store_true", help="write nothing; exit 1 if the block would change")

    timeline = commands.add_parser(
        "timeline",
        help="draw what ran on the GPU, of several traces above each other",
        description="Draws the GPU's tracks of timelines that `feedrate run --trace` wrote, one above the other with one "
        "time axis and one scale, as one SVG file that is light or dark as the reader's system is.",
    )
    timeline.add_argument("traces", nargs="+", metavar="TRACE.json", help="a timeline; drawn in this order")
    timeline.add_argument("--out", metavar="FILE.svg", required=True, help="the file to write")
    timeline.add_argument(
        "--milliseconds",
        metavar="N",
        type=float,
        help="only so much of each, from the first work on the GPU on (default: all)",
    )

    beside = commands.add_parser(
        "beside",
        help="what Nsight Systems and `feedrate run --trace` say of the same point",
        description="A table of the mean times of kernels and copies by stream, as both tools have them.",
    )
    beside.add_argument("trace", metavar="TRACE.json", help="what `feedrate run --trace` wrote")
    beside.add_argument(
        "report", metavar="GPUTRACE.csv", help="what `nsys stats --format csv --report cuda_gpu_trace` wrote"
    )
    beside.add_argument("--page", metavar="PAGE.md", help="a file with the lines <!-- nsys:begin --> and <!-- nsys:end -->")
    beside.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page's block would change")

    torch = commands.add_parser("torch", help="PyTorch's way to share a GPU tensor beside ways of the experiment handoff")
    torch.add_argument("file", metavar="FILE", help="what experiments/handoff/torch_shared.py wrote")
    torch.add_argument("--page", metavar="PAGE.md", help="a file with the lines <!-- torch:begin --> and <!-- torch:end -->")
    torch.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page's block would change")

    store = commands.add_parser("store", help="what operations of the tensor store cost, by the way to share memory")
    store.add_argument("folder", metavar="DIR", help="what feedrate_micro wrote of the store, a file a way")
    store.add_argument("--page", metavar="PAGE.md", help="a file with the lines <!-- costs:begin --> and <!-- costs:end -->")
    store.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page's block would change")

    ring = commands.add_parser("ring", help="the GPU ring's axes: PNGs, and a table in a note about the ring")
    ring.add_argument("directory", metavar="DIR", help="a directory that holds the rows.jsonl of the spec ring")
    ring.add_argument("--out", metavar="DIR", help="where to write the PNGs, and where the note finds them")
    ring.add_argument(
        "--note", metavar="NOTE.md", help="a file with the lines <!-- axes:begin --> and <!-- axes:end --> to rewrite"
    )
    ring.add_argument("--check", action="store_true", help="write nothing; exit 1 if the note's block would change")

    ranks = commands.add_parser(
        "ranks",
        help="whether a search (quick) finds what a sweep (feeding) found; exit 1 if not",
        description="Compares each variant's best of two result directories of one machine: peaks of messages and of "
        "bytes, and a lone message's p50. Exit code 1 where two variants that the sweep puts 1.5 × apart are ranked the "
        "other way, or a peak is below 70 % of the sweep's.",
    )
    ranks.add_argument("found", metavar="FOUND", help="the result directory of the search")
    ranks.add_argument("swept", metavar="SWEPT", help="the result directory of the sweep")
    ranks.add_argument("--page", metavar="PAGE.md", help="a file with the lines <!-- ranks:begin --> and <!-- ranks:end -->")
    ranks.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page's block would change")

    # __main__ answers it before this file is imported; here it only stands in the help.
    commands.add_parser("needs", help="name the Python packages that are missing or too old; exit 1 if any is")
    return top


def run(arguments: list[str]) -> int:
    """Runs one command; returns the exit code."""
    options = parser().parse_args(arguments)
    try:
        return _run(options)
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except CannotWrite as error:
        print(f"error: {error}", file=sys.stderr)
    except OSError as error:
        print(f"error: {error.filename or options.command}: {error.strerror or error}", file=sys.stderr)
    return 1


def _run(options: argparse.Namespace) -> int:
    match options.command:
        case "report":
            say(str(write_report(options.directories, options.out, options.title)))
        case "compare":
            margin = parse_margin(options.margin)
            return write_comparison(
                options.directories, options.others, options.out, margin, options.run_noise, options.fail_on
            )
        case "ab":
            margins = Margins(parse_margin(options.margin), parse_margin(options.same_margin, "--same-margin"))
            return write_ab(options.folder, options.out, margins, options.fail_on)
        case "aa":
            margin = parse_margin(options.margin)
            return write_aa(options.before, options.after, margin, options.run_noise, options.readme, options.check)
        case "power":
            return write_power(options.directories, options.readme, options.check)
        case "faults":
            return write_faults(options.file, options.readme, options.block, options.check)
        case "export":
            say("\n".join(map(str, export(options.directory, options.format, options.out))))
        case "figures":
            say("\n".join(map(str, write_figures(options.directory, options.out))))
        case "readme":
            return update_readme(options.directory, options.readme, options.block, options.figures, options.check)
        case "ranks":
            return write_ranks(options.found, options.swept, options.page, options.check)
        case "timeline":
            say(str(write_timeline(options.traces, options.out, options.milliseconds)))
        case "beside":
            return write_beside(options.trace, options.report, options.page, options.check)
        case "torch":
            return write_beside_torch(options.file, options.page, options.check)
        case "store":
            return write_store_costs(options.folder, options.page, options.check)
        case "ring":
            return write_ring(options.directory, options.out, options.note, options.check)
    return 0
