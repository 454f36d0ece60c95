"""The section of `storage`: the ranking of engines, the drive's limit, CPU cost, latency under load, the path of the bytes,
rows to doubt, and what GPUDirect would change."""

import re

import numpy as np
import pytest
import rows
import storage_rows
from conftest import dictionaries, main, report
from storage_rows import COLD, D2H, DIRECT, FIO, GB, H2D, KI, LIMITS, MI, NO_FIO, RANDOM, limit, repeated, storage

from analysis import catalogue, flags, measurement_quality
from analysis.document import Table
from analysis.storage import against_fio, best, checks, cpu, gpudirect, paths, points, under_load

pytestmark = pytest.mark.usefixtures("figureless")


@pytest.fixture
def stored(read):
    return lambda *some, **options: read(*some, experiment="storage", catalogue=storage_rows.CATALOGUE, **options)


def lines(blocks: list) -> list[dict]:
    """The lines of the only table of the blocks."""
    (table,) = (block for block in blocks if isinstance(block, Table))
    return dictionaries(table)


def text(blocks: list) -> str:
    return "\n".join(str(block) for block in blocks)


# --- the answer


def test_fastest_engine_is_shown_with_runner_up_and_shares_of_the_limits(stored):
    results = stored(repeated("io_uring", rate=5 * GB, **DIRECT), repeated("pread", rate=2.5 * GB, **DIRECT),
                     repeated("pread_pinned", rate=2 * GB, **DIRECT))  # fmt: skip
    (line,) = lines(best.blocks(results))
    assert (line["task"], line["block"]) == ("read, sequential, O_DIRECT", "1 MiB")
    assert line["fastest engine"] == "io_uring\ndepth 16" and line["runner-up"] == "pread\ndepth 16"
    assert line["bytes"].startswith("5.00 GB/s (") and line["bytes"].endswith("\n83 % of fio\n10 % of the copy engine")
    assert line["its bytes"].endswith("\n42 % of fio\n5 % of the copy engine")
    assert line["cores per GB/s"].startswith("0.200 (")
    ratio, _, interval = line["ratio"].partition(" ")
    low, _, high = interval.strip("()").partition("–")
    assert ratio == "2.00" and 1.9 < float(low) < 2 < float(high) < 2.1


@pytest.mark.parametrize("others, runner_up, ratio", [
    ([], "no other was measured", "—"),
    (repeated("pread", rate=4.999 * GB), "pread\ndepth 16", "unclear"),
    ([storage("pread", rate=1 * GB)], "pread\ndepth 16", "5.01\nunclear"),
    (repeated("pread", rate=9 * GB, device="cpu"), "no other was measured", "—"),  # the CPU device does not compete
    (repeated("pread", rate=4 * GB, depth=32), "pread\ndepth 32", "1.25"),
    ([*repeated("pread", rate=3 * GB, depth=8), *repeated("pread", rate=4 * GB)], "pread\ndepth 16\nbest of 2 settings", "1.25"),
])  # fmt: skip
def test_runner_up_reflects_the_certainty_and_the_settings_of_its_rows(stored, others, runner_up, ratio):
    made = best.blocks(stored(repeated("io_uring"), others))
    (line,) = lines(made)
    assert line["fastest engine"].startswith("io_uring") and line["runner-up"] == runner_up and ratio in line["ratio"]
    assert ("chosen from 2 points by the same rows" in text(made)) == ("best of 2 settings" in runner_up)


def test_engines_are_compared_only_within_a_task_and_block_size(stored):
    shapes = [RANDOM, DIRECT, COLD, {"block_bytes": 4 * MI}, {}, {"lifetime": "pass"}, {"operation": "write"}]
    found = lines(best.blocks(stored(*[repeated("io_uring", rate=n * GB, **shape) for n, shape in enumerate(shapes, 1)])))
    assert [(line["task"], line["block"]) for line in found] == [
        ("read, sequential, warm page cache", "1 MiB"), ("read, sequential, warm page cache", "4 MiB"),
        ("read, sequential, warm page cache, each pass opens and closes the files", "1 MiB"),
        ("read, sequential, cold page cache", "1 MiB"), ("read, sequential, O_DIRECT", "1 MiB"),
        ("read, random, O_DIRECT", "4 KiB"), ("write, sequential, warm page cache", "1 MiB"),
    ]  # fmt: skip
    assert {line["runner-up"] for line in found} == {"no other was measured"}
    assert "of fio" not in found[0]["bytes"] and found[6]["bytes"].endswith("18 % of the copy engine")  # d2h for a write


