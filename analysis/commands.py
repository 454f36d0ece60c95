"""The command line: `python -m analysis COMMAND …`."""

import argparse
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from .aa import write_aa
from .ab import Margins, write_ab
from .beside_nsys import beside_text
from .blocks import BLOCKS, update_readme, write_figures
from .calibration import power_text
from .compare import write_comparison
from .dose import dose_text
from .errors import BadInput, CannotWrite
from .export import FORMATS, export
from .faults import faults_text
from .feeding.machines import machines_figures, machines_text
from .feeding.ranks import write_ranks
from .feeding.ring.note import write_ring
from .files import say
from .gate import GRAMMAR, parse_margin
from .handoff.beside_torch import beside_torch_text
from .marked import publish, write_whole
from .plots.timeline import write_timeline
from .report import write_report
from .spreads import spreads_text
from .store_costs import store_costs_text
from .trials import trials_text
from .verdict import RUN_NOISE

EXIT_CODES = "Exit code: 0; 1 if a point fails a --fail-on gate; 2 for invalid input."
ROWS = "a directory with rows.jsonl"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m analysis", description="Reports and comparisons of Feedrate results.")
    commands = top.add_subparsers(dest="command", required=True)
    for add in (_add_reports, _add_comparisons, _add_blocks):
        add(commands)
    # __main__ runs this command before it imports this file; here it is only listed in the help.
    commands.add_parser("needs", help="list Python packages that are missing or too old; exit with 1 if there are any")
    return top


def run(arguments: list[str]) -> int:
    """Runs one command; returns the exit code."""
    options = parser().parse_args(arguments)
    try:
        return options.run(options) or 0
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except CannotWrite as error:
        print(f"error: {error}", file=sys.stderr)
    except OSError as error:
        print(f"error: {error.filename or options.command}: {error.strerror or error}", file=sys.stderr)
    return 1


def _page_options(command: argparse.ArgumentParser, block: str, option: str = "--page", file: str = "PAGE.md") -> None:
    """Adds the options for writing the output into a block of a page and for checking that block."""
    markers = f"a file with the lines <!-- {block}:begin --> and <!-- {block}:end --> to rewrite"
    command.add_argument(option, metavar=file, dest="page", help=markers)
    _check_option(command)


def _writes_block(command: argparse.ArgumentParser, make: Callable, block: str, *page: str) -> None:
    """The command prints the text that `make` returns for the argument `source`, or writes it into a page's block."""
    _page_options(command, block, *page)

    def write(given) -> int:
        source = given.source if isinstance(given.source, str) else ", ".join(given.source)
        text = lambda: make(given.source)  # noqa: E731
        return publish(text, given.page, next(iter(page), "--page"), given.block, given.check, source)

    command.set_defaults(run=write, block=block)


def _check_option(command: argparse.ArgumentParser) -> None:
    command.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the block would change")


def _say_paths(paths: Iterable[Path]) -> None:
    say("\n".join(map(str, paths)))


def _margin_option(command: argparse.ArgumentParser, standard: str = "2%") -> None:
    command.add_argument(
        "--margin",
        metavar="PERCENT",
        default=standard,
        help=f"FASTER and SLOWER mean a difference of more than this (default: {standard}%)",
    )


def _noise_option(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--run-noise",
        metavar="PERCENT[:METRIC]",
        action="append",
        default=[],
        help="standard deviation between runs of the same code, in excess of that between repetitions, as measured by "
        f"aa (default: {100 * RUN_NOISE:g}%%; use 0%% if both sides were measured next to each other in one run); may "
        "be given several times, for different metrics",
    )


def _gate_option(command: argparse.ArgumentParser, text: str) -> None:
    command.add_argument("--fail-on", metavar="GATE", action="append", default=[], help=text)


