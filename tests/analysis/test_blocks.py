"""Every generated block of every page equals the output of its command for the committed rows."""

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, main

BLOCK = re.compile(r"^<!-- (\w+):begin -->$.*?^<!-- \1:end -->$", re.DOTALL | re.MULTILINE)
# The executable makes this block, and tests/cli/experiments_test.cpp checks it.
ELSEWHERE = {("experiments/reference.md", "axes")}


def blocks(text: str) -> dict[str, str]:
    return {found[1]: found[0] for found in BLOCK.finditer(text)}


def published() -> dict[str, set[str]]:
    """The names of the generated blocks by page."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    pages = [page for page in listed or map(str, ROOT.rglob("*.md")) if (ROOT / page).is_file()]
    found = {str(page): set(blocks((ROOT / page).read_text(encoding="utf-8"))) for page in pages}
    return {page: names for page, names in found.items() if names - {one for where, one in ELSEWHERE if where == page}}


def examples(text: str) -> list[list[str]]:
    """The Python commands in a page's examples, as expanded by bash. The shell is restricted and finds no program, so
    it only runs the function that prints the commands."""
    fenced = re.findall(r"^ *```sh\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    script = "python() { printf '%s\\t' \"$@\"; echo; }\n" + "".join(f"(\n{one})\n" for one in fenced)
    script = script.replace(".venv/bin/python", "python")
    words = [shutil.which("bash"), "--restricted", "-c", script]
    listed = subprocess.run(words, env={"PATH": "/nowhere"}, capture_output=True, text=True).stdout
    return [line.rstrip("\t").split("\t") for line in listed.splitlines()]


@pytest.fixture(scope="module")
def mirror(tmp_path_factory) -> Path:
    """A copy of the committed results and of all pages with empty blocks."""
    folder = tmp_path_factory.mktemp("mirror")
    shutil.copytree(ROOT / "results/reference", folder / "results/reference")
    for page, names in published().items():
        text = (ROOT / page).read_text(encoding="utf-8")
        for name in names:
            if (page, name) not in ELSEWHERE:
                text = text.replace(blocks(text)[name], f"<!-- {name}:begin -->\n<!-- {name}:end -->")
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        (folder / page).write_text(text, encoding="utf-8")
    return folder


def run(words: list[str]) -> None:
    """Runs a command in this process, so that it shares the rows that other commands have loaded."""
    if words[:2] == ["-m", "analysis"]:
        main(words[2:])  # `ranks` may exit with 1: its page reports what a search missed
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit):
            runpy.run_path(str(ROOT / words[0]), run_name="__main__")


def test_spreads_of_ab_match_their_command(monkeypatch):
    monkeypatch.chdir(ROOT)
    commands = examples((ROOT / "results/reference/h200/ab/README.md").read_text(encoding="utf-8"))
    (words,) = [words for words in commands if "--spreads" in words]
    assert main([*words[2:], "--check"]) == 0


@pytest.mark.parametrize("page", published())
def test_blocks_match_their_commands(mirror, page, monkeypatch):
    monkeypatch.chdir(mirror)
    monkeypatch.setattr("analysis.feeding.ring.plots.draw_all", lambda results: [])  # test_figures.py draws them
    text = (ROOT / page).read_text(encoding="utf-8")
    for words in examples(text):
        if page in words:
            run(words)
    wanted, made = blocks(text), blocks((mirror / page).read_text(encoding="utf-8"))
    differing = [name for name in wanted if made[name] != wanted[name]]
    assert differing == [], "these blocks differ from the output of the page's commands"