# --- fio, CPU


def test_engines_are_compared_with_fio_of_the_same_job(stored):
    some = [repeated("pread", rate=3 * GB, **DIRECT), repeated("io_uring", rate=5.1 * GB, **DIRECT), repeated("mmap", rate=9 * GB),
            repeated("io_uring", rate=0.5 * GB, **RANDOM)]  # fmt: skip
    found = lines(against_fio.blocks(stored(*some, limit(FIO, 5.9 * GB, 6 * GB, 6.2 * GB))))
    assert [line["engine"].split("\n")[0] for line in found] == [against_fio.FIO, "io_uring", "pread", against_fio.FIO, "io_uring"]
    assert found[0]["bytes"] == "6.00 GB/s (5.90–6.20)" and found[0]["IOPS"].startswith("5.72 k/s (")
    assert [line["of fio"] for line in found] == ["—", "85 %", "50 %", "—", "50 %"]
    assert found[4]["IOPS"].startswith("122 k/s (") and found[4]["depth × threads"] == "256 × 1"
    assert found[3]["IOPS"] == "244 k/s" and found[1]["p50"].startswith("3.2")


def test_cpu_cost_is_in_cores_per_gigabyte_per_second(stored):
    found = lines(cpu.blocks(stored(repeated("io_uring", rate=5 * GB, cpu=0.4), repeated("mmap", rate=2 * GB, cpu=0.1))))
    assert [line["engine"] for line in found] == ["mmap\ndepth 16", "io_uring\ndepth 16"]
    assert found[0]["cores per GB/s"].startswith("0.100 (") and found[1]["cores per GB/s"].startswith("0.400 (")
    assert [line["cores at this rate"] for line in found] == ["0.200", "2.00"]  # cost times rate
    assert found[0]["× the least"] == "1" and found[1]["× the least"].startswith("4.00 (")


# --- open load


def offered(rate: float, number: int = 0, status: str = "ok", **changes) -> dict:
    """One row of an open load with `rate` blocks of 64 KiB due per second."""
    changes = {"in_flight": 4, "samples": 5000} | changes
    row = storage("io_uring", number, rate=rate * 64 * KI, arrivals="poisson", block_bytes=64 * KI, **changes)
    return row | {"status": status}


def test_latency_under_load_counts_from_the_due_time_and_needs_samples(stored):
    waited = {"latency_ns": rows.latency(np.full(20_000, 8_000_000)), "service_ns": rows.latency(np.full(20_000, 4_000_000))}
    some = [offered(1000, n) for n in range(3)] + [offered(2000, n, samples=20_000, figures=waited) for n in range(3)]
    some += [offered(4000, n, samples=500, status="unsustainable" if n == 1 else "ok") for n in range(3)]
    found = lines(under_load.blocks(stored(repeated("io_uring"), some)))
    assert [line["due"] for line in found] == ["1.00 k/s", "2.00 k/s", "4.00 k/s"]
    assert [line["sustained"] for line in found] == ["yes", "yes", "no"]
    assert found[0]["p50"].startswith("4.0") and found[0]["p99"].startswith("4.0") and found[0]["p99.9"] == "—"
    assert found[1]["p50"].startswith("8.00 ms") and found[1]["p99.9"].startswith("8.00 ms")
    assert found[2]["p99"] == "—" and "(" not in found[2]["p50"]  # 5 samples beyond p99; no interval beyond saturation
    assert under_load.blocks(stored(repeated("io_uring"), name="closed")) == []
    (line,) = lines(best.blocks(stored(repeated("io_uring", rate=1e7, block_bytes=64 * KI), some, name="both")))
    assert line["bytes"].startswith("10.0 MB/s")  # an open load gives the rate, so it does not compete


