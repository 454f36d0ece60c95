"""Interleaved A/B of an executable against a copy whose code slows ten of sixty points by 5 %: how many verdicts are
false, how many equal points are judged equal, and is the slowdown found?

    python tests/trials/planted_ab.py build build/release slow    # builds the slowed executable, in half a minute
    ./slow ab --other build/release/bin/feedrate tests/trials/planted_ab.json --pairs 20 --out planted
    python tests/trials/planted_ab.py judge planted    # or several such folders

Side B is the slowed executable: a producer with a window of one message of 96 bytes waits before each send, for 5.3 %
of the time of the last round trip. `build` edits the working tree, builds, and restores the file.
"""

import argparse
import math
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from analysis.ab import Margins, match  # noqa: E402
from analysis.compare import metrics_of  # noqa: E402
from analysis.document import Table, markdown_table  # noqa: E402
from analysis.load import load  # noqa: E402
from analysis.marked import rewrite  # noqa: E402
from analysis.verdict import FASTER, SAME, SLOWER, UNCLEAR  # noqa: E402

SOURCE = ROOT / "experiments/feeding/senders.cpp"
BEFORE = "    fill(flow, work, sent, slots);\n    forget_stages"
SLOWED = """    if (work.point.payload == 96 && work.point.window == 1) {  // other points must not even read the clock
      static thread_local std::uint64_t last = now_ns();
      const std::uint64_t begin = now_ns();
      while (now_ns() - begin < (begin - last) / 19) {
      }
      last = now_ns();
    }
"""
PLANTED = 96  # bytes
MARGINS = Margins(0.02, 0.05)
WORDS = (SAME, FASTER, SLOWER, UNCLEAR)


def build(folder: Path, out: Path) -> None:
    whole = SOURCE.read_text(encoding="utf-8")
    assert whole.count(BEFORE) == 1, f"{SOURCE} has changed"
    try:
        SOURCE.write_text(whole.replace(BEFORE, SLOWED + BEFORE), encoding="utf-8")
        subprocess.run(["cmake", "--build", folder, "--target", "feedrate"], check=True)
        shutil.copy(folder / "bin/feedrate", out)
    finally:
        SOURCE.write_text(whole, encoding="utf-8")
    subprocess.run(["cmake", "--build", folder, "--target", "feedrate"], check=True)


def lines(folder: str) -> tuple[list[list[str]], list[str]]:
    """The rows of the table, and the sentences on the pairs and on false verdicts."""
    a, b = (load([f"{folder}/{side}"]) for side in "ab")
    matched, lonely, _ = match(folder, a, b, MARGINS)
    planted = matched["payload_bytes"] == PLANTED
    found, metrics = [], []
    for metric in metrics_of(a, b):
        if metric.name not in ("throughput", "p50", "p99"):
            continue
        for name, those in (("equal", matched[~planted]), ("slowed", matched[planted])):
            judged = list(those[metric.column])
            words = [one.verdict for one in judged]
            ratios = sorted(one.value for one in judged)
            spread = statistics.median(math.sqrt(one.spread) for one in judged)
            found.append([Path(folder).name, f"{metric.name}, {name}", *(str(words.count(one)) for one in WORDS),
                          f"{ratios[0]:.3f} to {ratios[-1]:.3f}", f"{100 * spread:.1f} %"])  # fmt: skip
        metrics.append(metric)
    said = [pairs_said(matched, len(lonely), metrics), *(false_said(*those, metrics) for those in (
        ("equal", "FASTER or SLOWER", matched[~planted], (FASTER, SLOWER)),
        ("slowed", "FASTER", matched[planted], (FASTER,)),
    ))]  # fmt: skip
    return found, [f"`{Path(folder).name}`: {one}" for one in said]


def named(point, figures: str) -> str:
    return f"{point['variant']}, {point['payload_bytes']} B, window {point['window']}: {figures}"


def pairs_said(matched, without: int, metrics: list) -> str:
    """States how many pairs the points have, and which points have fewer than half of their pairs, so that their ratios
    are unreliable."""
    used = sorted(used for used, _ in matched["pairs"])
    said = f"{len(matched)} points with {used[0]} to {used[-1]} pairs, {statistics.median(used):g} at the median, "
    said += f"{without} without any."
    few = [
        named(point, f"{point['pairs'][0]} of {point['pairs'][1]} pairs, ")
        + ", ".join(f"{metric.name} {point[metric.column].value:.3f}" for metric in metrics)
        for _, point in matched.iterrows()
        if 2 * point["pairs"][0] < point["pairs"][1]
    ]
    return f"{said} Fewer than half of theirs have {'; '.join(few)}." if few else said


def false_said(which: str, words: str, those, verdicts: tuple, metrics: list) -> str:
    """States the verdicts that contradict the code."""
    wrong = [
        named(point, f"{metric.name} {point[metric.column]}")
        for metric in metrics
        for _, point in those.iterrows()
        if point[metric.column].verdict in verdicts
    ]
    every = len(those) * len(metrics)
    details = f" ({100 * len(wrong) / every:.1f} %): {'; '.join(wrong)}" if wrong else ""
    verb = "is" if len(wrong) == 1 else "are"
    return f"of {every} verdicts on {which} points {len(wrong)} {verb} {words}, and false{details}."


def text(folders: list[str]) -> str:
    every = [lines(folder) for folder in folders]
    columns = ["run", "figure, points", *WORDS, "ratios B / A", "spread of a pair, median"]
    table = markdown_table(Table(columns, [line for found, _ in every for line in found], set(range(2, len(columns)))))
    notes = "\n".join(f"- {one}" for _, said in every for one in said)
    return (
        f"{table}\n\n{notes}\n\nFASTER and SLOWER mean a difference of 2 % or more; SAME means within ±5 %. A pair "
        "counts only if both of its rows are ok; rows that the load generator limited do not count."
    )


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = options.add_subparsers(dest="command", required=True)
    making = commands.add_parser("build")
    making.add_argument("folder", type=Path)
    making.add_argument("out", type=Path)
    judging = commands.add_parser("judge")
    judging.add_argument("folders", nargs="+")
    judging.add_argument("--page", help="update this page's `planted` block")
    judging.add_argument("--check", action="store_true", help="only check whether the block would change (exit code 1)")
    given = options.parse_args()
    if given.command == "judge" and given.page is None:
        print(text(given.folders))
        return 0
    if given.command == "judge":
        return rewrite(given.page, "--page", "planted", lambda: text(given.folders), given.check, given.folders[0])
    build(given.folder, given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
