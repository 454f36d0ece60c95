"""The report: plain words, readable numbers, and a complete list of problems."""

import re

import other_rows
import pytest
import rows
from conftest import lines, report
from rows import limited, repeated

from analysis import bounds, sections, stability, units
from analysis.load import load_all

pytestmark = pytest.mark.usefixtures("figureless")


@pytest.mark.parametrize("formatter, value, expected", [
    (units.messages_per_second, 24.13e6, "24.1 M msg/s"), (units.messages_per_second, 999_800, "1.00 M msg/s"),
    (units.messages_per_second, 12.0, "12.0 msg/s"), (units.bytes_per_second, 41.27e9, "41.3 GB/s"),
    (units.nanoseconds, 3420.0, "3.42 µs"), (units.nanoseconds, 174.2, "174 ns"), (units.nanoseconds, 2.5e9, "2.50 s"),
    (units.nanoseconds, float("inf"), "—"), (units.size, 64, "64 B"), (units.size, 1 << 20, "1 MiB"),
    (units.size, 1536, "1.50 KiB"), (units.size, 0, "0 B"), (units.size, None, "—"), (units.number, 950, "950"),
    (units.number, 1_234_567, "1.23 M"), (units.number, None, "—"), (units.percent, 0.831, "83 %"),
    (units.percent, 0.0042, "0.42 %"), (units.percent, None, "—"), (units.ratio, None, "—"), (units.ratio, 0.0, "0"),
    (units.tick(units.nanoseconds), 10_000.0, "10 µs"), (units.tick(units.number), 100_000.0, "100 k"),
    (units.unit_of("copy_engine_h2d_bytes_per_second"), 55e9, "55.0 GB/s"),
    (units.unit_of("redis_list_push_per_second"), 5.2e6, "5.20 M msg/s"), (units.unit_of("launch_sync_ns"), 6200.0, "6.20 µs"),
    (units.unit_of("sms"), 132, "132"), (units.of_unit("bytes"), 4096, "4 KiB"), (units.of_unit("furlongs"), 2.0, "2.00 furlongs"),
    (units.words, "launch_per_second", "launches"),
    (units.words, "copy_engine_both_bytes_per_second", "copy engine both"), (units.words, "", ""),
    (units.words, "sm_echo_bytes_per_second", "SM echo"),
])  # fmt: skip
def test_numbers_and_limits_are_formatted(formatter, value, expected):
    assert formatter(value) == expected


COPIES, TRIPS = {"floor": "copy_launch_copy_ns"}, {"product": [2, {"floor": "redis_round_trip_ns"}]}
BATCH, WINDOW = ({"given": name, "value": 4} for name in ("batch", "window"))
LISTS = [{"quotient": [1, {"ceiling": f"redis_list_{name}_per_second"}]} for name in ("push", "pop", "push", "pop")]


@pytest.mark.parametrize("bound, expected, ceiling", [
    (None, "", ""), (COPIES, "copy, launch, copy", ""), ({"ceiling": "launch_per_second"}, "launches", "launch_per_second"),
    ({"quotient": [BATCH, COPIES]}, "copy, launch, copy, once per batch", ""),
    ({"quotient": [{"product": [{"given": "workers", "value": 2}, BATCH]}, COPIES]}, "copy, launch, copy, once per batch", ""),
    ({"quotient": [WINDOW, {"sum": [TRIPS, COPIES]}]}, "two Redis round trips and a copy, launch, copy, once per window", ""),
    ({"quotient": [{"given": "pack", "value": 1}, {"sum": LISTS}]}, "Redis list push and Redis list pop", ""),
    ({"product": [BATCH, {"ceiling": "launch_per_second"}]}, "launches", ""),
    (rows.of_ceiling("sm_echo_bytes_per_second", 64), "SM echo", "sm_echo_bytes_per_second"),
    ({"product": [{"given": "payload", "value": 64}, rows.of_ceiling("sm_echo_bytes_per_second", 80)]}, "SM echo",
     "sm_echo_bytes_per_second"),
    (other_rows.SLOWEST, "slowest stage alone", ""), (TRIPS, "two Redis round trips", ""),
    (other_rows.handoff("shm_copy")["bounds"]["handoff_ns"]["bound"],
     "a launch sync and the bytes by copy engine d2h and the bytes by copy engine h2d", ""),
])  # fmt: skip
def test_bounds_are_written_in_words(bound, expected, ceiling):
    assert (bounds.words(bound), bounds.ceiling(bound)) == (expected, ceiling)


def test_interval_names_its_unit_once():
    assert units.spread(units.nanoseconds, 3400, 3300, 3500) == "3.40 µs (3.30–3.50)"
    assert units.spread(units.nanoseconds, 1000, 990, 1100) == "1.00 µs (990 ns–1.10 µs)"
    assert units.spread(units.nanoseconds, 3400, 3400, 3400) == "3.40 µs"
    assert units.spread(units.ratio, 0.02, -0.1, 0.14) == "0.0200 (-0.100 to 0.140)"


