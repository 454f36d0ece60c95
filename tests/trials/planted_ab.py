"""Interleaved A/B of an executable with itself, in which ten points of sixty are slowed by 5 % in its code: how many
verdicts are false, how many equal points are told to be equal, and is the slowdown found?

    python tests/trials/planted_ab.py build build/release slow    # makes the slowed executable, in half a minute
    ./slow ab --other build/release/bin/feedrate tests/trials/planted_ab.json --pairs 20 --out planted
    python tests/trials/planted_ab.py judge planted

Side B is the slowed one: a producer with a window of one message of 96 bytes waits before it sends, for 5.3 % of the
time that the last round trip took. `build` edits the working tree, builds, and puts the file back.
"""

import argparse
import math
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from analysis.ab import Margins, match  # noqa: E402
from analysis.compare import metrics_of  # noqa: E402
from analysis.load import load  # noqa: E402
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


def judge(folder: str, margins: Margins) -> int:
    a, b = (load([f"{folder}/{side}"]) for side in "ab")
    matched, lonely, _ = match(folder, a, b, margins)
    planted = matched["payload_bytes"] == PLANTED
    print(f"{len(matched)} points with pairs, {int(planted.sum())} of them slowed; {len(lonely)} without")
    false = verdicts = 0
    for metric in metrics_of(a, b):
        if metric.name not in ("throughput", "p50", "p99"):
            continue
        for name, those in (("equal", matched[~planted]), ("slowed", matched[planted])):
            judged = list(those[metric.column])
            found = {verdict: sum(one.verdict == verdict for one in judged) for verdict in (SAME, FASTER, SLOWER, UNCLEAR)}
            ratios = sorted(one.value for one in judged)
            print(f"{metric.name}, {name}: {found}; ratios {ratios[0]:.3f} to {ratios[-1]:.3f}, median "
                  f"{ratios[len(ratios) // 2]:.3f}")  # fmt: skip
            if name == "equal":
                verdicts += len(judged)
                false += found[FASTER] + found[SLOWER]
            elif metric.name == "throughput":
                wide = sorted(math.log(one.high / one.low) / 2 for one in judged)
                print(f"  half widths of the slowed points' intervals: {', '.join(f'{100 * one:.1f} %' for one in wide)}")
    print(f"false: {false} of {verdicts} verdicts on equal points ({100 * false / max(1, verdicts):.1f} %)")
    return 0


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = options.add_subparsers(dest="command", required=True)
    making = commands.add_parser("build")
    making.add_argument("folder", type=Path)
    making.add_argument("out", type=Path)
    judging = commands.add_parser("judge")
    judging.add_argument("folder")
    judging.add_argument("--margin", type=float, default=0.0, help="the smallest change of interest, a share")
    given = options.parse_args()
    if given.command == "judge":
        return judge(given.folder, Margins(given.margin, 0.05))
    build(given.folder, given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
