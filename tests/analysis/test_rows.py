"""Reading of rows: compressed and damaged files, runs and catalogues of rows, and the rows that count."""

import copy
import gzip
import json
import lzma
import re

import pytest
import rows
from conftest import ROOT, lines, main, report

from analysis.feeding import open_load
from analysis.load import load
from analysis.stats import points

pytestmark = pytest.mark.usefixtures("figureless")

CELLS = [rows.cell(rows.params(window=window), n) for window in (1, 64) for n in range(3)]
TRIES = [rows.attempt(rows.cell(rows.params(window=window, doorbells=4)), window) for window in (1, 64, 256)]
PACKERS = {"gz": gzip.compress, "xz": lzma.compress}


def pack(directory, ending: str, parts: int = 1, cut: int = 0) -> None:
    """Compresses the rows of a folder into concatenated archives, without the last `cut` bytes."""
    plain = directory / "rows.jsonl"
    each = plain.read_bytes().splitlines(keepends=True)
    packed = b"".join(PACKERS[ending](b"".join(each[part::parts] if parts == 1 else each[part * 4 : part * 4 + 4]))
                      for part in range(parts))  # fmt: skip
    (directory / f"rows.jsonl.{ending}").write_bytes(packed[: len(packed) - cut])
    plain.unlink()


@pytest.mark.parametrize("ending", PACKERS)
def test_compressed_rows_are_read_as_far_as_possible(folder, ending):
    found = []
    for name, options in (("one", {}), ("two", {"parts": 2}), ("cut", {"cut": 500})):
        pack(folder(CELLS, name=name), ending, **options)
        found.append(load([folder(CELLS, name="plain").parent / name]))
    assert [len(results.cells) for results in found[:2]] == [6, 6] and 0 < len(found[2].cells) < 6
    assert [any("cut off or damaged" in note for note in results.notes) for results in found] == [False, False, True]


def test_uncompressed_rows_win_over_compressed_rows(folder):
    """A resumed sweep appends to the uncompressed rows."""
    (folder(CELLS) / "rows.jsonl.gz").write_bytes(b"not even compressed")
    assert len(load([folder(CELLS)]).cells) == 6


def test_damaged_lines_are_reported_and_the_rest_is_read(folder):
    directory = folder(CELLS)
    file = directory / "rows.jsonl"
    file.write_text('{"schema": 3, "ki\n' + file.read_text() + json.dumps(CELLS[0])[:300])
    text = report(directory)
    assert "rows.jsonl:1: not valid JSON; line left out" in text and "6 rows: 6 ok" in text
    assert "rows.jsonl:9: the last line is cut off (interrupted run); line left out" in text


@pytest.mark.parametrize(
    "value, fault", [("1e999", "1e999 is not a finite number"), ("NaN", "NaN is not"), (r'"\ud800"', "surrogates not allowed")]
)
def test_rows_with_unprintable_values_are_reported(folder, value, fault):
    directory = folder(CELLS)
    file = directory / "rows.jsonl"
    file.write_text(f'{{"schema": 3, "kind": {value}}}\n' + file.read_text())
    text = report(directory)
    assert "rows.jsonl:1: " in text and fault in text and "6 rows: 6 ok" in text


def test_remeasured_row_counts_once(folder):
    failed = rows.not_ok(rows.params(), "failed", "killed")
    text = report(folder(failed, rows.cell(rows.params())))
    assert "1 row(s) repeat an id" in text and "1 rows: 1 ok, 0 invalid, 0 unsustainable, 0 failed" in text


def test_last_row_of_a_limit_counts(read):
    """A run row only has the limits known when the run started."""
    first, last = (rows.limit("word_round_trip_ns", value) for value in (1800.0, 1700.0))
    other = rows.limit("word_round_trip_ns", 900.0, device="cpu") | {"id": "other"}
    results = read(first, other, rows.cell(rows.params()), last)
    assert list(results.cells["limits"]) == [rows.LIMITS | {"word_round_trip_ns": 1700.0}]


