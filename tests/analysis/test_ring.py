"""The ring's block, table and figures say what the rows say, and nothing where they say nothing."""

import pytest
import ring_rows
import rows

from analysis.__main__ import main
from analysis.load import load
from analysis.report import write_report
from analysis.feeding.ring import axes, plots
from analysis.feeding.ring import points as ring
from analysis.feeding.ring.block import ring_text

pytestmark = pytest.mark.usefixtures("undrawn")

MARKED = "# Text\n\n<!-- {0}:begin -->\nold\n<!-- {0}:end -->\n\nThe rest.\n"


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A result directory of the made-up sweep. Only to be read."""
    return rows.write(tmp_path_factory.mktemp("swept") / "ring", ring_rows.sweep())


def of(tmp_path, *some) -> str:
    return ring_text(load([rows.write(tmp_path / "some", list(some))]))


def lines(text: str, start: str) -> list[list[str]]:
    """The cells of the table lines that begin so."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith(start)]


def axis(directory, name: str) -> list[list[str]]:
    table = axes.table(ring.read(load([directory])))
    return [row for row in table.rows if row[0] == name]


def test_rows_of_the_new_kind_are_valid(schema):
    for row in ring_rows.sweep():
        schema.validate(row)


def test_ratios_to_others(swept):
    text = ring_text(load([swept]))
    # the ring: 160 M msg/s at most, 2.5 µs alone
    for queue, rate, more, p50, longer in (
        ("host_polled", "40.0 M msg/s", "4.00", "10.0 µs", "4.00"),
        ("redis_list", "8.00 M msg/s", "20.0", "50.0 µs", "20.0"),
        ("redis_stream", "4.00 M msg/s", "40.0", "75.0 µs", "30.0"),
    ):
        (line,) = lines(text, f"| 64 B | {queue} |")
        assert line[2].startswith(rate) and line[4].startswith(p50)
        assert (line[3], line[5]) == (more, longer)
    (own,) = lines(text, "| 64 B | gpu_ring |")
    assert own[2].startswith("160 M msg/s") and "lanes 16" in own[2] and own[4].startswith("2.50 µs")


def test_ratio_is_of_medians_with_their_intervals(tmp_path):
    own = [ring_rows.point(repetition=which, rate=rate, window=64) for which, rate in enumerate((9e6, 10e6, 90e6))]
    other = [ring_rows.point("redis_list", which, rate=rate) for which, rate in enumerate((1e6, 2e6, 3e6))]
    text = of(tmp_path, *own, *other)
    assert "10.0 M msg/s (" in text
    (line,) = lines(text, "| 64 B | redis_list |")
    assert line[3] == "5.00" and line[4:] == ["—", "—"]


def test_peaks_by_payload_and_slots(swept):
    text = ring_text(load([swept]))
    (pulled,) = lines(text, "| 1 MiB | 2 | pinned |")
    (copied,) = lines(text, "| 1 MiB | 2 | vram |")
    assert pulled[3].startswith("35.0 k msg/s") and copied[3].startswith("40.0 k msg/s")
    assert copied[4] == "41.9 GB/s" and copied[6] == "84 %"  # of 50 GB/s
    small = lines(text, "| 64 B | 2 | pinned |")
    assert [line[3].split(" msg")[0] for line in small] == ["30.0 M", "160 M"]  # one producer, then four
    assert all(line[6] == "—" for line in small)


def test_lone_messages_beside_the_floors_of_their_run(swept):
    text = ring_text(load([swept]))
    (line,) = lines(text, "| 64 B | 2.50 µs")
    assert line[2:] == ["5.00 µs", "1.80 µs", "2.10 µs"]


def driver_bound(row: dict) -> dict:
    return rows.spoilt(row, "driver_bound", "driver-bound: 97 % of what the driver alone reaches")


def test_a_driver_bound_repetition_counts_and_makes_the_figure_a_bound(tmp_path):
    """It is a fast one: without it the median would be of the slow ones, 10 M msg/s here."""
    some = [ring_rows.point(rate=10e6), driver_bound(ring_rows.point(repetition=1, rate=30e6))]
    some += [driver_bound(ring_rows.point(repetition=2, rate=40e6)), ring_rows.point(rate=20e6, lanes=2)]
    skipped = rows.not_ok(rows.params("gpu_ring", lanes=1), "skipped", "8 mirrors for 2 pollers")
    text = of(tmp_path, *some, skipped)
    (line,) = lines(text, "| 64 B | 2 | pinned |")
    assert line[3].startswith("at least 30.0 M msg/s (") and line[3].endswith("best of 2")
    assert line[4].startswith("at least ") and line[5].startswith("at least ")
    assert "Of 2 of 4 rows the load generator was the limit, not the queue" in text
    assert "Of 5 rows 1 are not used: 1 skipped." in text