# --- the page


def test_page_has_plain_words_and_ends_with_evidence(full_report):
    body = re.sub(r"<svg.*?</svg>", "", full_report.html[full_report.html.index("<body>") :], flags=re.DOTALL)
    read = re.sub(r"<[^>]*>", "\n", body)
    assert "two Redis round trips and a copy, launch, copy" in read
    assert "`" not in read and not re.search(r"\w[*+/]\w+_", read)
    above, below = full_report.html.split("<h2>Evidence</h2>")
    tables = "".join(re.findall(r"<table>.*?</table>", above, re.DOTALL))
    assert not re.search(r"\b[0-9a-f]{16}\b", tables) and str(full_report.directory) not in tables
    numbers = re.findall(r'href="#(evidence-\d+)"', above)
    assert numbers and all(f'id="{number}"' in below for number in numbers) and str(full_report.directory) in below
    first_parts = ("not GPU results", "](headline.png)", "## The answer", "\n| for |", "## What was measured")
    places = [full_report.md.index(part) for part in first_parts]
    assert places == sorted(places) and full_report.md.index("\n| ") == places[3], "the answer is the first table"
    assert full_report.md.count("](headline.png)") == 1


def test_report_prints_its_page_and_warns_before_any_number(folder, capsys):
    directory = folder(repeated(device="cpu"))
    text = report(directory)
    assert capsys.readouterr().out.strip() == str(directory / "report.html")
    warning = "CPU device: these are not GPU results"
    assert text.index(warning) < text.index("## The answer") < text.index("Verified")
    assert warning in (directory / "report.html").read_text()
    assert "not GPU results" not in report(folder(repeated(), name="gpu"))


# --- tables


def test_headline_shows_the_figures_from_the_rows(folder):
    fast, slow, alone = (rows.cell(rows.params(window=window), 0, rate) for window, rate in ((256, 8e6), (16, 5e6), (1, 1e5)))
    alone["figures"]["latency_ns"] |= {"p50": 11_100.0, "p99": 22_200.0, "p999": 33_300.0}
    alone["bounds"]["latency_ns"]["ratio"], fast["bounds"]["messages_per_second"]["ratio"] = 1.23, 0.77
    text = report(folder(fast, slow, alone))
    line = next(line for line in text.splitlines() if line.startswith("| host_polled + pinned | 8.00 M msg/s"))
    for expected in ("window 256", "77 %", "11.1 µs", "22.2 µs", "33.3 µs", "1.23", "copy engine both"):
        assert expected in line
    assert "Verified" in text and "0 corrupted" in text


def test_limited_repetitions_count_as_lower_bounds_in_every_table(folder):
    some = repeated(rates=(2e6, 6e6, 7e6))
    lost = rows.spoilt(rows.cell(rows.params(window=8)), "no_results", "no result came back in time")
    loud = rows.spoilt(rows.cell(rows.params(), 5), "disturbed", "disturbed: a neighbour")
    text = report(folder(some[0], limited(some[1:]), lost, loud))
    peak, alone = (text.partition(f"## {title}")[2].partition("##")[0] for title in ("Headline", "Every point"))
    assert "| at least 6.00 M msg/s (" in peak and "at least 384 MB/s" in peak
    assert "at least 6.00 M msg/s (" in alone and "| at most " in alone and "2.00 M msg/s" not in text
    assert "In 2 of 3 rows the limit was the load generator, not the queue" in text
    assert "except cells limited by the load generator" in text
    assert "2 of 5 rows are not used: 1 without results, 1 disturbed." in peak


def test_unstable_points_are_marked_and_counted(folder):
    shaky = repeated(rates=(1e6, 6e6), window=1, p50=(1e4, 2e4), p99=(2e4, 9e4))
    text = report(folder(shaky, repeated(rates=(2e5, 2e5), window=64)))
    line = next(line for line in text.splitlines() if line.startswith("| host_polled + pinned | 3.50 M msg/s"))
    assert stability.mark({"unstable": ["p99"], "spread": {"p99": 140.2}}, "p99") == "\nunstable: 140 times between repetitions"
    assert all(f"unstable: {times} times between repetitions" in line for times in ("6", "2", "4.5"))
    assert "1 of 2 points measured more than once is unstable" in text
    steady = report(folder(repeated(rates=(1e6, 1e6)), name="steady"))
    assert "None of 1 points measured more than once is unstable" in steady and "unstable: 1" not in steady


