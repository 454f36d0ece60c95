"""Does the rule for disturbed repetitions find disturbances that are injected, and does it err without?

    python tests/trials/disturbance.py measure build/release/bin/feedrate OUT [--minutes 5] [OPTION of run…]
    python tests/trials/disturbance.py judge OUT [--page PAGE]

`measure` runs one repetition of a point after another, each with one of these conditions, in random order:

- quiet: nothing else runs;
- neighbour: as many processes as cores spin;
- quota: the process runs in a control group with half of the cores that its threads occupy.

The rule was set before the trial: a kind of disturbance makes a repetition invalid only if it is found in at least 90 %
of the repetitions into which it was injected, and at most 2 % of the quiet ones are called disturbed. GPU clocks and
stolen time cannot be injected here.
"""

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from analysis.aa import share_text  # noqa: E402
from analysis.document import Table, markdown_table  # noqa: E402
from analysis.marked import publish  # noqa: E402

POINTS = (
    ["--queue", "gpu_ring", "--window", "256", "--batch", "16", "--producers", "1"],
    ["--queue", "host_polled", "--window", "1024", "--batch", "64", "--producers", "2"],
    ["--queue", "redis_list", "--window", "256", "--batch", "16", "--producers", "1"],
)
CONDITIONS = ("quiet", "neighbour", "quota")
SPIN = "while True: pass"
GOALS = {"quiet": "at most 2 %", "neighbour": "at least 90 %", "quota": "at least 90 %"}


@contextlib.contextmanager
def neighbour() -> Iterator[list[str]]:
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(os.cpu_count() or 1)]
    time.sleep(0.2)
    try:
        yield []
    finally:
        for one in spinning:
            one.kill()
            one.wait()


@contextlib.contextmanager
def quota() -> Iterator[list[str]]:
    """A control group (version 1 or 2) that allows one core; raises OSError if this process may not create one."""
    unified = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    group = Path("/sys/fs/cgroup" if unified else "/sys/fs/cgroup/cpu") / f"feedrate-trial-{os.getpid()}"
    group.mkdir()
    try:
        if unified:
            (group / "cpu.max").write_text("100000 100000")
        else:
            (group / "cpu.cfs_period_us").write_text("100000")
            (group / "cpu.cfs_quota_us").write_text("100000")
        yield ["/bin/sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        with contextlib.suppress(OSError):
            group.rmdir()


@contextlib.contextmanager
def quiet() -> Iterator[list[str]]:
    yield []


def measure(executable: str, out: Path, minutes: float, options: list[str]) -> int:
    contexts = {"quiet": quiet, "neighbour": neighbour, "quota": quota}
    try:
        with quota():
            pass
    except OSError as error:
        print(f"quota: not injected, because no control group can be created here ({error})", file=sys.stderr)
        del contexts["quota"]
    out.mkdir(parents=True)
    generator, end = random.Random(1), time.monotonic() + 60 * minutes
    with (out / "repetitions.jsonl").open("w", encoding="utf-8") as file:
        while time.monotonic() < end:
            for condition in generator.sample(list(contexts), len(contexts)):
                point = generator.choice(POINTS)
                with contexts[condition]() as prefix:
                    words = [*prefix, executable, "run", *point, "--json", "--floor-rounds", "0", *options]
                    done = subprocess.run(words, capture_output=True, text=True)
                rows = [json.loads(line) for line in done.stdout.splitlines()]
                cells = [row for row in rows if row["kind"] == "cell"]
                if not cells:
                    raise SystemExit(done.stderr)
                kept = {"condition": condition, "point": point[1], "status": cells[0]["status"], "cause": cells[0]["cause"],
                        "machine": cells[0].get("machine", {}), "environment": rows[0]["environment"]}  # fmt: skip
                file.write(json.dumps(kept) + "\n")
                file.flush()
    return 0


def text(out: Path) -> str:
    rows = [json.loads(line) for line in (out / "repetitions.jsonl").read_text(encoding="utf-8").splitlines()]
    lines = []
    for condition in CONDITIONS:
        some = [row for row in rows if row["condition"] == condition]
        if not some:
            lines.append([condition, "0", "not injected", GOALS[condition], "—"])
            continue
        found = sum(row["cause"] == "disturbed" for row in some)
        share = found / len(some)
        met = share <= 0.02 if condition == "quiet" else share >= 0.9
        lines.append([condition, str(len(some)), share_text(found, len(some)), GOALS[condition], "met" if met else "**missed**"])
    table = markdown_table(Table(["condition", "repetitions", "called disturbed", "goal", ""], lines, {1, 2}))
    machine = rows[0]["environment"]
    where = f"{machine['cpu']}, {machine['cores']} cores · revision {machine['revision']}"
    return f"{table}\n\nWith the 95 % interval (Clopper and Pearson). {where}"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = options.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("executable")
    measuring.add_argument("out", type=Path)
    measuring.add_argument("--minutes", type=float, default=5)
    judging = commands.add_parser("judge")
    judging.add_argument("out", type=Path)
    judging.add_argument("--page")
    judging.add_argument("--check", action="store_true", help="only check whether the block would change (exit code 1)")
    given, more = options.parse_known_args()
    if given.command == "measure":
        return measure(given.executable, given.out, given.minutes, more)
    return publish(lambda: text(given.out), given.page, "--page", "disturbance", given.check, str(given.out))


if __name__ == "__main__":
    sys.exit(main())
