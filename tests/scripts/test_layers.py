"""Who may know whom: common <- kernels <- variants <- experiments, and the harness knows no experiment."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ["common", "kernels", "variants", "experiments"]
SOURCES = {".cpp", ".hpp", ".cu", ".cuh", ".inc"}
# Rooms of experiments/ that belong to one experiment; the others are the harness.
EXPERIMENTS = sorted({path.parent.name for path in (ROOT / "experiments").glob("*/*.cpp")
                      if "ExperimentRegistration registered" in path.read_text(encoding="utf-8")})
# Commands that are of one experiment by their nature: a worker of its queues, its floors.
OF_FEEDING = {"experiments/cli/command_worker.cpp", "experiments/cli/command_floors.cpp"}


def sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in SOURCES)


def includes(file: Path) -> list[str]:
    return re.findall(r'^\s*#include "([^"]+)"', file.read_text(encoding="utf-8"), flags=re.MULTILINE)


def wrong_includes(root: Path = ROOT) -> list[str]:
    """Includes that point outwards, or from the harness to an experiment."""
    found = []
    for place, layer in enumerate(LAYERS):
        for file in sources(root / layer):
            name = file.relative_to(root).as_posix()
            for include in includes(file):
                first = include.split("/")[0]
                if first in LAYERS and LAYERS.index(first) > place:
                    found.append(f"{name}: {include}")
                room = include.split("/")[1] if first == "experiments" else ""
                own = name.startswith(f"experiments/{room}/")
                if room in EXPERIMENTS and not own and name not in OF_FEEDING:
                    found.append(f"{name}: {include}")
    return found


def test_no_include_points_outwards():
    assert wrong_includes() == []


def test_an_include_that_points_outwards_is_found(tmp_path):
    for layer in LAYERS:
        (tmp_path / layer).mkdir()
    (tmp_path / "common" / "a.hpp").write_text('#include "variants/queue.hpp"\n')
    (tmp_path / "experiments" / "sweep").mkdir()
    (tmp_path / "experiments" / "sweep" / "b.cpp").write_text('#include "experiments/feeding/load.hpp"\n')
    assert len(wrong_includes(tmp_path)) == 2


def build_folder() -> Path | None:
    """Where the tests that run this were built: its generated headers are needed."""
    for candidate in (os.environ.get("FEEDRATE_BUILD_DIR"), ROOT / "build/tests", ROOT / "build/release", ROOT / "build/cpu-only"):
        if candidate and (Path(candidate) / "generated/features.hpp").is_file():
            return Path(candidate)
    return None


def unproven_headers() -> list[Path]:
    """Headers that no source includes first: whether these stand alone is not shown by the build."""
    first = set()
    for layer in LAYERS:
        for file in sources(ROOT / layer):
            if file.suffix in {".cpp", ".cu"} and (own := includes(file)):
                first.add(own[0])
    headers = [file for layer in LAYERS for file in sources(ROOT / layer) if file.suffix == ".hpp"]
    return [file for file in headers if file.relative_to(ROOT).as_posix() not in first]


def test_every_header_compiles_alone():
    build = build_folder()
    if build is None:
        pytest.skip("no build folder with generated headers")
    flags = ["-std=c++20", "-fsyntax-only", "-w", "-x", "c++", f"-I{ROOT}", f"-I{build / 'generated'}"]
    flags += [f"-I{ROOT / 'variants/ring/include'}", f"-I{ROOT / 'variants/tensors/include'}", f"-isystem{ROOT / '.deps/usr/include'}", "-DFMT_HEADER_ONLY=1"]
    flags += [f"-isystem{build / 'generated/cuda' / name}" for name in ("toolkit", "NVTX", "CUPTI")]

    def wrong(header: Path) -> str:
        ran = subprocess.run(["g++", *flags, header], capture_output=True, text=True, check=False)
        return "" if ran.returncode == 0 else f"{header}: {ran.stderr[:400]}"

    # What needs the toolkit's headers stands alone where there is one.
    cuda = (build / "generated/cuda/toolkit").exists()
    headers = [header for header in unproven_headers() if cuda or "cuda" not in header.name]
    if "FEEDRATE_LONG_TESTS" not in os.environ:
        headers = headers[::4]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        assert [text for text in pool.map(wrong, headers) if text] == []