# --- rows to doubt


SKEWED = np.r_[np.full(900, 1_000), np.full(100, 100_000)]  # ns; the mean is 11 times the median


@pytest.mark.parametrize("changes, codes", [
    ({}, []),
    ({"rate": 6.2 * GB, **DIRECT}, []),  # 3 % above fio is noise
    ({"rate": 7 * GB, **DIRECT}, [checks.FIO]),
    ({"rate": 7 * GB}, []),  # the page cache may be faster than the drive
    ({"rate": 60 * GB}, [checks.LINK]),
    ({"rate": 60 * GB, "limits": LIMITS | {FIO: 55 * GB}, **DIRECT}, [checks.LINK]),  # the tighter of both limits
    ({"in_flight": 31}, []),
    ({"in_flight": 36}, [checks.LITTLE]),
    ({"in_flight": 36, "depth": 32}, []),
    ({"in_flight": 36, "threads": 2}, []),
    ({"rate": 20e6 * 4 * KI, "block_bytes": 4 * KI, "limits": {}, "figures": {"latency_ns": rows.latency(SKEWED)}}, [checks.LITTLE]),
    ({"rate": 4e6 * 4 * KI, "block_bytes": 4 * KI, "limits": {},
      "figures": {"latency_ns": rows.latency(np.r_[np.full(600, 10_000), np.full(400, 10)])}}, []),  # the median would be too strict
    ({"in_flight": 36, "samples": 33}, []),  # a short phase: those in flight at its beginning matter
    ({"in_flight": 60, "lifetime": "pass", "samples": 500}, []),  # half of the blocks of a pass have no time
    ({"in_flight": 60, "lifetime": "pass"}, [checks.LITTLE]),
    ({"in_flight": 9000, "arrivals": "poisson", "figures": {"service_ns": rows.latency(np.full(1000, 3_000_000))}}, []),
    ({"path": {"read_bytes": MI}, **COLD}, [checks.FEWER]),
    ({"path": {"read_bytes": 995 * MI}, **COLD}, []),
    ({"path": {"written_bytes": MI}, "operation": "write", **DIRECT}, [checks.FEWER]),
    ({"path": {"written_bytes": MI}, "operation": "write"}, []),  # it ends in the page cache
    ({"path": {"read_bytes": 20 * MI}}, [checks.MORE]),
    ({"path": {"resident_after": 0.5}}, [checks.EVICTED]),
    ({"path": {"resident_after": 0.5}, **DIRECT}, [checks.CACHED]),
    ({"path": {"resident_after": 0.5}, **COLD}, []),
    ({"in_flight": 36, "rate": 7 * GB, "path": {"resident_after": 0.5}, **DIRECT}, [checks.FIO, checks.LITTLE, checks.CACHED]),
])  # fmt: skip
def test_rows_to_doubt_are_marked_and_said_in_words(stored, changes, codes):
    results = stored(repeated("io_uring", **changes), repeated("mmap", rate=1 * GB))
    (own,) = checks.of_cells(results.cells)[results.cells["engine"] == "io_uring"].map(tuple).unique()
    assert list(own) == codes
    quality = text(measurement_quality.blocks(results))
    for code, (short, long) in checks.WORDS.items():
        shown = [line["to doubt"].split("\n") for line in lines(paths.blocks(results)) if "io_uring" in line["engine"]]
        assert all((short in words) == (code in codes) for words in shown)
        assert (f"To doubt: 3 of 6 rows (io_uring) have {long}" in quality) == (code in codes)
    limits = {checks.FIO, checks.LINK}
    marks = {flags.MARKS[flags.ABOVE_LIMIT]: limits, flags.MARKS[flags.CONTRADICTED]: set(codes) - limits}
    cell = next(line["engine"] for line in lines(paths.blocks(results)) if "io_uring" in line["engine"])
    assert all((mark in cell) == bool(reasons & set(codes)) for mark, reasons in marks.items())


