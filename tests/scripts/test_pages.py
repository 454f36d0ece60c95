"""Tests of the Markdown pages: the README is short, links have targets, and examples match their sources."""

import importlib.util
import re
from collections import defaultdict
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).resolve().parents[2]
MADE = {"build", "__pycache__"}  # folders without our own pages, as are folders whose names start with a dot
MOST_LINES, MOST_COLUMNS = 120, 120


def pages(root: Path = ROOT) -> list[Path]:
    """Every Markdown file in the repository; of the results, only the published ones."""
    found = []
    for path in sorted(root.rglob("*.md")):
        folders = path.relative_to(root).parts[:-1]
        fresh = folders[:1] == ("results",) and len(folders) > 1 and folders[1] != "reference"
        if not fresh and not any(folder in MADE or folder.startswith(".") for folder in folders):
            found.append(path)
    return found


def written(lines: list[str]) -> list[str]:
    """The lines written by hand. Lines in generated blocks are left out, because their tables may be wide."""
    kept, generated = [], ""
    for line in lines:
        if begin := re.fullmatch(r"<!-- (\w+):begin -->", line):
            generated = begin[1]
        if not generated:
            kept.append(line)
        if line == f"<!-- {generated}:end -->":
            generated = ""
    return kept


def links(text: str) -> list[str]:
    """The targets of links and images."""
    return re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", _without_fences(text))


def _without_fences(text: str) -> str:
    return re.sub(r"^( *)```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """GitHub's anchors of the headings: lower case, dashes for spaces, no punctuation, repeated names numbered."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#+ +(.+?) *$", _without_fences(text), flags=re.MULTILINE):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
        number = found.get(name, -1) + 1
        found[name] = number
        if number:
            found[f"{name}-{number}"] = 0
    return set(found)


def broken(page: Path) -> list[str]:
    """Relative links on the page whose target file or heading does not exist."""
    errors = []
    for link in links(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z][a-z+.-]*:", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists():
            errors.append(f"{link}: no such file")
        elif anchor and (target.suffix != ".md" or anchor not in anchors(target.read_text(encoding="utf-8"))):
            errors.append(f"{link}: no such heading")
    return errors


def specs_without_line(page: str, names: list[str]) -> list[str]:
    """The specs without a table row that starts with their name."""
    return [name for name in names if not re.search(rf"^\| `{re.escape(name)}` \|", page, flags=re.MULTILINE)]


def test_readme_is_short():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MOST_LINES
    assert [line for line in written(lines) if len(line) > MOST_COLUMNS] == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_a_target(page):
    assert broken(page) == []


def test_every_spec_is_explained():
    names = [path.stem for path in (ROOT / "experiments/specs").glob("*.json")]
    assert names
    assert specs_without_line((ROOT / "experiments/reference.md").read_text(encoding="utf-8"), names) == []


@pytest.mark.parametrize(
    ("page", "quoted"),
    [
        ("experiments/reference.md", "experiments/specs/example.json"),
        ("variants/README.md", "tests/example/handoff_queue.cpp"),
    ],
)
def test_examples_are_quoted_verbatim(page, quoted):
    example = (ROOT / quoted).read_text(encoding="utf-8")
    assert f"\n{example}```" in (ROOT / page).read_text(encoding="utf-8")
    assert len(example.splitlines()) <= 60


# --- tests that show that the tests above can fail


def test_generated_lines_are_left_out():
    lines = ["one", "<!-- answer:begin -->", "long", "<!-- other:end -->", "<!-- answer:end -->", "two"]
    assert written(lines) == ["one", "two"]


def test_broken_link_is_detected(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/other.md").write_text("# A heading, with `code`\n## Twice\n## Twice\n```\n# no heading\n```\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[good](sub/other.md) [file](sub/none.md) [web](https://example.org/none)\n"
        "[heading](sub/other.md#a-heading-with-code) [second](sub/other.md#twice-1) [none](sub/other.md#no-heading)\n"
        "# Here\n[here](#here) [nowhere](#nowhere) ![picture](none.png) [`code`](sub/code.md)\n"
        "```\n[in code](none.md)\n```\n"
    )
    assert broken(page) == [
        "sub/none.md: no such file",
        "sub/other.md#no-heading: no such heading",
        "#nowhere: no such heading",
        "none.png: no such file",
        "sub/code.md: no such file",
    ]


def test_pages_omits_generated_files(tmp_path):
    kept = ["README.md", "analysis/a.md", "results/README.md", "results/reference/x/README.md"]
    for name in [*kept, "results/20260131T080000Z-quick/report.md", ".venv/lib/x.md", "build/release/y.md"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [str(page.relative_to(tmp_path)) for page in pages(tmp_path)] == sorted(kept)


def test_spec_without_a_table_row_is_detected():
    assert specs_without_line("| `quick` | x |\ntext `load`\n", ["quick", "load"]) == ["load"]


def test_far_server_prose_matches_the_rows():
    spec = importlib.util.spec_from_file_location("far_server", ROOT / "tests/trials/far_server.py")
    far_server = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(far_server)
    rows = {way: far_server.rows_of(ROOT / "results/reference/h200/far_server", way) for way in far_server.WAYS}
    found = {way: {key: median(each.values()) for key, each in far_server.figures_of(rows[way]).items()} for way in rows}
    many, lone = ([key for key in found["far"] if key[2] is alone] for alone in (False, True))
    kept = {key: float(far_server.ratio(*(far_server.figures_of(rows[way])[key] for way in ("far", "wire"))).split()[0])
            for key in many}
    assert min(kept, key=kept.get) == ("redis_list", 64, False)
    assert all(found["wire"][key] > found["near"][key] for key in lone)
    ratios = {}
    for way in ("far", "near"):
        bounds = defaultdict(list)
        for row in rows[way]:
            if row["kind"] == "cell" and row["status"] == "ok" and row["params"]["window"] == 1:
                asked = row["params"]
                bounds[asked["queue"], asked["payload_bytes"]].append(row["bounds"]["latency_ns"]["ratio"])
        ratios[way] = [median(each) for each in bounds.values()]
    assert 1 < min(ratios["far"]) and max(ratios["far"]) < min(ratios["near"])
