"""README's figures come from rows by a command, the same each time, and every published block is held to its rows."""

import re

import pytest
import rows

from conftest import ROOT, without_rendering
from test_reference import BLOCKS

from analysis.__main__ import main
from analysis.feeding.plots import CLOSED

TEXT = "# Feedrate\n\n<!-- figures:begin -->\nold\n<!-- figures:end -->\n\nThe rest.\n"


@pytest.fixture(scope="module")
def figures(tmp_path_factory, reported):
    """The figures as the command exports them. Only to be read."""
    folder = tmp_path_factory.mktemp("exported") / "figures"
    with without_rendering():
        assert main(["figures", str(reported), "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def readme(tmp_path):
    path = tmp_path / "README.md"
    path.write_text(TEXT)
    return path


def test_figures_exports_pngs_and_the_headline(figures):
    names = {file.name for file in figures.iterdir()}
    assert names == {"headline.md", *(f"{figure.NAME}.png" for figure in CLOSED)}
    assert "| gpu_ring |" in (figures / "headline.md").read_text()


def test_block_is_rewritten_and_the_rest_left_alone(reported, figures, readme):
    assert main(["readme", str(reported), str(readme), "--figures", str(figures)]) == 0
    text = readme.read_text()
    assert text.startswith("# Feedrate\n\n<!-- figures:begin -->\n")
    assert text.endswith("<!-- figures:end -->\n\nThe rest.\n")
    assert "old" not in text and "| gpu_ring |" in text
    linked = re.findall(r"]\((\S+\.png)\)", text)
    assert len(linked) == len(CLOSED) and all((readme.parent / link).is_file() for link in linked)


def test_second_time_changes_nothing(reported, figures, readme):
    arguments = ["readme", str(reported), str(readme), "--figures", str(figures)]
    main(arguments)
    first = readme.read_text()
    assert main(arguments) == 0
    assert readme.read_text() == first


def test_check_writes_nothing_and_tells_by_its_exit_code(reported, figures, readme, capsys):
    arguments = ["readme", str(reported), str(readme), "--figures", str(figures)]
    assert main([*arguments, "--check"]) == 1
    assert readme.read_text() == TEXT
    assert str(readme) in capsys.readouterr().err
    main(arguments)
    assert main([*arguments, "--check"]) == 0


def test_other_rows_fail_the_check(run, figures, readme, sweep):
    arguments = ["readme", str(run), str(readme), "--figures", str(figures)]
    main(arguments)
    rows.write(run, [row for row in sweep if row.get("params", {}).get("queue") != "gpu_ring"])
    assert main([*arguments, "--check"]) == 1


# What no rows make: `feedrate list --markdown`, held to the catalogue by tests/cli/experiments_test.cpp.
OF_THE_PROGRAM = {("experiments/README.md", "axes")}
MEASURED = re.compile(r"\d[\d.]* (?:[kMG]? ?msg/s|[kMGT]?B/s|[nµm]s)(?![\w/])")


def published() -> set[tuple[str, str]]:
    """Every generated block of every page of the repository, as (page, block)."""
    found = set()
    for page in ROOT.rglob("*.md"):
        inside = page.relative_to(ROOT)
        own = not any(part.startswith(".") or part == "build" for part in inside.parts)
        fresh = inside.parts[0] == "results" and inside.parts[1] not in ("README.md", "reference")
        if own and not fresh:
            text = page.read_text(encoding="utf-8")
            found |= {(str(inside), name) for name in re.findall(r"^<!-- (\w+):begin -->$", text, re.MULTILINE)}
    return found


def held_to_rows() -> set[tuple[str, str]]:
    """What test_reference.py checks against committed rows."""
    found = set()
    for arguments in BLOCKS.values():
        words = list(map(str, arguments))
        page = next(word for word in words if word.endswith(".md"))
        name = {"readme": "figures", "ring": "axes", "beside": "nsys", "store": "costs"}.get(words[0], words[0])
        if "--block" in words:
            name = words[words.index("--block") + 1]
        found.add((str((ROOT / page).relative_to(ROOT)), name))
    return found


def test_every_published_block_is_held_to_its_rows():
    # tests/scripts/test_pages.py holds the other three to theirs.
    h100 = "results/reference/h100/README.md"
    elsewhere = {("python/README.md", "python"), (h100, "planted"), (h100, "separate")}
    assert published() - OF_THE_PROGRAM - elsewhere == held_to_rows()


def test_every_figure_of_the_readme_is_quoted_from_a_block():
    """tests/scripts/test_pages.py holds what is quoted to the page that it names, and that page is generated."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rest = re.sub(r"<!-- quoted: \S+ -->.*?<!-- /quoted -->", "", text, flags=re.DOTALL)
    assert MEASURED.search(text) and MEASURED.findall(rest) == []


def test_the_readme_says_which_variants_it_leaves_out():
    """Of those that stand in the table that it quotes from."""

    def variants(page: str, begin: str, end: str) -> list[str]:
        text = (ROOT / page).read_text(encoding="utf-8")
        _, _, *names = re.findall(r"^\|([^|]+)\|", text[text.index(begin) : text.index(end)], re.MULTILINE)
        return [name.strip() for name in names]

    shown = variants("README.md", "<!-- quoted: ", "<!-- /quoted -->")
    measured = variants("results/reference/h200/README.md", "<!-- figures:begin -->", "<!-- figures:end -->")
    deliver = [name for name in measured if not name.startswith("null")]
    assert set(deliver) - set(shown) == {"redis_list + pinned", "redis_stream + pinned"} and set(shown) <= set(deliver)
    assert (len(shown), len(deliver), len(measured)) == (8, 10, 11)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "Eight of the ten variants that deliver (not Redis + pinned)" in text


def test_a_changed_figure_is_noticed(tmp_path, monkeypatch, capsys):
    """That the check of a published block can fail: one digit of the page is another."""
    monkeypatch.chdir(ROOT)
    page = tmp_path / "page.md"
    text = (ROOT / "experiments/launch/README.md").read_text(encoding="utf-8")
    arguments = ["readme", "results/reference/h200/launch", str(page), "--block", "best", "--check"]
    page.write_text(text, encoding="utf-8")
    assert main(arguments) == 0
    begin = text.index("<!-- best:begin -->")
    place = text.index("M kernels/s", begin) - 2
    page.write_text(text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :], encoding="utf-8")
    assert main(arguments) == 1 and "'best'" in capsys.readouterr().err