def test_a_ratio_with_a_bound_is_one(tmp_path):
    own, other = ring_rows.point(rate=40e6), ring_rows.point("redis_list", rate=4e6)
    for some, said in (
        ([driver_bound(own), other], "at least 10.0"),
        ([own, driver_bound(other)], "at most 10.0"),
        ([driver_bound(own), driver_bound(other)], "not known"),
    ):
        (line,) = lines(of(tmp_path, *some), "| 64 B | redis_list |")
        assert line[3] == said


def test_bounds_among_values_have_a_sign(tmp_path):
    some = [ring_rows.point(lanes=2, rate=10e6, p50=3e3), driver_bound(ring_rows.point(lanes=4, rate=20e6, p50=2e3))]
    directory = rows.write(tmp_path / "some", some)
    (row,) = axis(directory, "lanes")
    assert row[1:3] == ["2 / 4", "10.0 / ≥20.0 M msg/s"]
    (note := tmp_path / "note.md").write_text(MARKED.format("axes"))
    assert main(["ring", str(directory), "--note", str(note)]) == 0
    assert "≥, ≤ (at least, at most): the load generator was the limit" in note.read_text()


@pytest.mark.parametrize("lacking", ["redis_list", "host_polled", "gpu_ring"])
def test_a_queue_that_was_not_measured_is_left_out(tmp_path, lacking):
    text = of(tmp_path, *(row for row in ring_rows.sweep() if row["params"]["queue"] != lacking))
    assert f"| {lacking} |" not in text and "nan" not in text


def test_without_any_other_queue_nothing_is_compared(tmp_path):
    text = of(tmp_path, *(row for row in ring_rows.sweep() if row["params"]["queue"] == "gpu_ring"))
    assert "against others" not in text and "peaks by payload" in text


def test_floors_that_a_cpu_lacks_have_no_column(tmp_path):
    some = [
        ring_rows.point(where=rows.environment(None), device="cpu", window=window, batch=1) for window in (1, 64)
    ]
    for row in some:
        rows.rerun(row, floors={"thread_round_trip_ns": 600.0})
    text = of(tmp_path, *some)
    assert "copy engines |" not in text and "floor: a word" not in text
    assert text.startswith("**CPU device: these are not GPU results.**")


def test_nothing_ok_is_said(tmp_path, capsys):
    row = rows.not_ok(rows.params("gpu_ring", **ring_rows.OWN), "failed", "fell off the bus")
    assert "No row of gpu_ring is ok." in of(tmp_path, row)
    note = tmp_path / "note.md"
    note.write_text(MARKED.format("axes"))
    assert main(["ring", str(tmp_path / "some"), "--out", str(tmp_path / "out"), "--note", str(note)]) == 0
    assert "no two points" in note.read_text() and not list((tmp_path / "out").glob("*.png"))


def test_axes_in_plain_numbers(swept):
    (lanes,) = axis(swept, "lanes")
    assert lanes[1:3] == ["4 / 8 / 16", "40.0 / 80.0 / 160 M msg/s"]
    assert lanes[3].startswith("64 B, producers 4, window 8192") and "by counter" in lanes[3]
    (batch,) = axis(swept, "batch")
    assert "by counter: 1.00 / 8.00 M msg/s; 9.00 / 9.00 µs p50" in batch[2]
    assert "by flags: 2.00 / 16.0 M msg/s" in batch[2]
    (slots,) = axis(swept, "slots")
    assert "4 KiB: 32.8 / 28.7 GB/s" in slots[2] and "1 MiB: 36.7 / 41.9 GB/s" in slots[2]
    assert slots[3].endswith("auto chose pinned at 64 B")
    _, lone = axis(swept, "idling")
    assert lone[2] == "2.50 / 3.00 / 9.00 µs p50; 5.00 / 6.00 / 18.0 µs p99"
    assert [row[0] for row in axes.table(ring.read(load([swept]))).rows].count("pollers") == 2


