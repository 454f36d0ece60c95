"""README's figures: every number in README comes from result rows through here."""

import os
import sys
from pathlib import Path

from . import stats, tables
from .document import markdown_table
from .errors import BadInput
from .figures import write_pngs
from .load import Results, load
from .plots import ALL, draw_all
from .report import device_warning, headline_note, where_line

BEGIN, END = "<!-- figures:begin -->", "<!-- figures:end -->"


def write_figures(directory: str, out: str) -> list[Path]:
    """Writes the PNGs and headline.md; returns their paths."""
    results = load([directory])
    target = Path(out)
    target.mkdir(parents=True, exist_ok=True)
    headline = target / "headline.md"
    headline.write_text(headline_text(results) + "\n", encoding="utf-8")
    return [*write_pngs(draw_all(results), target), headline]


def headline_text(results: Results) -> str:
    """The headline table of each workload in Markdown, with what was measured where."""
    measured = stats.points(results)
    warning = device_warning(results)
    parts = [f"**{warning}**"] if warning else []
    for work in sorted(results.cells["work"].unique(), key=lambda work: (work != "echo", work)):
        parts += [f"Workload {work}:", markdown_table(tables.headline(results, measured, work))]
    return "\n\n".join([*parts, headline_note(results, measured), where_line(results)])


def update_readme(directory: str, readme: str, figures: str | None, check: bool) -> int:
    """Rewrites the block between the markers, or with `check` only says whether it would. Returns the exit code."""
    path = Path(readme)
    if not path.is_file():
        raise BadInput("README.md", readme, "no such file", f"a file with the lines {BEGIN} and {END}")
    text = path.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise BadInput(
            "README.md", readme, "lacks the markers", f"a file with the lines {BEGIN} and {END}, in this order"
        )
    updated = f"{before}{BEGIN}\n{_block(directory, path, figures)}\n{END}{after}"
    if updated == text:
        return 0
    if check:
        print(f"{readme}: the figures' block is not what the rows of {directory} give", file=sys.stderr)
        return 1
    path.write_text(updated, encoding="utf-8")
    print(path)
    return 0


def _block(directory: str, readme: Path, figures: str | None) -> str:
    results = load([directory])
    folder = Path(figures or directory)
    pictures = [
        (figure.TITLE, folder / f"{figure.NAME}.png") for figure in ALL if (folder / f"{figure.NAME}.png").is_file()
    ]
    if not pictures:
        raise BadInput(
            "--figures",
            folder,
            "holds no figure",
            f"a folder that `python -m analysis figures {directory} --out {folder}` has filled",
        )
    links = [f"![{title}]({Path(os.path.relpath(picture, readme.parent)).as_posix()})" for title, picture in pictures]
    return "\n\n".join([headline_text(results), *links])
