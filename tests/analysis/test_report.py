"""The report: figures drawn, numbers right, nothing that went wrong left out."""

import json
import re
import xml.etree.ElementTree as xml

import pytest
import rows

from analysis.__main__ import main
from analysis.load import load
from analysis.feeding.choose import knee, lone
from analysis.feeding.plots import draw_all
from analysis.stats import best, points

pytestmark = pytest.mark.usefixtures("undrawn")

FIGURES = {"headline", "throughput", "latency_distribution", "latency_window", "block_streams", "stages"}
PNG = b"\x89PNG\r\n\x1a\n"


def report(*directories, out=None) -> str:
    """Makes the report; returns report.md."""
    options = ["--out", str(out)] if out else []
    assert main(["report", *map(str, directories), *options]) == 0
    return ((out or directories[0]) / "report.md").read_text()


def with_rows(tmp_path, *some):
    return rows.write(tmp_path / "some", list(some))


def test_prints_the_path(tmp_path, capsys):
    directory = with_rows(tmp_path, rows.cell(rows.params()))
    report(directory)
    assert capsys.readouterr().out.strip() == str(directory / "report.html")


def test_writes_every_figure(reported):
    drawn = {file.stem: file.read_bytes() for file in reported.glob("*.png")}
    assert drawn.keys() == FIGURES
    assert all(data.startswith(PNG) and len(data) > 10_000 for data in drawn.values())


def test_html_is_one_self_contained_well_formed_page(reported):
    page = (reported / "report.html").read_text()
    assert page.count("<svg") == 2 * len(FIGURES), "a broad and a slim one each"
    assert not re.search(r'(src|href)="(?!#|data:)', re.sub(r"xmlns(:\w+)?=\"[^\"]*\"", "", page))
    assert "@import" not in page and "url(http" not in page
    xml.fromstring(page[page.index("<body>") : page.index("</html>")])  # the SVGs, too, nest as they should
    ids = re.findall(r'<clipPath id="([^"]+)"', page)
    assert len(ids) == len(set(ids)), "figures on one page must not share clip paths"


def test_headline_holds_the_planted_numbers(tmp_path):
    fast, slow = (rows.cell(rows.params(window=window)) for window in (256, 16))
    alone = rows.cell(rows.params(window=1))
    for row, rate in ((fast, 8e6), (slow, 5e6), (alone, 1e5)):
        row["figures"] |= {"messages_per_second": rate, "bytes_per_second": rate * 64}
    alone["figures"]["latency_ns"] |= {"p50": 11_100.0, "p99": 22_200.0, "p999": 33_300.0}
    alone["bounds"]["latency_ns"]["ratio"] = 1.23
    fast["bounds"]["messages_per_second"]["ratio"] = 0.77
    text = report(with_rows(tmp_path, fast, slow, alone))
    line = next(line for line in text.splitlines() if line.startswith("| host_polled + pinned | 8.00 M msg/s"))
    assert all(
        said in line for said in ("window 256", "77 %", "11.1 µs", "22.2 µs", "33.3 µs", "1.23", "copy engine both")
    )
    assert "Verified" in text and "0 corrupted" in text


def test_a_repetition_is_a_median_not_a_mean(tmp_path):
    some = [rows.cell(rows.params(), repetition) for repetition in range(3)]
    for row, rate in zip(some, (1e6, 2e6, 90e6)):
        row["figures"]["messages_per_second"] = rate
    point = points(load([with_rows(tmp_path, *some)])).iloc[0]
    assert (point.messages_per_second, point.messages_per_second_least, point.messages_per_second_greatest) == (
        2e6,
        1e6,
        90e6,
    )
    assert point.repetitions == 3


def test_lone_is_one_message_in_flight_at_the_smallest_payload(run):
    chosen = lone(points(load([run])))
    assert set(chosen["window"]) == {1} and set(chosen["payload_bytes"]) == {64} and set(chosen["producers"]) == {1}
    assert chosen["variant"].is_unique


def test_knee_prefers_the_shallower_window_of_equal_throughput(tmp_path):
    shallow, deep = (rows.cell(rows.params(window=window)) for window in (64, 4096))
    for row, rate, p99 in ((shallow, 0.97e6, 5e4), (deep, 1e6, 5e6)):
        row["figures"]["messages_per_second"], row["figures"]["latency_ns"]["p99"] = rate, p99
    measured = points(load([with_rows(tmp_path, shallow, deep)]))
    assert knee(measured)["window"].tolist() == [64]
    assert best(measured, "variant", "messages_per_second")["window"].tolist() == [4096]


def test_every_cell_that_is_not_ok_is_told_with_its_reason(reported):
    text = (reported / "report.md").read_text()
    assert "Redis: OOM command not allowed" in text
    assert "needs a window of at least one lane each" in text
    assert re.search(r"\| invalid \|.*\(and 4 like it, with other numbers\) \| null", text)
    skipped = next(line for line in text.splitlines() if line.startswith("| skipped"))
    assert "| 5 |" in skipped and "64 B, 1 KiB, 16 KiB, 256 KiB, 1 MiB" in skipped


