"""Does `compare` find a slowdown of 5 %, and report none if there is none? Tested on real runs on the CPU device.

    python tests/trials/planted_slowdown.py build/release/bin/feedrate [--points 40] [--out DIR]

One sweep of fma_chain, whose speed is set by its arithmetic, measures every point three times: as A, as A again, and as
B with 5.3 % more arithmetic, which reduces the throughput by 5 %. All three are measured in one shuffled order, then
separated by their amount of arithmetic and given A's parameters, as if the code had changed. The trial takes about four
minutes on an idle machine, so it is not part of the tests. Exits with 1 if less than 95 % of the verdicts on B are
SLOWER, or if more than 2 % of the verdicts on the second A are FASTER or SLOWER.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from analysis.compare import match  # noqa: E402
from analysis.load import load  # noqa: E402

RATE = "messages_per_second"
ARITHMETIC = {"a": 128.0, "again": 128.01, "b": 128.0 / 0.95}  # floating-point operations per byte


def sweep(feedrate: str, points: int, repetitions: int, folder: Path) -> None:
    spec = {
        "name": "planted",
        # Repeats until the result is precise, because a shared machine is noisy at times.
        "run": {
            "seconds": 0.3,
            "warmup": 0.05,
            "repetitions": repetitions,
            "seed": 1,
            "until-precise": True,
            "throughput-within": 0.01,
            "latency-within": 1,
            "percentile": "p50",
            "most-repetitions": 20,
        },
        "parts": [
            {
                "axes": {
                    "queue": "host_polled",
                    "transfer": "mapped",
                    "workload": "fma_chain",
                    "payload": [2048 + 64 * i for i in range(points)],
                    "batch": 1,
                    "window": 1,  # threads take turns, so that two cores are enough
                    "flops-per-byte": list(ARITHMETIC.values()),
                }
            }
        ],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "planted.json").write_text(json.dumps(spec))
    subprocess.run([feedrate, "sweep", folder / "planted.json", "--device", "cpu", "--out", folder / "all"], check=True)


def separate(folder: Path) -> None:
    """Writes the rows of each amount of arithmetic to a separate folder, with A's parameters."""
    rows = [json.loads(line) for line in (folder / "all" / "rows.jsonl").open()]
    for name, amount in ARITHMETIC.items():
        (folder / name).mkdir(exist_ok=True)
        with (folder / name / "rows.jsonl").open("w") as out:
            for row in rows:
                if row["kind"] == "run":
                    print(json.dumps(row), file=out)
                if row["kind"] == "cell" and abs(row["params"]["flops_per_byte"] - amount) < 1e-3:
                    row["params"]["flops_per_byte"] = ARITHMETIC["a"]
                    print(json.dumps(row), file=out)
        shutil.copy(folder / "all" / "catalogue.json", folder / name)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("feedrate")
    options.add_argument("--points", type=int, default=40)
    options.add_argument("--repetitions", type=int, default=5)
    options.add_argument("--out", type=Path, default=None)
    given = options.parse_args()
    folder = given.out or Path(tempfile.mkdtemp())
    sweep(given.feedrate, given.points, given.repetitions, folder)
    separate(folder)
    a, again, b = (load([str(folder / name)]) for name in ARITHMETIC)
    shares = {}
    for name, other, wanted in (("again", again, ("FASTER", "SLOWER")), ("b", b, ("SLOWER",))):
        judged = list(match(a, other)[0][RATE])
        hits = sum(one.verdict in wanted for one in judged)
        ratios = sorted(one.value for one in judged)
        shares[name] = hits / len(judged)
        print(f"A against {name}: {hits} of {len(judged)} {' or '.join(wanted)}; "
              f"ratios {ratios[0]:.3f} to {ratios[-1]:.3f}, median {ratios[len(ratios) // 2]:.3f}")  # fmt: skip
    return 0 if shares["again"] <= 0.02 and shares["b"] >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
