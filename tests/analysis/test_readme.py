"""README's figures come from rows by a command, the same each time."""

import re

import pytest
import rows

from analysis.__main__ import main
from analysis.feeding.plots import CLOSED

TEXT = "# Feedrate\n\n<!-- figures:begin -->\nold\n<!-- figures:end -->\n\nThe rest.\n"


@pytest.fixture(scope="module")
def figures(tmp_path_factory, reported):
    """The figures as the command exports them. Only to be read."""
    folder = tmp_path_factory.mktemp("exported") / "figures"
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