def test_flagged_row_counts_and_is_explained_in_the_report(folder):
    some = [*repeated("io_uring", in_flight=40, rate=5 * GB), *repeated("pread", rate=3 * GB)]
    page = report(folder(some, catalogue=storage_rows.CATALOGUE))
    answer = page[page.index("## The answer") : page.index("## What was measured")]
    assert re.search(r"5\.00 GB/s \([\d.–]+\) ‖", answer) and "‖ 3 of 6 rows contradict their own data" in answer
    measured = page[page.index("## What was measured") : page.index("## CPU cost")]
    assert "3 of 6 rows (io_uring) have a rate more than 5 % above Little's law (2 × depth × threads / mean time" in measured
    assert "rate above Little's law" in page[page.index("## Path of the bytes") :]


# --- paths


def test_path_shows_mode_residency_and_bytes_counted_beside_bytes_requested(stored):
    counted = {"device_read_bytes": 990 * MI, "uring": "interrupt", "requested_bytes": 1000 * MI, "read_bytes": 1000 * MI}
    found = lines(paths.blocks(stored(repeated("io_uring", path=counted, **DIRECT), repeated("mmap"), repeated("pread", **COLD))))
    by_engine = {line["engine"].split("\n")[0]: line for line in found}
    ring, mapped, cold = (by_engine[name] for name in ("io_uring", "mmap", "pread"))
    assert ring["mode"] == "pinned memory\nuring interrupt" and ring["file system"] == "ext4" and ring["resident"] == "0 % → 0 %"
    assert (ring["requested"], ring["read from the drive"], ring["device read"]) == ("1.05 GB", "1.05 GB", "1.04 GB")
    assert mapped["mode"] == "registered page cache" and mapped["resident"] == "100 % → 100 %"
    assert mapped["read from the drive"] == "0 B" and mapped["device read"] == "—" and cold["task"].endswith("cold page cache")
    assert "written to the drive" not in ring and {line["to doubt"] for line in found} == {"—"}
    (line,) = lines(paths.blocks(stored(repeated("pread", operation="write"), name="write")))
    assert line["written to the drive"] == "1.05 GB" and line["read from the drive"] == "0 B"


# --- GPUDirect


def entry(results) -> str:
    return text(gpudirect.blocks(results))


def test_gpudirect_is_computed_from_the_limits(stored):
    found = entry(stored(repeated("io_uring", rate=4 * GB, cpu=0.5, **DIRECT), repeated("pread", rate=1 * GB, **DIRECT)))
    assert "Read, sequential, O_DIRECT, 1 MiB: fio reaches 6.00 GB/s, and io_uring, the fastest engine, 4.00 GB/s." in found
    assert "at most 1.50 times as fast" in found and "costs 0.500 cores per GB/s" in found
    assert "At fio's rate this would be 3.00 cores" in found and "at least 12.0 GB/s of traffic in host memory" in found
    assert "The copy engine moves 50.0 GB/s; fio's rate is 12 % of this" in found and "No row used GPUDirect." in found


@pytest.mark.parametrize("some, expected", [
    (repeated("io_uring", rate=6.1 * GB, **DIRECT), "GPUDirect could not make it faster, because the drive is the limit."),
    (repeated("io_uring", rate=2 * GB, limits=LIMITS | {H2D: 3 * GB}, **DIRECT),
     "The copy engine moves 3.00 GB/s, so it limits the path through host memory."),
    (repeated("io_uring", limits={FIO: 6 * GB}, device="cpu", **DIRECT), "There is no limit of the copy engine"),
    (repeated("cufile", path={"mode": "cuFile, nvidia-fs loaded"}, **DIRECT), "In 3 rows cuFile ran with nvidia-fs loaded"),
    (repeated("io_uring", limits=NO_FIO, **DIRECT), gpudirect.MISSING),
    (repeated("io_uring"), gpudirect.MISSING),
    (repeated("io_uring", operation="write", limits={D2H: 50 * GB, FIO.replace("read", "write"): 6 * GB}, **DIRECT),
     gpudirect.MISSING),
])  # fmt: skip
def test_gpudirect_says_only_what_the_rows_show(stored, some, expected):
    assert expected in entry(stored(some))


