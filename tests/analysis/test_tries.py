"""Tries of a search for the best settings: counted in one line, and in no table, figure or comparison."""

import json

import pytest
import rows
from test_report import report, with_rows

from analysis.__main__ import main
from analysis.load import load

pytestmark = pytest.mark.usefixtures("undrawn")

CELLS = [rows.cell(rows.params(window=window), repetition) for window in (1, 64) for repetition in (0, 1)]
TRIES = [rows.attempt(rows.params(window=window, doorbells=4), window) for window in (1, 64, 256)]


def without_where(text: str, directory) -> str:
    return text.replace(str(directory), "").replace(directory.name, "")


def test_the_report_is_the_same_but_for_one_line(tmp_path):
    texts = []
    for name, some in (("bare", CELLS), ("tried", [*TRIES, *CELLS])):
        directory = rows.write(tmp_path / name, some)
        texts.append([line for line in without_where(report(directory), directory).splitlines() if line])
    bare, tried = texts
    (line,) = [line for line in tried if line not in bare]
    assert "3 short tries, which took 750 ms" in line
    assert [other for other in tried if other != line] == bare


def test_tries_are_no_cells_and_bring_no_axis(tmp_path):
    results = load([with_rows(tmp_path, *CELLS, *TRIES)])
    assert len(results.cells) == len(CELLS) and "doorbells" not in results.axes
    assert results.tries == [0.25] * 3


def test_no_comparison_matches_a_try(tmp_path, capsys):
    sides = [rows.write(tmp_path / name, [*CELLS, *TRIES]) for name in "ab"]
    assert main(["compare", *map(str, sides), "--out", str(tmp_path)]) == 0
    assert "2 points matched" in capsys.readouterr().out


def test_no_export_holds_a_try(tmp_path):
    directory, out = with_rows(tmp_path, *CELLS, *TRIES), tmp_path / "out.json"
    assert main(["export", str(directory), "--format", "google-benchmark", "--out", str(out)]) == 0
    names = {entry["name"] for entry in json.loads(out.read_text())["benchmarks"]}
    assert names and not any("doorbells" in name for name in names)


def test_only_tries_are_no_result(tmp_path, capsys):
    assert main(["report", str(with_rows(tmp_path, *TRIES))]) == 2
    assert "no cell row but tries of a search" in capsys.readouterr().err


def test_a_try_is_a_valid_row(schema):
    schema.validate(rows.attempt(rows.params()))


@pytest.mark.parametrize("key", ["variant", "goal", "rung", "try"])
def test_a_try_without_its_place_is_not(schema, key):
    row = rows.attempt(rows.params())
    del row["search"][key]
    assert not schema.is_valid(row)


@pytest.mark.parametrize("wrong", [{"goal": ""}, {"rung": -1}, {"try": 0.5}, {"variant": ""}])
def test_a_try_with_a_wrong_place_is_not(schema, wrong):
    assert not schema.is_valid(rows.attempt(rows.params(), **wrong))
