"""How rows are read: compressed or not, each joined to its run, and their causes believed."""

import gzip
import lzma
import json
import re

import load_rows
import pytest
import rows
from conftest import ROOT
from test_report import report, with_rows

from analysis.__main__ import main
from analysis.feeding import open_load
from analysis.load import load

pytestmark = pytest.mark.usefixtures("undrawn")

CELLS = [rows.cell(rows.params(window=window), repetition) for window in (1, 64) for repetition in range(3)]


PACKERS = {"gz": gzip.compress, "xz": lzma.compress}


def pack(directory, ending: str, cut: int | None = None) -> None:
    """Compresses the rows of a folder; `cut`: all but so many bytes."""
    plain = directory / "rows.jsonl"
    packed = PACKERS[ending](plain.read_bytes())
    (directory / f"rows.jsonl.{ending}").write_bytes(packed[: None if cut is None else -cut])
    plain.unlink()


@pytest.mark.parametrize("command", [["report", "DIR"], ["compare", "DIR", "DIR"], ["aa", "DIR", "DIR"],
                                     ["figures", "DIR", "--out", "OUT"], ["ring", "DIR", "--out", "OUT"],
                                     ["export", "DIR", "--format", "hdr", "--out", "OUT"]], ids=lambda one: one[0])  # fmt: skip
def test_every_command_reads_compressed_rows(tmp_path, capsys, command):
    directory, places = with_rows(tmp_path, *CELLS), {"OUT": str(tmp_path / "out")}
    words = [places.get(word, word.replace("DIR", str(directory))) for word in command]
    assert main(words) == 0
    plain = capsys.readouterr().out
    for ending in PACKERS:
        for packed in directory.glob("rows.jsonl.*"):
            packed.unlink()
        with_rows(tmp_path, *CELLS)
        pack(directory, ending)
        assert main(words) == 0
        assert capsys.readouterr().out == plain, ending


@pytest.mark.parametrize("ending", PACKERS)
def test_one_archive_behind_the_other_is_read_whole(tmp_path, ending):
    directory = with_rows(tmp_path, *CELLS)
    lines = (directory / "rows.jsonl").read_bytes().splitlines(keepends=True)
    (directory / "rows.jsonl").unlink()
    half = len(lines) // 2
    packed = [PACKERS[ending](b"".join(part)) for part in (lines[:half], lines[half:])]
    (directory / f"rows.jsonl.{ending}").write_bytes(b"".join(packed))
    results = load([directory])
    assert len(results.cells) == len(CELLS) and not any("cut off" in note for note in results.notes)


def test_plain_rows_win_where_both_are(tmp_path):
    """A sweep that goes on appends to them."""
    directory = with_rows(tmp_path, *CELLS)
    (directory / "rows.jsonl.gz").write_bytes(b"not even compressed")
    assert len(load([directory]).cells) == len(CELLS)


@pytest.mark.parametrize("ending", PACKERS)
def test_compressed_rows_that_are_cut_off_are_read_as_far_as_they_go(tmp_path, ending):
    directory = with_rows(tmp_path, *CELLS)
    pack(directory, ending, cut=500)
    results = load([directory])
    assert 0 < len(results.cells) < len(CELLS)
    assert any("cut off or damaged" in note for note in results.notes)


def test_floors_that_were_read_again_are_those_of_their_last_row(tmp_path):
    """The run's row has what was known when it began."""
    here = rows.cell(rows.params())
    first, last = rows.floor("word_round_trip_ns", 1800.0), rows.floor("word_round_trip_ns", 1700.0)
    other = rows.floor("word_round_trip_ns", 900.0, device="cpu") | {"id": "other"}
    results = load([with_rows(tmp_path, first, other, here, last)])
    assert list(results.cells["floors"]) == [rows.FLOORS | {"word_round_trip_ns": 1700.0}]


def test_rows_have_their_runs_floors_settings_and_environment(tmp_path):
    here, there = rows.cell(rows.params()), rows.cell(rows.params(window=1))
    rows.rerun(here, where=rows.environment(revision="aaaa"), floors={"launch_sync_ns": 1.0})
    rows.rerun(there, where=rows.environment(revision="bbbb"), settings={"seconds": 9.0})
    results = load([with_rows(tmp_path, here, there)])
    assert [one["revision"] for one in results.environments] == ["aaaa", "bbbb"]
    assert list(results.cells["floors"]) == [{"launch_sync_ns": 1.0}, rows.FLOORS]
    assert results.runs == [rows.SETTINGS, {"seconds": 9.0}]
    text = report(tmp_path / "some")
    assert "these facts differ: revision." in text and "seconds 9.0" in text