def test_rows_get_limits_settings_and_environment_of_their_runs(folder):
    here = rows.rerun(CELLS[0], where=rows.environment(revision="aaaa"), limits={"launch_sync_ns": 1.0})
    there = rows.rerun(CELLS[3], where=rows.environment(revision="bbbb"), settings={"seconds": 9.0})
    directory = folder(here, there)
    results = load([directory])
    assert [one["revision"] for one in results.environments] == ["aaaa", "bbbb"]
    assert list(results.cells["limits"]) == [{"launch_sync_ns": 1.0}, rows.LIMITS]
    assert results.runs == [rows.SETTINGS, {"seconds": 9.0}]
    text = report(directory)
    assert "these facts differ: revision." in text and "seconds 9.0" in text


def test_run_row_can_follow_its_rows_or_be_missing(folder):
    directory = folder(CELLS)
    run, *rest = (directory / "rows.jsonl").read_text().splitlines()
    (directory / "rows.jsonl").write_text("\n".join([*rest, run]) + "\n")
    results = load([directory])
    assert results.environments[0]["host"] == "node-7" and not results.notes
    (directory / "rows.jsonl").write_text("\n".join(rest) + "\n")
    assert "6 row(s) refer to a run that is not in the file, so their environment is unknown" in report(directory)


def test_runs_with_one_id_in_two_folders_are_separate(folder):
    sides = [folder(CELLS, name=name) for name in "ab"]
    (sides[1] / "rows.jsonl").write_text((sides[1] / "rows.jsonl").read_text().replace('"node-7"', '"other"'))
    results = load(sides)
    assert [one["host"] for one in results.environments] == ["node-7", "other"]
    assert points(results)["repetitions"].tolist() == [6, 6]  # the same machine, so its rows are repetitions


def test_traced_rows_are_left_out(read):
    traced = rows.rerun(CELLS[1], settings=rows.SETTINGS | {"traced": True})
    results = read(CELLS[0], traced)
    assert len(results.cells) == 1 and any("--trace" in note for note in results.notes)


def test_histograms_by_steps_and_by_index_are_equal(folder, tmp_path):
    plain, other = (copy.deepcopy(CELLS[0]) for _ in "ab")
    histogram = other["figures"]["latency_ns"]["histogram"]
    index = histogram.pop("index")
    histogram["steps"] = [here - before for before, here in zip([0, *index], index)]
    logs = []
    for name, row in (("index", plain), ("steps", other)):
        out = tmp_path / f"{name}_logs"
        assert main(["export", str(folder(row, name=name)), "--format", "hdr", "--out", str(out)]) == 0
        logs.append([file.read_text() for file in out.iterdir()])
    assert logs[0] == logs[1]


# --- catalogues


def test_catalogue_of_a_later_folder_adds_figures(folder, tmp_path):
    catalogue = copy.deepcopy(rows.CATALOGUE)
    catalogue["experiments"][0]["figures"].append({"name": "watts", "unit": "W", "better": "lower", "headline": True})
    row = rows.cell(rows.params(window=2))
    row["figures"]["watts"] = 231.0
    assert "lowest watts" in report(folder(CELLS, name="a"), folder(row, name="b", catalogue=catalogue), out=tmp_path / "out")
    assert "watts" not in load([folder(row, name="c")]).cells  # a figure that the catalogue lacks is ignored


# --- causes, flags and tries


@pytest.mark.parametrize("reason", ["because", "generator-bound: 97 %", "generator: too late", "anything"])
def test_cause_decides_whether_a_row_counts_not_the_reason_text(folder, reason):
    some = [rows.spoilt(rows.cell(rows.params(window=window), 1), cause, reason)
            for cause, window in {"driver_bound": 2, "disturbed": 1, "error": 3}.items()]  # fmt: skip
    text = report(folder(rows.cell(rows.params(window=1)), some))
    assert "1 of 4 repetitions were left out and measured again" in text and "at least" in text.partition("## What was measured")[0]