def mixed() -> list[dict]:
    """One point: a slow repetition that is ok, and two fast ones that the load generator limited."""
    some = [rows.cell(rows.params(), repetition) for repetition in range(3)]
    for row, rate in zip(some, (2e6, 6e6, 7e6)):
        row["figures"] |= {"messages_per_second": rate, "bytes_per_second": rate * 64}
    why = "driver-bound: 97 % of what the driver alone reaches"
    return [some[0], *(rows.spoilt(row, "driver_bound", why) for row in some[1:])]


def test_a_driver_bound_repetition_is_in_every_table_as_at_least(tmp_path):
    text = report(with_rows(tmp_path, *mixed()))
    peak, alone = (text.partition(f"## {title}")[2] for title in ("Headline", "Every point"))
    assert "| at least 6.00 M msg/s (" in peak.partition("##")[0] and "at least 384 MB/s" in peak.partition("##")[0]
    assert "at least 6.00 M msg/s (" in alone.partition("##")[0] and "| at most " in alone.partition("##")[0]
    assert "2.00 M msg/s" not in text
    assert "Of 2 of 3 rows the load generator was the limit, not the queue" in text
    assert "but for those that the load generator limited" in text


def test_a_driver_bound_point_has_a_sign_in_the_figures(tmp_path):
    wide = rows.cell(rows.params(payload_bytes=1024), speed=0.1)
    results = load([with_rows(tmp_path, *mixed(), wide)])
    drawn = {drawing.name: drawing for drawing in draw_all(results)}
    for name in ("headline", "throughput"):
        texts = [text.get_text() for panel in drawn[name].figure.axes for text in panel.texts]
        assert any(text.startswith("≥") for text in texts), name
        assert "the load generator was the limit" in drawn[name].caption


def test_what_no_figure_is_made_of_is_counted_below_the_headline(tmp_path):
    lost = rows.spoilt(rows.cell(rows.params(window=8)), "no_results", "no result came back in time")
    quiet, loud = rows.cell(rows.params()), rows.cell(rows.params(), 5)
    loud = rows.spoilt(loud, "disturbed", "disturbed: a neighbour")
    text = report(with_rows(tmp_path, quiet, loud, lost, *mixed()[1:]))
    peak = text.partition("## Headline")[2].partition("##")[0]
    assert "Of 5 rows 2 are not used: 1 disturbed, 1 without results." in peak


def test_a_variant_without_an_ok_cell_stays_in_the_headline(tmp_path):
    ring = rows.not_ok(rows.params("gpu_ring"), "skipped", "no GPU")
    text = report(with_rows(tmp_path, rows.cell(rows.params()), ring))
    assert "| gpu_ring | no ok cell (skipped) |" in text


def test_a_row_with_wrong_answers_has_no_figure_whatever_it_claims(tmp_path):
    liar = rows.cell(rows.params("gpu_ring"))
    liar["details"]["counts"]["corrupted"] = 7
    text = report(with_rows(tmp_path, rows.cell(rows.params()), liar))
    assert "Wrong answers: 7 corrupted" in text
    assert "| gpu_ring | no ok cell (invalid) |" in text


def test_nothing_ok_is_still_a_report(tmp_path):
    text = report(with_rows(tmp_path, rows.not_ok(rows.params(), "failed", "the device fell off the bus")))
    assert "the device fell off the bus" in text
    assert not list((tmp_path / "some").glob("*.png"))


def test_missing_axes_are_named_instead_of_drawn(tmp_path):
    row = rows.cell(rows.params())
    del row["details"]["stages_ns"]
    directory = with_rows(tmp_path, row)
    text = report(directory)
    assert {file.stem for file in directory.glob("*.png")} == {"headline", "latency_distribution"}
    for lacking in ("one payload size only", "one window only", "two or more block sizes", "stage times", "window 1"):
        assert lacking in text


def test_heat_map_of_the_ring_is_over_its_lanes(tmp_path):
    some = [rows.cell(rows.params("gpu_ring", block=block, lanes=lanes)) for block in (64, 128) for lanes in (1, 8)]
    directory = with_rows(tmp_path, *some)
    report(directory)
    assert (directory / "block_streams.png").is_file()


def test_several_workloads_have_a_headline_each(tmp_path):
    some = [
        rows.cell(rows.params(workload=workload, flops_per_byte=flops, payload_bytes=size))
        for workload, flops in (("echo", 0), ("fma_chain", 64))
        for size in (64, 4096)
    ]
    text = report(with_rows(tmp_path, *some))
    assert "## Headline: echo" in text and "## Headline: fma_chain, 64 FLOP/B" in text


