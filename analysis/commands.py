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
        "report", help="write report.html, report.md and PNGs for one or more result directories"
    )
    report.add_argument("directories", nargs="+", metavar="DIR", help="a directory with rows.jsonl")
    report.add_argument("--out", metavar="DIR", help="the folder to write to (default: the first DIR)")
    report.add_argument("--title", help="the report's title (default: the directories' names)")

    compare = commands.add_parser(
        "compare",
        help="compare B with A point by point: FASTER, SLOWER, SAME or UNCLEAR",
        description="Compares B with A point by point, for each metric that the catalogue in the result directory "
        "names (throughput, p50, p99 and others): the ratio B / A, its 95 % interval, and a verdict. FASTER and "
        "SLOWER: B differs by the margin or more, and the difference is significant after correction for many points. "
        "SAME: the entire interval lies within the margin. UNCLEAR: everything else.",
        epilog="Exit code: 0; 1 if a point fails a --fail-on gate; 2 for invalid input.",
    )
    compare.add_argument("directories", nargs="+", metavar="DIR", help="A and B; with --with, all runs of A")
    compare.add_argument(
        "--with",
        dest="others",
        nargs="+",
        default=[],
        metavar="B",
        help="the runs of B, if a side has several: compare A1 A2 A3 --with B1 B2 B3. The noise between runs is then "
        "measured, not assumed",
    )
    compare.add_argument("--out", metavar="DIR", help="the folder for compare.md and compare.png (default: first B)")
    compare.add_argument(
        "--fail-on",
        metavar="GATE",
        action="append",
        default=[],
        help=f"exit with 1 and name on stderr the points that fail; GATE is {GRAMMAR}. slower:5%% fails for points "
        "that are SLOWER by 5 %% or more (throughput 5 %% lower, or a latency 5 %% higher), slower:10%%:p99 only "
        "considers p99; unclear fails for points that are UNCLEAR, and for points that are ok in A but not in B. Can "
        "be repeated",
    )

    aa = commands.add_parser(
        "aa",
        help="count false verdicts between two runs of the same code",
        description="Compares two runs of the same code, so every FASTER and SLOWER between them is false. Reports the "
        "number of false verdicts, and the value to pass to compare as --run-noise.",
    )
    aa.add_argument("before", metavar="A", help="one result directory")
    aa.add_argument("after", metavar="B", help="another result directory of the same code on the same machine")
    aa.add_argument(
        "--readme", metavar="README.md", help="a file with the lines <!-- aa:begin --> and <!-- aa:end --> to rewrite"
    )
    aa.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the block would change")

    ab = commands.add_parser(
        "ab",
        help="give verdicts on the pairs that `feedrate ab` measured",
        description="Reads OUT/a and OUT/b, whose rows were measured in pairs next to each other. Reports for each "
        "point and metric the ratio B / A over the pairs, its 95 % interval, and FASTER, SLOWER, SAME or UNCLEAR.",
        epilog="Exit code: 0; 1 if a point fails a --fail-on gate; 2 for invalid input.",
    )
    ab.add_argument("folder", metavar="OUT", help="the folder that `feedrate ab` wrote")
    ab.add_argument("--out", metavar="DIR", help="the folder for ab.md and ab.png (default: OUT)")
    ab.add_argument(
        "--same-margin",
        metavar="PERCENT",
        default="5%",
        help="the verdict is SAME if tests show that the ratio lies within this margin (default: 5%%)",
    )
    ab.add_argument(
        "--fail-on", metavar="GATE", action="append", default=[], help=f"as for compare; GATE is {GRAMMAR}"
    )

    power = commands.add_parser(
        "power",
        help="estimate the smallest change that a comparison finds, from the spread of measured rows",
        description="Reports for each metric the smallest change of one point among many that is found in 80 %% of the "
        "cases with 3, 5, 10, 20 and 30 pairs, repetitions or runs per side. Several runs of one revision also give "
        "the noise between runs.",
    )
    power.add_argument(
        "directories", nargs="+", metavar="DIR", help="a result directory with several repetitions per point"
    )
    power.add_argument(
        "--readme", metavar="README.md", help="a file with the lines <!-- power:begin --> and <!-- power:end --> to rewrite"
    )
    power.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the block would change")

    faults = commands.add_parser(
        "faults",
        help="make the table of tasks lost under faults, from the output of the fault tests",
        description="Reports by fault and queue the tasks lost, the results delivered twice and the recovery time. The "
        "input is written by tests/cli with FEEDRATE_FAULTS=FILE.",
    )
    faults.add_argument("file", metavar="FILE", help="a file with one JSON line per case")
    faults.add_argument(
        "--readme", metavar="PAGE.md", help="a file with the lines <!-- BLOCK:begin --> and <!-- BLOCK:end --> to rewrite"
    )
    faults.add_argument("--block", default="faults", help="the name of that block (default: %(default)s)")
    faults.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the block would change")

    for judging in (compare, aa, ab):
        judging.add_argument(
            "--margin",
            metavar="PERCENT",
            default="2%",
            help="the smallest effect of interest; a smaller one counts as the same (default: 2%%)",
        )
    for judging in (compare, aa):
        judging.add_argument(
            "--run-noise",
            metavar="PERCENT[:METRIC]",
            action="append",
            default=[],
            help="the standard deviation between runs of one code beyond that of their repetitions, as measured by aa "
            f"(default: {100 * RUN_NOISE:g}%%; use 0%% if one run measured both sides next to each other); can be "
            "repeated with different metrics",
        )

    export = commands.add_parser("export", help="write result rows in the formats of other tools")
    export.add_argument("directory", metavar="DIR", help="a directory with rows.jsonl")
    export.add_argument(
        "--format",
        choices=list(FORMATS),
        required=True,
        help="google-benchmark: Google Benchmark's JSON, for its tools/compare.py; hdr: HdrHistogram's interval logs, "
        "one per point",
    )
    export.add_argument("--out", metavar="PATH", required=True, help="the JSON file or the log directory to write")

    figures = commands.add_parser("figures", help="write only the PNGs and, for feeding, headline.md and headline.svg")
    figures.add_argument("directory", metavar="DIR", help="a directory with rows.jsonl")
    figures.add_argument("--out", metavar="DIR", required=True, help="the folder to write to")

    readme = commands.add_parser("readme", help="rewrite a generated block of a page from result rows")
    readme.add_argument("directory", metavar="DIR", help="a directory with rows.jsonl")
    readme.add_argument(
        "readme", metavar="README.md", help="a file with the lines <!-- BLOCK:begin --> and <!-- BLOCK:end -->"
    )
    readme.add_argument(
        "--block",
        choices=list(BLOCKS),
        default="figures",
        help="the block to rewrite (default: %(default)s). For any experiment: best (the best variant by each figure), "
        "points (every point). For feeding: answer (the best queues), figures (headline table and figures), ring (the "
        "GPU ring's tables), one_pair (rates of one pair of threads), load (open loads up to saturation), capacity "
        "(queues by latency bound), prices (cost of delivery guarantees), transfers (the best transfer by payload and "
        "batch), batch_timeout (effect of holding batches back). For overlap: strategies (all strategies at one "
        "setting), by_depth, by_item, by_balance. For handoff: cheapest (the cheapest way by size), ways (cost of each "
        "way), two_gpus (the cheapest way to another GPU), several (several tensors or readers)",
    )
    readme.add_argument("--figures", metavar="DIR", help="the folder with the PNGs that the block shows (default: DIR)")
    readme.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the block would change")

    timeline = commands.add_parser(
        "timeline",
        help="draw the GPU work of several traces, one above the other",
        description="Draws the GPU tracks of timelines that `feedrate run --trace` wrote, one above the other with a "
        "common time axis and scale, as one SVG file that follows the light or dark mode of the reader's system.",
    )
    timeline.add_argument("traces", nargs="+", metavar="TRACE.json", help="timelines, drawn in this order")
    timeline.add_argument("--out", metavar="FILE.svg", required=True, help="the file to write")
    timeline.add_argument(
        "--milliseconds",
        metavar="N",
        type=float,
        help="draw only the first N milliseconds of each timeline, starting at the first GPU work (default: all)",
    )

    beside = commands.add_parser(
        "beside",
        help="compare Nsight Systems with `feedrate run --trace` for one point",
        description="Makes a table of the mean times of kernels and copies by stream, as measured by both tools.",
    )
    beside.add_argument("trace", metavar="TRACE.json", help="a timeline that `feedrate run --trace` wrote")
    beside.add_argument(
        "report", metavar="GPUTRACE.csv", help="a report from `nsys stats --format csv --report cuda_gpu_trace`"
    )
    beside.add_argument("--page", metavar="PAGE.md", help="a file with the lines <!-- nsys:begin --> and <!-- nsys:end -->")
    beside.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the block would change")

    torch = commands.add_parser("torch", help="compare PyTorch's sharing of a GPU tensor with ways of handoff")
    torch.add_argument("file", metavar="FILE", help="a file that experiments/handoff/torch_shared.py wrote")
    torch.add_argument("--page", metavar="PAGE.md", help="a file with the lines <!-- torch:begin --> and <!-- torch:end -->")
    torch.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the block would change")

    store = commands.add_parser("store", help="make the table of costs of the tensor store, by way to share memory")
    store.add_argument("folder", metavar="DIR", help="a folder with feedrate_micro's output, one file per way")
    store.add_argument("--page", metavar="PAGE.md", help="a file with the lines <!-- costs:begin --> and <!-- costs:end -->")
    store.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the block would change")

    ring = commands.add_parser("ring", help="write PNGs and a table on the axes of the GPU ring")
    ring.add_argument("directory", metavar="DIR", help="a directory with the rows.jsonl of the spec ring")
    ring.add_argument("--out", metavar="DIR", help="the folder for the PNGs, to which the note links")
    ring.add_argument(
        "--note", metavar="NOTE.md", help="a file with the lines <!-- axes:begin --> and <!-- axes:end --> to rewrite"
    )
    ring.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the block would change")

    ranks = commands.add_parser(
        "ranks",
        help="check that a search (quick) finds what a sweep (feeding) found; exit with 1 if not",
        description="Compares the best result of each variant in two result directories of one machine: peak message "
        "rate, peak byte rate, and p50 of a lone message. Exits with 1 if two variants that are 1.5 × apart in the "
        "sweep are ranked the other way round, or if a peak is below 70 % of the sweep's.",
    )
    ranks.add_argument("found", metavar="FOUND", help="the result directory of the search")
    ranks.add_argument("swept", metavar="SWEPT", help="the result directory of the sweep")
    ranks.add_argument("--page", metavar="PAGE.md", help="a file with the lines <!-- ranks:begin --> and <!-- ranks:end -->")
    ranks.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the block would change")

    # __main__ runs this command before it imports this file; here it is only listed in the help.
    commands.add_parser("needs", help="list Python packages that are missing or too old; exit with 1 if there are any")
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
