"""Bad input: exit code 2, and a message that names the argument, its value and what is allowed."""

import json
import subprocess
import sys

import pytest
import rows
from conftest import ROOT

from analysis.__main__ import main

GOOD = rows.cell(rows.params())


@pytest.fixture
def place(tmp_path):
    """A folder with one directory for each way to be wrong, and a good one."""
    for name, some in {
        "good": [GOOD],
        "no-rows": [],
        "floors-only": [rows.floor("launch_sync_ns", 6200.0)],
        "version-1": [GOOD, GOOD | {"schema": 1}],
        "version-3": [GOOD, GOOD | {"schema": 3}],
        "no-version": [{"kind": "cell"}],
        "no-object": [[1, 2]],
        "no-experiment": [{key: value for key, value in GOOD.items() if key != "experiment"}],
        "other-kind": [GOOD | {"kind": "cel"}],
        "no-params": [{key: value for key, value in GOOD.items() if key != "params"}],
        "other-status": [GOOD | {"status": "fine"}],
        "other-points": [rows.cell(rows.params(window=3))],
    }.items():
        rows.write(tmp_path / name, some)
    rows.write(tmp_path / "bare", [GOOD], None)
    rows.write(tmp_path / "odd-catalogue", [GOOD], {"experiments": [{"figures": 1}]})
    (tmp_path / "not-packed").mkdir()
    (tmp_path / "not-packed/rows.jsonl.xz").write_text("{}")
    (tmp_path / "empty").mkdir()
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut/rows.jsonl").write_text(json.dumps(GOOD)[:100])
    (tmp_path / "README.md").write_text("no markers")
    (tmp_path / "MARKED.md").write_text("<!-- figures:begin --><!-- figures:end -->")
    (tmp_path / "reversed.md").write_text("<!-- figures:end --><!-- figures:begin -->")
    return tmp_path


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["report", "missing"], ["DIR", "missing", "no such directory", "allowed: a results directory"]),
        (["report", "good", "missing"], ["DIR", "missing", "no such directory"]),
        (["report", "empty"], ["DIR", "empty", "no rows.jsonl"]),
        (["report", "README.md"], ["DIR", "README.md", "no such directory"]),
        (["report", "no-rows"], ["DIR", "no-rows", "no complete row"]),
        (["report", "cut"], ["DIR", "cut", "no complete row"]),
        (["report", "floors-only"], ["DIR", "floors-only", "no cell row"]),
        (["report", "version-1"], ["DIR", "version-1", "rows.jsonl:3", "schema version 1", "allowed: 2", "c0046d7"]),
        (["report", "version-3"], ["DIR", "version-3", "rows.jsonl:3", "schema version 3", "allowed: 2"]),
        (["report", "bare"], ["DIR", "bare", "no catalogue.json", "feedrate list --json"]),
        (["compare", "good", "bare"], ["B", "bare", "no catalogue.json", "feedrate list --json"]),
        (["report", "odd-catalogue"], ["DIR", "odd-catalogue", "catalogue.json is no catalogue", "feedrate list --json"]),
        (["report", "no-experiment"], ["DIR", "no-experiment", "names no experiment"]),
        (["report", "not-packed"], ["DIR", "not-packed", "rows.jsonl.xz is not compressed"]),
        (["report", "no-version"], ["DIR", "no-version", "schema version None", "allowed: 2"]),
        (["report", "no-object"], ["DIR", "no-object", "schema version None"]),
        (["report", "other-kind"], ["DIR", "other-kind", "kind 'cel'", "allowed: run, cell, floor"]),
        (["report", "no-params"], ["DIR", "no-params", "no params"]),
        (["report", "other-status"], ["DIR", "status 'fine'", "allowed: ok, invalid, unsustainable, failed, skipped"]),
        (["compare", "missing", "good"], ["A", "missing", "no such directory"]),
        (["compare", "good", "missing"], ["B", "missing", "no such directory"]),
        (["compare", "good", "other-points"], ["B", "other-points", "shares no ok point", "equal params"]),
        (["figures", "missing", "--out", "out"], ["DIR", "missing"]),
        (["readme", "good", "missing.md"], ["README.md", "missing.md", "no such file"]),
        (["readme", "good", "README.md"], ["README.md", "lacks the markers", "figures:begin"]),
        (["readme", "good", "reversed.md"], ["README.md", "reversed.md", "lacks the markers"]),
        (["readme", "good", "MARKED.md"], ["--figures", "good", "holds no figure", "python -m analysis figures"]),
    ],
)
def test_message_and_exit_code(place, capsys, monkeypatch, arguments, said):
    monkeypatch.chdir(place)
    before = sorted(place.rglob("*"))
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert all(part in error for part in said), error
    assert sorted(place.rglob("*")) == before, "bad input must not leave files behind"


@pytest.mark.parametrize(
    "arguments", [[], ["report"], ["compare"], ["figures", "a"], ["report", "--odd"], ["plot"]]
)
def test_wrong_usage_exits_2(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "analysis", "report", "missing"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2 and done.stdout == "" and "no such directory" in done.stderr
    assert "Traceback" not in done.stderr