def _add_reports(commands) -> None:
    """Reports, figures and exports."""
    command = commands.add_parser(
        "report", help="write report.html, report.md and PNGs for one or more result directories"
    )
    command.add_argument("directories", nargs="+", metavar="DIR", help=ROWS)
    command.add_argument("--out", metavar="DIR", help="the folder to write to (default: the first DIR)")
    command.add_argument("--title", help="the report's title (default: the directories' names)")
    command.set_defaults(run=lambda given: say(str(write_report(given.directories, given.out, given.title))))

    command = commands.add_parser("figures", help="write only the PNGs and, for feeding, headline.md and headline.svg")
    command.add_argument("directory", metavar="DIR", help=ROWS)
    command.add_argument("--out", metavar="DIR", required=True, help="the folder to write to")
    command.set_defaults(run=lambda given: _say_paths(write_figures(given.directory, given.out)))

    command = commands.add_parser("export", help="write result rows in the formats of other tools")
    command.add_argument("directory", metavar="DIR", help=ROWS)
    command.add_argument(
        "--format",
        choices=list(FORMATS),
        required=True,
        help="google-benchmark: Google Benchmark's JSON, for its tools/compare.py; hdr: HdrHistogram's interval logs, "
        "one per point",
    )
    command.add_argument("--out", metavar="PATH", required=True, help="the JSON file or the log directory to write")
    command.set_defaults(run=lambda given: _say_paths(export(given.directory, given.format, given.out)))

    command = commands.add_parser(
        "timeline",
        help="draw the GPU work of several traces, one above the other",
        description="Draws the GPU tracks of timelines that `feedrate run --trace` wrote, one above the other with a "
        "common time axis and scale, as one SVG file that follows the light or dark mode of the reader's system.",
    )
    command.add_argument("traces", nargs="+", metavar="TRACE.json", help="timelines, drawn in this order")
    command.add_argument("--out", metavar="FILE.svg", required=True, help="the file to write")
    command.add_argument(
        "--milliseconds",
        metavar="N",
        type=float,
        help="draw only the first N milliseconds of each timeline, starting at the first GPU work (default: all)",
    )
    command.set_defaults(run=lambda given: say(str(write_timeline(given.traces, given.out, given.milliseconds))))