def test_a_run_may_stand_behind_its_rows(tmp_path):
    directory = with_rows(tmp_path, *CELLS)
    run, *rest = (directory / "rows.jsonl").read_text().splitlines()
    (directory / "rows.jsonl").write_text("\n".join([*rest, run]) + "\n")
    results = load([directory])
    assert results.environments[0]["host"] == "node-7" and not results.notes


def test_rows_without_their_run_are_read_and_it_is_said(tmp_path):
    directory = with_rows(tmp_path, *CELLS)
    rest = (directory / "rows.jsonl").read_text().splitlines()[1:]
    (directory / "rows.jsonl").write_text("\n".join(rest) + "\n")
    assert "6 row(s) name a run that is not in the file: where they ran is not known" in report(directory)


def test_runs_of_one_id_in_two_folders_are_each_their_own(tmp_path):
    sides = []
    for name, host in (("a", "one"), ("b", "two")):
        directory = rows.write(tmp_path / name, [rows.cell(rows.params())])
        text = (directory / "rows.jsonl").read_text().replace('"node-7"', f'"{host}"')
        (directory / "rows.jsonl").write_text(text)
        sides.append(directory)
    assert [one["host"] for one in load(sides).environments] == ["one", "two"]


def test_buckets_by_steps_are_those_by_index(tmp_path):
    plain, other = rows.cell(rows.params()), rows.cell(rows.params())
    told = other["figures"]["latency_ns"]["histogram"]
    index = told.pop("index")
    told["steps"] = [here - before for before, here in zip([0, *index], index)]
    logs = []
    for name, row in (("index", plain), ("steps", other)):
        out = tmp_path / f"{name}_logs"
        directory = rows.write(tmp_path / name, [row])
        assert main(["export", str(directory), "--format", "hdr", "--out", str(out)]) == 0
        logs.append([file.read_text() for file in out.iterdir()])
    assert logs[0] == logs[1]


REASONS = ["", "driver-bound: 97 %", "generator: too late", "disturbed: a neighbour", "anything"]


@pytest.mark.parametrize("reason", REASONS)
def test_causes_count_and_reasons_are_only_shown(tmp_path, reason):
    """Each row as its cause says, whatever its reason begins with."""
    windows = {"driver_bound": 2, "disturbed": 1, "error": 3}  # what was disturbed has a good repetition beside it
    some = [
        rows.spoilt(rows.cell(rows.params(window=window), repetition=1), cause, reason or "because")
        for cause, window in windows.items()
    ]
    text = report(with_rows(tmp_path, rows.cell(rows.params(window=1)), *some))
    assert "1 of 4 repetitions were disturbed" in text
    assert "at least" in text.partition("## What was measured")[0]


def test_a_late_generator_is_known_by_its_cause(tmp_path):
    late = load_rows.late(load_rows.params()) | {"reason": "zu spät"}
    (point,) = open_load.points(load([with_rows(tmp_path, late)])).to_dict("records")
    assert point["generator"] == 1 and point["flags"] == {"late_generator": 1}
    other = rows.spoilt(load_rows.cell(load_rows.params()), "error", "generator: not at all")
    assert open_load.points(load([with_rows(tmp_path, other)])).empty


def test_no_reason_is_parsed():
    """What a row says to people is shown, and nothing more: programs have the cause."""
    for file in (ROOT / "analysis").rglob("*.py"):
        assert not re.search(r"reason\W+(str\.)?(startswith|contains|match)", file.read_text()), file


def test_a_catalogue_of_every_folder_is_needed(tmp_path, capsys):
    good, bare = rows.write(tmp_path / "good", CELLS), rows.write(tmp_path / "bare", CELLS, None)
    assert main(["report", str(good), str(bare)]) == 2
    error = capsys.readouterr().err
    assert f"DIR '{bare}'" in error and "catalogue.json" in error and "feedrate list --json" in error


def test_what_a_later_catalogue_adds_is_known(tmp_path):
    told = json.loads(json.dumps(rows.CATALOGUE))
    figure = {"name": "watts", "unit": "W", "better": "lower", "distribution": False, "headline": True}
    told["experiments"][0]["figures"].append(figure)
    row = rows.cell(rows.params(window=2))
    row["figures"]["watts"] = 231.0
    first, second = rows.write(tmp_path / "a", CELLS), rows.write(tmp_path / "b", [row], told)
    assert "lowest watts" in report(first, second, out=tmp_path / "out")