def test_analysis_does_not_parse_reasons():
    """Reasons are for human readers; programs read the row's `cause`."""
    for file in (ROOT / "analysis").rglob("*.py"):
        assert not re.search(r"reason\W+(str\.)?(startswith|contains|match)", file.read_text()), file


def test_late_generator_is_recognised_by_cause_and_its_row_counts(read):
    late = rows.late(rows.load_params()) | {"reason": "zu spät"}
    results = read(late)
    assert list(results.cells["status"]) == ["ok"] and list(results.cells["reason"]) == [""]
    (point,) = open_load.points(results).to_dict("records")
    assert point["generator"] == 1 and point["flags"] == {"late_generator": 1}
    late["details"]["counts"]["corrupted"] = 1
    assert list(read(late, name="wrong").cells["status"]) == ["invalid"]
    other = rows.spoilt(rows.load_cell(rows.load_params()), "error", "generator: not at all")
    assert open_load.points(read(other, name="other")).empty


FLAGS = ["late_generator", "unsteady", "above_limit"]


def test_flags_are_read_from_the_row_or_derived_for_older_rows(read):
    steady, late, unsteady, above, latency, plain = (rows.cell(rows.params(window=1 << n)) for n in range(6))
    steady |= {"flags": []}
    for row in (steady, unsteady):  # the flags of a row take precedence over its details
        row["details"]["warmup"] = {"steady": False}
    late = rows.spoilt(late, "generator")
    above["bounds"]["messages_per_second"]["ratio"], plain["bounds"]["messages_per_second"]["ratio"] = 1.06, 1.05
    latency["bounds"]["latency_ns"]["ratio"] = 9.0  # a time can be far above its bound
    flagged = rows.cell(rows.params(window=64)) | {"flags": FLAGS}
    results = read(flagged, steady, late, unsteady, above, latency, plain)
    assert list(results.cells["flags"]) == [FLAGS, [], *([code] for code in FLAGS), [], []]


def test_flags_are_counted_and_mark_points_with_their_range(folder):
    some = [rows.cell(rows.params(), n, rate) | {"flags": codes}
            for n, (rate, codes) in enumerate(((1e6, []), (2e6, FLAGS[:2]), (3e6, FLAGS)))]  # fmt: skip
    text = report(folder(some))
    for expected in (
        "† 2 of 3 rows had a late load generator", "‡ 2 of 3 rows were unsteady", "§ 1 of 3 rows have a figure more",
    ):  # fmt: skip
        assert expected in text
    (point,) = [line for line in lines(text.partition("## Every point")[2]) if line[0] == "host_polled + pinned"]
    assert any(") †‡§<br>1.00 M msg/s to 3.00 M msg/s" in cell for cell in point)
    assert not any(mark in report(folder(CELLS, name="plain")) for mark in "†‡§")


def test_tries_of_a_search_are_counted_but_not_used(folder, tmp_path, capsys):
    texts = []
    for name, some in (("bare", CELLS), ("tried", [*TRIES, *CELLS])):
        directory = folder(some, name=name)
        texts.append(report(directory).replace(str(directory), "").replace(name, "").splitlines())
    (line,) = [line for line in texts[1] if line not in texts[0]]
    assert "3 short tries, which took 750 ms" in line
    assert [other for other in texts[1] if other and other != line] == [other for other in texts[0] if other]
    tried = tmp_path / "tried"
    results = load([tried])
    assert len(results.cells) == 6 and "doorbells" not in results.axes and results.tries == [0.25] * 3
    assert main(["export", str(tried), "--format", "google-benchmark", "--out", str(tmp_path / "out.json")]) == 0
    assert "doorbells" not in (tmp_path / "out.json").read_text()
    capsys.readouterr()
    assert main(["compare", str(tried), str(folder(CELLS, TRIES, name="other"))]) == 0
    assert "2 points match" in capsys.readouterr().out
    assert main(["report", str(folder(TRIES, name="alone"))]) == 2
    assert "no cell row except tries of a search" in capsys.readouterr().err
