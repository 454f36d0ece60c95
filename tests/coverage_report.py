"""Prints line and branch coverage per folder, and the lines that no test ran.

    python tests/coverage_report.py BUILD-FOLDER

Reads the data that the instrumented programs left in BUILD-FOLDER (gcov counts through gcovr, and coverage.py data).
Exits with 1 if fewer than 95 % of the lines ran. This build has no CUDA, so device code is not included; the files in
NEED_A_GPU do not count. Killed processes write no counts, and coverage.py does not see threads started from C++.
"""

import collections
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEAST = 95.0
NEED_A_GPU = ["experiments/harness/machine/gpu_sample.cpp", "variants/feeding/transfers/bulk_async.cu"]
CPP = ["common", "kernels", "libraries", "variants", "experiments", "python/src"]


@dataclass
class Covered:
    lines: int = 0
    lines_run: int = 0
    branches: int = 0
    branches_run: int = 0
    missed: dict[str, list[int]] = field(default_factory=dict)  # lines by file

    def add(self, other: "Covered") -> None:
        self.lines += other.lines
        self.lines_run += other.lines_run
        self.branches += other.branches
        self.branches_run += other.branches_run
        self.missed |= other.missed


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:6.1f} %" if whole else "       -"


def ranges(lines: list[int]) -> str:
    """1, 2, 3, 7 -> 1-3 7."""
    text, begin = [], None
    for at, line in enumerate(lines):
        begin = line if begin is None else begin
        if at + 1 == len(lines) or lines[at + 1] != line + 1:
            text.append(str(line) if line == begin else f"{begin}-{line}")
            begin = None
    return " ".join(text)


def folder_of(file: str) -> str:
    """The first two folders of a path, such as variants/feeding for variants/feeding/queues/redis/watch.cpp."""
    return "/".join(Path(file).parts[:-1][:2])


def of_cpp(build: Path) -> dict[str, Covered]:
    found = build / "cpp.json"
    filters = [word for folder in CPP for word in ("--filter", f"{ROOT}/{folder}/")]
    extension = [str(path) for path in (ROOT / "build/python").glob("*-linux_*")]  # the Python package's own objects
    subprocess.run(
        [sys.executable, "-m", "gcovr", "--root", ROOT, *filters, "--exclude-throw-branches", "--exclude-unreachable-branches",
         "--merge-mode-functions", "separate", "--gcov-ignore-parse-errors", "negative_hits.warn_once_per_file",
         "--gcov-ignore-parse-errors", "suspicious_hits.warn_once_per_file",  # some loops run billions of times
         "--gcov-ignore-errors", "no_working_dir_found", "-j", "2", "--json", found, build, *extension],
        check=True,
    )  # fmt: skip
    files = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, {}]))
    for file in json.loads(found.read_text())["files"]:
        for line in file["lines"]:
            if line.get("gcovr/noncode") or line.get("gcovr/excluded"):
                continue
            known = files[file["file"]][line["line_number"]]
            known[0] += line["count"]
            for at, branch in enumerate(line["branches"]):
                known[1][at] = known[1].get(at, 0) + branch["count"]
    covered = {}
    for file, lines in files.items():
        branches = [count for _, each in lines.values() for count in each.values()]
        missed = sorted(number for number, (count, _) in lines.items() if count == 0)
        covered[file] = Covered(len(lines), len(lines) - len(missed), len(branches), sum(c > 0 for c in branches), {file: missed})
    return covered


def of_python(build: Path) -> dict[str, Covered]:
    data, found = build / "python.coverage", build / "python.json"
    run = [sys.executable, "-m", "coverage"]
    common = [f"--rcfile={ROOT / 'tests/coverage.ini'}", f"--data-file={data}"]
    subprocess.run([*run, "combine", "-q", *common], check=True, cwd=ROOT)
    subprocess.run([*run, "json", "-q", "-o", found, *common], check=True, cwd=ROOT)
    covered = {}
    for file, one in json.loads(found.read_text())["files"].items():
        total = one["summary"]
        covered[file] = Covered(total["num_statements"], total["covered_lines"], total["num_branches"],
                                total["covered_branches"], {file: one["missing_lines"]})  # fmt: skip
    return covered


def main(build: str) -> int:
    folders: dict[str, Covered] = collections.defaultdict(Covered)
    total = Covered()
    for file, covered in (of_cpp(Path(build).resolve()) | of_python(Path(build).resolve())).items():
        if file in NEED_A_GPU:
            continue
        folders[folder_of(file)].add(covered)
        total.add(covered)
    print("lines that no test ran:")
    for file, lines in sorted(total.missed.items()):
        if lines:
            print(f"| {file}: {ranges(lines)}")
    print(f"{'folder':28}{'lines':>8}{'run':>9}{'branches':>10}{'run':>9}")
    for name, one in [*sorted(folders.items()), ("all", total)]:
        print(f"{name:28}{one.lines:8d} {share(one.lines_run, one.lines)}{one.branches:10d} {share(one.branches_run, one.branches)}")
    print(f"left out, because none of their code runs without a GPU: {', '.join(NEED_A_GPU)}")
    enough = 100 * total.lines_run >= LEAST * total.lines
    print(f"{share(total.lines_run, total.lines).strip()} of the lines ran; at least {LEAST:g} % are required")
    return 0 if enough else 1


sys.exit(main(*sys.argv[1:]))