def _add_comparisons(commands) -> None:
    """Comparisons of two sides."""
    command = commands.add_parser(
        "compare",
        help="compare B with A point by point: FASTER, SLOWER, SAME or UNCLEAR",
        description="Compares B with A point by point, for each metric that the catalogue in the result directory "
        "lists (throughput, p50, p99 and others): the ratio B / A, its 95 % interval, and a verdict. FASTER and "
        "SLOWER: B differs by the margin or more, and the difference is significant after correction for many points. "
        "SAME: the entire interval lies within the margin. UNCLEAR: everything else.",
        epilog=EXIT_CODES,
    )
    command.add_argument("directories", nargs="+", metavar="DIR", help="A and B; with --with, all runs of A")
    command.add_argument(
        "--with",
        dest="others",
        nargs="+",
        default=[],
        metavar="B",
        help="the runs of B, if a side has several: compare A1 A2 A3 --with B1 B2 B3. The noise between runs is then "
        "measured, not assumed",
    )
    command.add_argument("--out", metavar="DIR", help="the folder for compare.md and compare.png (default: first B)")
    _gate_option(
        command,
        f"exit with 1 and name on stderr the points that fail; GATE is {GRAMMAR}. slower:5%% fails for points that are "
        "SLOWER by 5 %% or more (throughput 5 %% lower, or a latency 5 %% higher), slower:10%%:p99 only considers p99; "
        "unclear fails for points that are UNCLEAR, and for points that are ok in A but not in B. Can be repeated",
    )
    _margin_option(command)
    _noise_option(command)
    command.set_defaults(
        run=lambda given: write_comparison(
            given.directories, given.others, given.out, parse_margin(given.margin), given.run_noise, given.fail_on
        )
    )

    command = commands.add_parser(
        "ab",
        help="give verdicts on the slices that `feedrate ab` measured",
        description="Reads OUT/a and OUT/b, whose slices were measured in turn. Reports for each point and metric the "
        "ratio B / A, its 95 % interval, and FASTER, SLOWER, SAME or UNCLEAR.",
        epilog=EXIT_CODES,
    )
    command.add_argument("folders", metavar="OUT", nargs="+", help="the folders of one or several runs of `feedrate ab`")
    command.add_argument("--out", metavar="DIR", help="the folder for ab.md and ab.png (default: the first OUT)")
    command.add_argument(
        "--same-margin",
        metavar="PERCENT",
        default="5%",
        help="the verdict is SAME if tests show that the ratio lies within this margin (default: 5%%)",
    )
    _gate_option(command, f"as for compare; GATE is {GRAMMAR}")
    _margin_option(command, "1%")

    def judge(given) -> int:
        margins = Margins(parse_margin(given.margin), parse_margin(given.same_margin, "--same-margin"))
        return write_ab(given.folders, given.out, margins, given.fail_on)

    command.set_defaults(run=judge)

    command = commands.add_parser(
        "aa",
        help="count false verdicts between two runs of the same code",
        description="Compares two runs of the same code, so every FASTER and SLOWER between them is false. Reports the "
        "number of false verdicts, and the value to pass to compare as --run-noise.",
    )
    command.add_argument("before", metavar="A", help="one result directory")
    command.add_argument("after", metavar="B", help="another result directory of the same code on the same machine")
    _page_options(command, "aa", "--readme", "README.md")
    _margin_option(command)
    _noise_option(command)
    command.set_defaults(
        run=lambda given: write_aa(
            given.before, given.after, parse_margin(given.margin), given.run_noise, given.page, given.check
        )
    )

    command = commands.add_parser(
        "power",
        help="estimate the smallest change that a comparison can detect, from the spread of measured rows",
        description="Reports for each metric the smallest change of one point among many that is found in 80 %% of the "
        "cases with 3, 5, 10, 20 and 30 repetitions per side. Several runs of one revision also give "
        "the noise between runs.",
    )
    command.add_argument(
        "source", nargs="+", metavar="DIR", help="a result directory with several repetitions per point"
    )
    _writes_block(command, power_text, "power", "--readme", "README.md")

    command = commands.add_parser(
        "trials",
        help="count the verdicts of runs of `feedrate ab` with equal sides, or with a known difference",
        description="Each OUT is a run of `feedrate ab` whose sides are equal or, with --dose, whose side B is worse by a "
        "known share. Reports the verdicts, false ones with an upper bound, and the change that such runs find.",
    )
    command.add_argument("source", nargs="+", metavar="OUT", help="a folder that `feedrate ab` wrote")
    command.add_argument("--dose", metavar="PERCENT", help="the share by which B is worse; default: the sides are equal")
    command.add_argument("--same-margin", metavar="PERCENT", default="5%", help="as for ab (default: 5%%)")
    _margin_option(command, "1%")
    _page_options(command, "trials", "--readme", "README.md")
    command.add_argument(
        "--spreads",
        metavar="FILE",
        help="write, instead of the table, C++ code with the variation between starts, from which `feedrate ab` says what it will find",
    )
    command.add_argument("--by-point", action="store_true", help="a line for each point instead of each variant; no tails")

    def count(given) -> int:
        margins = Margins(parse_margin(given.margin), parse_margin(given.same_margin, "--same-margin"))
        if given.spreads:
            for option in ("dose", "page", "by_point"):
                if getattr(given, option):
                    name = "readme" if option == "page" else option.replace("_", "-")
                    raise BadInput(f"--{name}", getattr(given, option), "does not apply to --spreads", "no value")
            return write_whole(given.spreads, spreads_text(given.source, margins), given.check, ", ".join(given.source))
        dose = parse_margin(given.dose, "--dose") if given.dose else 0.0
        text = partial(trials_text, given.source, margins, dose, given.by_point)
        return publish(text, given.page, "--readme", "trials", given.check, ", ".join(given.source))

    command.set_defaults(run=count)

    command = commands.add_parser(
        "dose",
        help="show how much slower side B of a trial is, from sweeps of both sides' points",
        description="Compares the kernels' own times. A trial with a known dose states this share.",
    )
    command.add_argument("source", nargs="+", metavar="DIR", help="sweeps of side A's and of side B's points in turn")
    _writes_block(command, dose_text, "dose", "--readme", "README.md")

    command = commands.add_parser(
        "ranks",
        help="check that a search (quick) finds the results of a sweep (feeding); exit with 1 if not",
        description="Compares the best result of each queue in two result directories of one machine: peak message "
        "rate, peak byte rate, and p50 of a lone message. Exits with 1 if two queues that are 1.5 × apart in the "
        "sweep are ranked in the opposite order, or if a peak is below 80 % of the sweep's.",
    )
    command.add_argument("found", metavar="FOUND", help="the result directory of the search")
    command.add_argument("swept", metavar="SWEPT", help="the result directory of the sweep")
    _page_options(command, "ranks")
    command.set_defaults(run=lambda given: write_ranks(given.found, given.swept, given.page, given.check))