# --- the report and the blocks


def test_report_without_fio_says_so(folder):
    some = [*repeated("io_uring", limits=NO_FIO, **DIRECT), *repeated("pread", rate=2 * GB, limits=NO_FIO, **DIRECT)]
    page = report(folder(some, catalogue=storage_rows.CATALOGUE))
    assert best.NO_FIO in page and gpudirect.MISSING in page and "## Bandwidth and IOPS against fio" not in page
    assert "10 % of the copy engine" in page and "% of fio" not in page
    with_fio = report(folder(repeated("io_uring", **DIRECT), catalogue=storage_rows.CATALOGUE, name="fio"))
    assert best.NO_FIO not in with_fio and "## Bandwidth and IOPS against fio" in with_fio
    assert "83 % of fio sequential read, 1 MiB, depth 16 × 1" in with_fio  # the limit in words in the table of points


def test_report_has_its_sections_in_order_in_both_renderings(folder):
    some = [repeated("io_uring", **DIRECT), repeated("mmap"), [offered(1000, n) for n in range(3)], storage("pread", in_flight=40)]
    directory = folder(*some, storage_rows.limit(FIO, 6 * GB), catalogue=storage_rows.CATALOGUE)
    page = report(directory)
    order = ["The answer", "What was measured", "Bandwidth and IOPS against fio", "CPU cost", "Latency under load",
             "Path of the bytes", "What GPUDirect would change", "Every point", "Limits"]  # fmt: skip
    for document, heading in ((page, "## {}\n"), ((directory / "report.html").read_text(), "<h2>{}</h2>")):
        places = [document.find(heading.format(title)) for title in order]
        assert places == sorted(places) and -1 not in places
        assert "GPUDirect could make it at most 1.20 times as fast" in document and "‖" in document


def test_report_of_rows_that_do_not_count_has_no_section_of_storage(folder):
    failed = storage() | {"status": "failed", "cause": "error", "reason": "EIO at offset 4096"}
    del failed["figures"], failed["bounds"], failed["details"]
    page = report(folder(failed, catalogue=storage_rows.CATALOGUE))
    assert "EIO at offset 4096" in page and "## CPU cost" not in page and "GPUDirect" not in page


BLOCKS = {
    "engines": "fastest engine", "against_fio": "fio, to host memory", "cpu_cost": "× the least", "latency_under_load": "due",
    "paths": "file system", "gpudirect": "fio reaches 6.00 GB/s",
}  # fmt: skip


def test_blocks_of_a_page_are_written_from_rows(folder, tmp_path, capsys):
    good = folder(repeated("io_uring", **DIRECT), [offered(1000, n) for n in range(3)], catalogue=storage_rows.CATALOGUE, name="good")
    bad = folder(storage() | {"status": "failed"}, catalogue=storage_rows.CATALOGUE, name="bad")
    (page := tmp_path / "page.md").write_text("".join(f"<!-- {name}:begin -->\n<!-- {name}:end -->\n" for name in BLOCKS))
    for name, expected in BLOCKS.items():
        assert main(["readme", str(good), str(page), "--block", name]) == 0
        written = page.read_text().partition(f"<!-- {name}:begin -->")[2].partition(f"<!-- {name}:end -->")[0]
        assert expected in written and "NVIDIA H200" in written
        assert main(["readme", str(good), str(page), "--block", name, "--check"]) == 0
        assert main(["readme", str(bad), str(page), "--block", name]) == 2
        assert "allowed: rows of `storage`" in capsys.readouterr().err


def test_comparison_judges_bytes_but_not_blocks():
    judged = [metric.name for metric in catalogue.merged([storage_rows.CATALOGUE]).experiment("storage").compared]
    assert judged == ["throughput", "p50", "p99", "cpu_seconds_per_gib"]


def test_order_of_engines_is_that_of_the_page():
    names = ("nvme_user", "io_uring", "pread", "cufile")
    assert sorted(names, key=points.place) == ["pread", "io_uring", "cufile", "nvme_user"]