def test_optional_parts_may_be_missing(tmp_path):
    some = [rows.cell(rows.params(window=window, payload_bytes=size)) for window in (1, 64) for size in (64, 4096)]
    where = rows.environment()
    del where["redis"], where["driver_version"]
    for row in some:
        rows.rerun(row, where=where, floors={}, settings={})
        for name in ("bounds", "time", "cost"):
            del row[name]
        del row["details"]["stages_ns"]
    directory = with_rows(tmp_path, *some)
    assert "No floor rows" in report(directory)
    assert {"throughput", "latency_window"} <= {file.stem for file in directory.glob("*.png")}


def test_a_cpu_run_says_so_first(tmp_path):
    directory = rows.write(tmp_path / "cpu", rows.sweep(1, "cpu", None))
    text = report(directory)
    assert text.index("CPU device: these are not GPU results") < text.index("Verified")
    assert "CPU device: these are not GPU results" in (directory / "report.html").read_text()


def test_a_gpu_run_does_not(reported):
    assert "not GPU results" not in (reported / "report.md").read_text()


def test_directories_are_read_together_and_machines_kept_apart(tmp_path):
    first = rows.write(tmp_path / "a", [rows.cell(rows.params())])
    other = rows.environment(gpu="NVIDIA A100", gpu_sms=108)
    second = rows.write(tmp_path / "b", [rows.cell(rows.params(), where=other)])
    text = report(first, second, out=tmp_path / "out")
    assert "host_polled + pinned @A" in text and "host_polled + pinned @B" in text
    assert "these facts differ: gpu, gpu_sms." in text


def test_redis_that_starts_later_is_no_difference(tmp_path):
    some = [
        rows.cell(rows.params(queue), where=where)
        for queue, where in (("host_polled", rows.environment(redis=None)), ("redis_list", rows.environment()))
    ]
    text = report(with_rows(tmp_path, *some))
    assert "these facts differ" not in text and "| redis.version | 7.0.15 |" in text


def test_another_command_is_no_difference(tmp_path):
    resumed = {"command": "bin/feedrate sweep quick --resume", "revision": "fedcba9"}
    wheres = (rows.environment(), rows.environment(**resumed))
    some = [rows.cell(rows.params(window=place), where=where) for place, where in enumerate(wheres, start=1)]
    text = report(with_rows(tmp_path, *some))
    assert "these facts differ: revision." in text
    assert "bin/feedrate sweep quick<br>bin/feedrate sweep quick --resume | differs |" in text  # the table still tells


def test_sampled_latency_is_said(tmp_path):
    row = rows.cell(rows.params())
    row["figures"]["latency_ns"]["sampled_every"] = 16
    assert "Latency was taken of one message in 16" in report(with_rows(tmp_path, row))


def test_rows_of_one_machine_in_two_directories_are_repetitions(tmp_path):
    both = [rows.write(tmp_path / name, [rows.cell(rows.params())]) for name in "ab"]
    measured = points(load(both))
    assert measured["repetitions"].tolist() == [2]


def test_a_line_cut_off_is_told_and_the_rest_read(tmp_path):
    directory = with_rows(tmp_path, *(rows.cell(rows.params(), repetition) for repetition in range(3)))
    with (directory / "rows.jsonl").open("a") as file:
        file.write(json.dumps(rows.cell(rows.params(window=2)))[:300])
    text = report(directory)
    assert "rows.jsonl:5: the last line is cut off (an interrupted run); left out" in text
    assert "3 rows: 3 ok" in text


def test_a_broken_line_in_the_middle_is_told(tmp_path):
    directory = with_rows(tmp_path, rows.cell(rows.params()))
    file = directory / "rows.jsonl"
    file.write_text('{"schema": 2, "ki\n' + file.read_text())
    assert "rows.jsonl:1: not JSON; left out" in report(directory)


def test_a_row_measured_again_counts_once(tmp_path):
    failed = rows.not_ok(rows.params(), "failed", "killed")
    text = report(with_rows(tmp_path, failed, rows.cell(rows.params())))
    assert "1 row(s) repeat an id" in text and "1 rows: 1 ok, 0 invalid, 0 unsustainable, 0 failed" in text


def test_what_a_queue_could_not_sustain_is_listed(tmp_path):
    late = rows.not_ok(rows.params(window=2), "unsustainable", "the backlog grew", sent=1)
    text = report(with_rows(tmp_path, late, rows.cell(rows.params())))
    assert "1 unsustainable" in text and "| unsustainable | the backlog grew |" in text


def test_text_from_rows_is_escaped(tmp_path):
    nasty = rows.not_ok(rows.params("redis_list"), "failed", "<script>alert(1)</script> a|b")
    text = report(with_rows(tmp_path, rows.cell(rows.params()), nasty))
    assert "<script>" not in (tmp_path / "some/report.html").read_text()
    assert "a\\|b" in text


def test_traced_rows_are_left_out(tmp_path):
    clean, traced = (rows.cell(rows.params("gpu_ring"), repetition) for repetition in (0, 1))
    rows.rerun(traced, settings=rows.SETTINGS | {"traced": True})
    results = load([with_rows(tmp_path, clean, traced)])
    assert len(results.cells) == 1
    assert any("--trace" in note for note in results.notes)