def _add_blocks(commands) -> None:
    """Blocks of pages."""
    command = commands.add_parser("readme", help="rewrite a generated block of a page from result rows")
    command.add_argument("directory", metavar="DIR", help=ROWS)
    command.add_argument(
        "readme", metavar="README.md", help="a file with the lines <!-- BLOCK:begin --> and <!-- BLOCK:end -->"
    )
    command.add_argument(
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
    command.add_argument(
        "--figures",
        metavar="DIR",
        help="the folder with the PNGs that the block shows (default: that of the PNGs that it shows already, else DIR)",
    )
    _check_option(command)
    command.set_defaults(
        run=lambda given: update_readme(given.directory, given.readme, given.block, given.figures, given.check)
    )

    command = commands.add_parser(
        "machines",
        help="show each queue at its best over several machines, from one run on each",
        description="Each DIR is a run of the same spec and revision on another machine of the same kind.",
    )
    command.add_argument("source", nargs="+", metavar="DIR", help=ROWS)
    _page_options(command, "machines", "--readme", "README.md")
    command.add_argument("--out", metavar="DIR", help="also draw headline.png and headline.svg there")

    def across(given) -> int:
        if given.out and not given.check:
            _say_paths(machines_figures(given.source, given.out))
        text = partial(machines_text, given.source)
        return publish(text, given.page, "--readme", "machines", given.check, ", ".join(given.source))

    command.set_defaults(run=across)

    command = commands.add_parser("ring", help="write PNGs and a table on the axes of the GPU ring")
    command.add_argument("directory", metavar="DIR", help="a directory with the rows.jsonl of the ring spec")
    command.add_argument("--out", metavar="DIR", help="the folder for the PNGs, to which the note links")
    _page_options(command, "axes", "--note", "NOTE.md")
    command.set_defaults(run=lambda given: write_ring(given.directory, given.out, given.page, given.check))

    command = commands.add_parser(
        "faults",
        help="make the table of tasks lost under faults, from the output of the fault tests",
        description="Reports by fault and queue the tasks lost, the results delivered twice and the recovery time. The "
        "input is written by tests/cli with FEEDRATE_FAULTS=FILE.",
    )
    command.add_argument("source", metavar="FILE", help="a file with one JSON line per case")
    command.add_argument("--block", help="the name of the page's block (default: %(default)s)")
    _writes_block(command, faults_text, "faults", "--readme", "PAGE.md")

    command = commands.add_parser(
        "beside",
        help="compare Nsight Systems with `feedrate run --trace` for one point",
        description="Makes a table of the mean times of kernels and copies by stream, as measured by both tools.",
    )
    command.add_argument("trace", metavar="TRACE.json", help="a timeline that `feedrate run --trace` wrote")
    command.add_argument(
        "report", metavar="GPUTRACE.csv", help="a report from `nsys stats --format csv --report cuda_gpu_trace`"
    )
    _page_options(command, "nsys")
    command.set_defaults(
        run=lambda given: publish(
            lambda: beside_text(given.trace, given.report), given.page, "--page", "nsys", given.check, given.trace
        )
    )

    command = commands.add_parser("torch", help="compare PyTorch's sharing of a GPU tensor with ways of handoff")
    command.add_argument("source", metavar="FILE", help="a file that experiments/handoff/torch_shared.py wrote")
    _writes_block(command, beside_torch_text, "torch")

    command = commands.add_parser("store", help="make the table of tensor store costs for each way of sharing memory")
    command.add_argument("source", metavar="DIR", help="a folder with feedrate_micro's output, one file per way")
    _writes_block(command, store_costs_text, "costs")