def test_rows_that_do_not_count_are_listed_with_reasons(folder):
    lanes = [rows.not_ok(rows.params("gpu_ring", window=8, payload_bytes=size), "skipped", "needs a lane each")
             for size in (64, 1024)]  # fmt: skip
    noise = [rows.not_ok(rows.params("null", payload_bytes=size), "invalid", f"at 0.9{size} of it", reordered=2)
             for size in (64, 1024)]  # fmt: skip
    liar = rows.cell(rows.params("redis_list"))
    liar["details"]["counts"]["corrupted"] = 7
    nasty = rows.not_ok(rows.params("redis_stream"), "failed", "<script>alert(1)</script> a|b")
    late = rows.not_ok(rows.params(window=2), "unsustainable", "the backlog grew", sent=1)
    directory = folder(lanes, noise, liar, nasty, late, rows.cell(rows.params()))
    text = report(directory)
    assert re.search(r"\| invalid \|.*\(and 1 more with other numbers\) \| null", text)
    (skipped,) = (line for line in text.splitlines() if line.startswith("| skipped"))
    assert "| 2 |" in skipped and "64 B, 1 KiB" in skipped and "needs a lane each" in skipped
    assert "| gpu_ring | no ok cell (skipped) |" in text and "| unsustainable | the backlog grew |" in text
    assert "Wrong answers: 7 corrupted" in text and "| redis_list + pinned | no ok cell (invalid) |" in text
    assert "<script>" not in (directory / "report.html").read_text() and "a\\|b" in text


def test_report_works_without_rows_that_count_and_with_few_facts(folder):
    failed = rows.not_ok(rows.params(), "failed", "the device fell off the bus")
    assert "the device fell off the bus" in report(folder(failed))
    where = rows.environment()
    del where["services"], where["driver_version"]
    some = [rows.rerun(rows.cell(rows.params(window=window)), where=where, limits={}, settings={}) for window in (1, 64)]
    for row in some:
        del row["bounds"], row["time"], row["cost"], row["details"]["stages_ns"]
    assert "There are no limit rows" in report(folder(some, name="few"))


# --- environments


def test_machines_are_separated_and_differing_facts_are_listed(folder, tmp_path):
    other = rows.environment(gpu="NVIDIA A100", gpu_sms=108)
    sides = [folder(rows.cell(rows.params(), where=where), name=name) for name, where in (("a", None), ("b", other))]
    text = report(*sides, out=tmp_path / "out")
    assert "host_polled + pinned @A" in text and "host_polled + pinned @B" in text
    assert "these facts differ: gpu, gpu_sms." in text
    resumed = rows.environment(command="bin/feedrate sweep quick --resume", revision="fedcba9", services={})
    some = [rows.cell(rows.params(queue), where=where) for queue, where in (("host_polled", resumed), ("redis_list", None))]
    some[0]["figures"]["latency_ns"]["sampled_every"] = 16
    text = report(folder(some, name="resumed"))
    assert "these facts differ: revision." in text and "| redis.version | 7.0.15 |" in text  # one run had no Redis
    assert "bin/feedrate sweep quick --resume<br>bin/feedrate sweep quick | differs |" in text
    assert "Latency was measured for one message in 16" in text


# --- experiments without a section


def test_experiment_without_section_gets_the_general_report(folder):
    assert sections.of("launch") == sections.Section() == sections.of("not a name") != sections.of("feeding")
    failed = other_rows.skipped(other_rows.launch("pdl", kernels=9), "no such kernel")
    unsteady = [row for row in other_rows.launches(3) if row["params"]["form"] == "plain"]
    unsteady[0]["figures"]["kernels_per_second"] *= 2
    text = report(folder([row for row in other_rows.launches(3) if row["params"]["form"] != "plain"], unsteady, failed))
    (rate,), (time,) = lines(text, "| highest kernels per second"), lines(text, "| lowest round trip p50")
    assert rate[1].startswith("graph") and "M kernels/s" in rate[2] and rate[3].startswith("pdl")
    assert time[1].startswith("graph") and "ns" in time[2]
    table = lines(text.partition("## Every point")[2].partition("##")[0])
    assert table[0][:6] == ["form", "point", "repetitions", "kernels per second", "round trip p50", "round trip p99"]
    assert [line[0] for line in table[1:]] == [*["plain"] * 2, *["graph"] * 3, *["pdl"] * 2]
    assert "% of launches" in table[3][3] and "× launch sync" in table[3][4]
    assert "22 rows: 21 ok, 0 invalid" in text and "1 of 7 points measured more than once is unstable" in text
    assert "unstable: 2 times between repetitions" in text and "| skipped | no such kernel | pdl | 1 |" in text
    assert "no such kernel" in report(folder(failed, name="alone"))


def test_experiments_of_one_folder_are_reported_separately(folder, tmp_path):
    directory = folder(other_rows.launches(2), repeated(rates=(1e6, 1e6)))
    assert {name: len(results.cells) for name, results in load_all([directory]).items()} == {"launch": 14, "feeding": 2}
    text = report(directory)
    first, second = text.index("# Experiment launch"), text.index("# Experiment feeding")
    assert first < text.index("| highest kernels per second") < second < text.index("| small messages")
    assert "14 rows: 14 ok" in text and "2 rows: 2 ok" in text
    assert "kernels/s" not in text[second:] and "msg/s" not in text[first:second]
    unknown = folder(other_rows.launches(1), name="unknown", catalogue=rows.CATALOGUE | {"experiments": []})
    assert "7 rows: 7 ok" in report(unknown)  # the statuses of rows need no catalogue entry