def test_values_of_a_sweep_that_are_missing_stay_visible(tmp_path):
    some = [point for point in ring_rows.sweep() if point["params"]["payload_bytes"] != 1024]
    some += [ring_rows.point(granularity=name, payload_bytes=1024, rate=1e6, batch=16) for name in ("thread", "block")]
    (row,) = axis(rows.write(tmp_path / "some", some), "granularity")
    assert row[1] == "thread / warp / block" and "1 KiB: 1.00 / — / 1.00 M msg/s" in row[2]


def test_crossover_is_where_copies_stay_ahead(swept):
    points = ring.many(ring.of_ring(ring.read(load([swept]))))
    pulled, copied = (ring.using(points, "slots", slots) for slots in ("pinned", "vram"))
    pulled = pulled[pulled["payload_bytes"] >= 4096]
    assert plots.crossover(pulled, copied) == 65536
    assert plots.crossover(copied, pulled) is None


def test_figures_and_note(swept, tmp_path, capsys):
    note = tmp_path / "note.md"
    note.write_text(MARKED.format("axes"))
    arguments = ["ring", str(swept), "--out", str(tmp_path / "figures"), "--note", str(note)]
    assert main([*arguments, "--check"]) == 1
    assert note.read_text() == MARKED.format("axes") and not (tmp_path / "figures").exists()
    assert main(arguments) == 0
    assert {file.stem for file in (tmp_path / "figures").iterdir()} == set(plots.NAMES)
    text = note.read_text()
    assert "\nold\n" not in text and text.endswith("The rest.\n") and "](figures/ring_lanes.png)" in text
    assert main([*arguments, "--check"]) == 0
    note.write_text(text.replace("160", "161"))
    assert main([*arguments, "--check"]) == 1
    assert str(note) in capsys.readouterr().err


def test_readme_block_is_checked(swept, tmp_path, capsys):
    readme = tmp_path / "README.md"
    readme.write_text(MARKED.format("ring") + MARKED.format("figures"))
    arguments = ["readme", str(swept), str(readme), "--block", "ring"]
    assert main([*arguments, "--check"]) == 1
    assert main(arguments) == 0
    text = readme.read_text()
    assert "| gpu_ring |" in text and text.endswith(MARKED.format("figures"))
    assert main([*arguments, "--check"]) == 0
    readme.write_text(text.replace("160 M", "170 M"))
    assert main([*arguments, "--check"]) == 1
    assert str(readme) in capsys.readouterr().err


def test_rows_from_before_the_axes_are_what_the_ring_did_unasked(tmp_path, capsys):
    old = rows.cell(rows.params("gpu_ring"), 0)
    others = [rows.cell(rows.params("host_polled"), 0)]
    new = [ring_rows.point(repetition=1), ring_rows.point("host_polled", 1)]
    results = load([rows.write(tmp_path / "both", [old, *others, *new])])
    measured = ring.read(results)
    assert measured["repetitions"].tolist() == [2, 2]
    before = load([rows.write(tmp_path / "old", [old, *others])])
    assert "| 64 B | 2 | — |" in ring_text(before)
    assert main(["ring", str(tmp_path / "old"), "--out", str(tmp_path / "figures")]) == 0
    rows.write(tmp_path / "new", new)
    assert main(["compare", str(tmp_path / "old"), str(tmp_path / "new")]) == 0
    assert "2 points matched" in capsys.readouterr().out


def test_report_tells_the_axes_only_where_they_say_something(swept, tmp_path):
    write_report([str(swept)], str(tmp_path), None)
    text = (tmp_path / "report.md").read_text()
    peak, *_ = lines(text, "| gpu_ring |")  # the headline; every point follows below
    assert "lanes 16" in peak[1]
    assert not any(word in " ".join(peak[:9]) for word in ("auto", "none", "spin", "in order", "pollers"))
    assert "| idling | backoff, park, spin |" in text and "| slot size | 64 B, 256 B |" in text
    rows.write(tmp_path / "one", [ring_rows.point(pollers=pollers, notify="flags", rate=pollers) for pollers in (2, 4)])
    write_report([str(tmp_path / "one")], None, None)
    assert "pollers 4" in (tmp_path / "one/report.md").read_text()
