"""Separate runs of the same code, several per side: how many verdicts between the sides are false, and how many are
SAME?

    tests/trials/separate_runs.sh OUT 5 [OPTION…]       # measures OUT/a1 b1 b2 a2 …; FEEDRATE is the executable
    python tests/trials/separate_runs.py keep OUT FILE  # the means of each run at every point that is ok on both sides
    python tests/trials/separate_runs.py judge FILE     # every FASTER and SLOWER is false

`judge` gives the same verdicts as `python -m analysis compare A1 A2 … --with B1 B2 …` gives for the folders. The first
line of FILE describes the runs. Each further line describes one point: for each metric, the geometric mean in each run
of A and of B, or null if the point is not ok in that run.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from analysis import power  # noqa: E402
from analysis.compare import Rules, metrics_of, pairs  # noqa: E402
from analysis.document import Table, markdown_table  # noqa: E402
from analysis.load import load  # noqa: E402
from analysis.marked import publish  # noqa: E402
from analysis.runs import ratios, run_means, variances  # noqa: E402
from analysis.verdict import FASTER, SLOWER, VERDICTS, Metric, judge  # noqa: E402

REPORTED = ("throughput", "p50", "p99")


def keep(folder: Path) -> list[dict]:
    """The contents of FILE: a description of the runs, and the means of each point by metric, side and run."""
    sides = [load(sorted(folder.glob(f"{side}[0-9]*"))) for side in "ab"]
    metrics = [metric for metric in metrics_of(*sides) if metric.name in REPORTED]
    known = [(point, both) for point, both in pairs(*sides) if all(both)]
    first = {
        "runs": [[directory.name for directory in side.directories] for side in sides],
        "environment": sides[0].environments[0],
        "metrics": [asdict(metric) for metric in metrics],
        "points": len(sides[0].cells[sides[0].axes].drop_duplicates()),
    }
    lines = [first]
    for point, both in known:
        means = {
            metric.name: [
                run_means(values[metric.column], values["run"], list(map(str, side.directories))).tolist()
                for side, values in zip(sides, both)
            ]
            for metric in metrics
        }
        values = {name: [[_value(x) for x in side] for side in two] for name, two in means.items()}
        lines.append({"point": point} | values)
    return lines


def _value(logarithm: float) -> float | None:
    return None if np.isnan(logarithm) else float(f"{np.exp(logarithm):.6g}")


def line(of: dict) -> str:
    return json.dumps(of, default=np.generic.item) + "\n"


def read(file: Path) -> list[dict]:
    return [json.loads(one) for one in file.read_text(encoding="utf-8").splitlines()]


def logarithms(lines: list[dict], name: str) -> list[np.ndarray]:
    """The logarithms of A and of B, with one row per point and one column per run."""
    return [np.log(np.array([point[name][side] for point in lines[1:]], dtype=float)) for side in (0, 1)]


def judged(lines: list[dict]) -> dict[str, list]:
    """The ratios B / A of each metric, with their verdicts."""
    rules, found = Rules(), {}
    for metric in (Metric(**described) for described in lines[0]["metrics"]):
        known = ratios(*logarithms(lines, metric.name), metric.resolution)
        found[metric.name] = judge(known, metric, rules.margin, power.shown(known, metric, None, rules.margin))
    return found


def text(file: Path) -> str:
    lines = read(file)
    rows, every = [], []
    for name, those in judged(lines).items():
        words = [one.verdict for one in those]
        every += words
        reach = np.median([np.sqrt(one.high / one.low) - 1 for one in those])
        rows.append([name, *(str(words.count(word)) for word in VERDICTS), f"±{100 * reach:.1f} %"])
    false, same = (sum(word in those for word in every) for those in ((FASTER, SLOWER), ("SAME",)))
    table = markdown_table(Table(["metric", *VERDICTS, "interval of a ratio, median"], rows, set(range(1, 6))))
    a, b = map(len, lines[0]["runs"])
    common, each, _ = variances(*logarithms(lines, "throughput"))
    shared, own = np.sqrt(common), np.sqrt(np.nanmedian(each))
    return (
        f"{table}\n\n{a} runs of A and {b} of B, {lines[0]['points']} points, of which {len(lines) - 1} are ok on both "
        f"sides. Of {len(every)} verdicts {false} are FASTER or SLOWER, and false ({100 * false / len(every):.1f} %); "
        f"{same} are SAME ({100 * same / len(every):.1f} %). In throughput, entire runs differ by {100 * shared:.1f} % "
        f"(all points together), and individual points by a further {100 * own:.1f} % (standard deviations)."
    )


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = options.add_subparsers(dest="command", required=True)
    keeping = commands.add_parser("keep")
    keeping.add_argument("folder", type=Path)
    keeping.add_argument("file", type=Path)
    judging = commands.add_parser("judge")
    judging.add_argument("file", type=Path)
    judging.add_argument("--page", help="update this page's `separate` block")
    judging.add_argument("--check", action="store_true", help="only check whether the block would change (exit code 1)")
    given = options.parse_args()
    if given.command == "keep":
        given.file.write_text("".join(map(line, keep(given.folder))), encoding="utf-8")
        return 0
    return publish(lambda: text(given.file), given.page, "--page", "separate", given.check, given.file)


if __name__ == "__main__":
    sys.exit(main())
