"""Every header compiles alone. The linker enforces which layer may use which: see cmake/FeedrateLayer.cmake."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ["common", "kernels", "libraries", "variants", "experiments"]
SOURCES = {".cpp", ".hpp", ".cu", ".cuh", ".inc"}


def sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in SOURCES)


def includes(file: Path) -> list[str]:
    return re.findall(r'^\s*#include "([^"]+)"', file.read_text(encoding="utf-8"), flags=re.MULTILINE)


def build_folder() -> Path | None:
    """The build folder whose generated headers are used."""
    for candidate in (os.environ.get("FEEDRATE_BUILD_DIR"), ROOT / "build/tests", ROOT / "build/release", ROOT / "build/cpu-only"):
        if candidate and (Path(candidate) / "generated/features.hpp").is_file():
            return Path(candidate)
    return None


def unproven_headers() -> list[Path]:
    """Headers that no source includes first: the build does not show whether they compile alone."""
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
    flags += [f"-I{ROOT / 'libraries/ring/include'}", f"-I{ROOT / 'libraries/tensors/include'}", f"-isystem{ROOT / '.deps/usr/include'}"]
    flags += [f"-isystem{build / 'generated/cuda' / name}" for name in ("toolkit", "NVTX", "CUPTI")]

    def wrong(header: Path) -> str:
        ran = subprocess.run(["g++", *flags, header], capture_output=True, text=True, check=False)
        return "" if ran.returncode == 0 else f"{header}: {ran.stderr[:400]}"

    # Headers that need the CUDA toolkit are checked only if it is installed.
    cuda = (build / "generated/cuda/toolkit").exists()
    headers = [header for header in unproven_headers() if cuda or "cuda" not in header.name]
    if "LONG_TESTS" not in os.environ:
        headers = headers[::8]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        assert [text for text in pool.map(wrong, headers) if text] == []
