"""Does a recorded trace replay at its recorded times, at a million messages per second?

    python tests/trials/replay.py build/release/bin/feedrate [--queue null] [--rate 1000000] [--out FILE]

Writes a trace of one second of Poisson arrivals, replays it, and measures how late the messages were sent. Exits with 1
if the row is not ok, if the rate is off by more than 1 %, or if one message in a hundred was sent 50 us or more late.
The producer and the collector each need their own core, so this is not part of the tests.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path


def write_trace(path: Path, rate: float, seconds: float) -> int:
    arrivals = random.Random(1)
    time, count = 0.0, 0
    with path.open("w") as out:
        out.write("time\n")
        while (time := time + arrivals.expovariate(rate)) < seconds:
            out.write(f"{time:.9f}\n")
            count += 1
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("feedrate")
    parser.add_argument("--queue", default="null")
    parser.add_argument("--rate", type=float, default=1e6, help="messages per second")
    parser.add_argument("--out", type=Path, help="file to which the row is appended")
    options = parser.parse_args()
    seconds = 1.0
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "poisson.csv"
        count = write_trace(trace, options.rate, seconds)
        command = [options.feedrate, "run", "--json", "--queue", options.queue, "--keep-disturbed"]
        command += ["--arrivals", "trace", "--trace-file", str(trace), "--seconds", str(seconds), "--window", "4096"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    row = json.loads(lines[-1])
    if options.out:
        with options.out.open("a") as out:
            out.write("".join(f"{line}\n" for line in lines))  # the run, and the row that names it
    if "load" not in row.get("details", {}):
        print(f"{options.queue}: {row['status']} {row['reason']}")
        return 1
    lag, load = row["figures"]["send_lag_ns"], row["details"]["load"]
    off = row["figures"]["messages_per_second"] / (count / seconds) - 1
    print(
        f"{options.queue}: {row['status']} {row['reason']}\n"
        f"  {row['figures']['messages_per_second']:.0f} messages/s, {off:+.3%} of the trace's rate\n"
        f"  sent late by p50 {lag['p50']:.0f} ns, p99 {lag['p99']:.0f} ns, at most {lag['max']:.0f} ns;"
        f" the sender's own lag p50 {load['own_lag_ns']['p50']:.0f} ns, p99 {load['own_lag_ns']['p99']:.0f} ns"
    )
    complete = row["status"] == "ok" and load["unsent"] == 0 and load["due"] == count
    return 0 if complete and abs(off) < 0.01 and lag["p99"] < 50_000 else 1


if __name__ == "__main__":
    sys.exit(main())
