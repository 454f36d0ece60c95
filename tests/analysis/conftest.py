"""Makes `analysis` importable, caches committed results, and defines shared fixtures and helpers."""

import gc
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = "results/reference"  # relative to the repository's root, in which tests run
sys.path.insert(0, str(ROOT))

import analysis.load as loading  # noqa: E402  (needs the path above)


def once(load_all: Callable) -> Callable:
    """Wraps `load_all` to load each committed folder only once. Must be installed before other modules import it."""
    kept: dict[tuple[str, ...], dict] = {}

    def loaded(directories, argument="DIR"):
        paths = tuple(map(str, directories))
        if not all(path.startswith(f"{REFERENCE}/") for path in paths):
            return load_all(paths, argument)
        if paths not in kept:
            kept[paths] = load_all(paths, argument)
            gc.freeze()  # keeps later garbage collections from scanning the cached results
        return kept[paths]

    return loaded


loading.load_all = once(loading.load_all)

import rows  # noqa: E402

from analysis import figures, needs, sections  # noqa: E402
from analysis.__main__ import main  # noqa: E402
from analysis.plots import comparison  # noqa: E402
from analysis.plots.style import Drawing  # noqa: E402
from analysis.report import write_report  # noqa: E402

needs.complaint = cache(needs.complaint)  # every command looks for the same packages


@pytest.fixture(scope="session", autouse=True)
def at_the_root() -> None:
    os.chdir(ROOT)
    gc.freeze()  # also excludes modules from garbage collections
    gc.set_threshold(50_000, 20, 100)


def committed(folder: str, experiment: str = "feeding") -> loading.Results:
    return loading.load([f"{REFERENCE}/{folder}"], experiment=experiment)


@pytest.fixture
def figureless(monkeypatch) -> None:
    """Makes reports and comparisons without figures, which take most of the time."""
    nothing = lambda *_, **__: []  # noqa: E731
    without = SimpleNamespace(of=lambda name: replace(sections.of(name), draw=nothing))
    monkeypatch.setattr("analysis.report.sections", without)
    monkeypatch.setattr("analysis.blocks.sections", without)
    monkeypatch.setattr(comparison, "draw", lambda *_, **__: Drawing("compare", "", "", None, "not drawn"))


@pytest.fixture
def folder(tmp_path) -> Callable[..., Path]:
    """A function that writes rows, or lists of rows, into a result folder."""

    def write(*some, name: str = "some", catalogue: dict | None = rows.CATALOGUE) -> Path:
        every = [row for one in some for row in (one if isinstance(one, list) else [one])]
        return rows.write(tmp_path / name, every, catalogue)

    return write


@pytest.fixture
def read(folder) -> Callable[..., loading.Results]:
    """A function that writes rows and loads them."""

    def write_and_load(*some, experiment: str = "feeding", **options) -> loading.Results:
        return loading.load([folder(*some, **options)], experiment=experiment)

    return write_and_load


def report(*directories, out: Path | None = None) -> str:
    """Makes the report; returns report.md."""
    assert main(["report", *map(str, directories), *(["--out", str(out)] if out else [])]) == 0
    return ((out or directories[0]) / "report.md").read_text()


def lines(text: str, start: str = "| ") -> list[list[str]]:
    """The cells of the table lines that begin with `start`."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith(start)]


def dictionaries(table) -> list[dict]:
    """The lines of a table as dictionaries by column."""
    return [dict(zip(table.columns, row)) for row in table.rows]


@pytest.fixture(scope="session")
def full_report(tmp_path_factory) -> SimpleNamespace:
    """The report of a run with every figure of closed loads, open loads and capacities, as HTML and as Markdown, with
    the drawings in both shapes. Only the broad shape is rendered, and only one figure also as PNG."""
    directory = rows.write(tmp_path_factory.mktemp("full") / "run", rows.every_figure())
    drawings, png, svg = [], figures._png, figures._svg

    def here(work, some):  # runs in this process; drawings of other processes would be lost
        drawings.extend(some)
        return [work(one) for one in some]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("analysis.figures.cores.on_all", here)
        patch.setattr(figures, "_png", lambda drawing: png(drawing) if drawing.name == "headline" else b"")
        patch.setattr(figures, "_svg", lambda drawing, shape: "<svg></svg>" if shape == "slim" else svg(drawing, shape))
        page = write_report([str(directory)], None, None)
    return SimpleNamespace(
        directory=directory, html=page.read_text(), md=page.with_suffix(".md").read_text(), drawings=drawings
    )
