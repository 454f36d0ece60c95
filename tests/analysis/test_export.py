"""Exports: what other tools need is there, and they read it where they are installed."""

import base64
import json
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import rows

from analysis.__main__ import main
from analysis.export.hdr import encode
from analysis.histogram import Histogram

COMPARE = Path(os.environ.get("FEEDRATE_GBENCH_COMPARE", "/usr/share/benchmark/compare.py"))  # libbenchmark-tools'
POINTS = [rows.params(), rows.params("gpu_ring", window=1), rows.params("redis_list", producers=4)]


@pytest.fixture
def directory(tmp_path):
    """Three points of three repetitions; the first has an open load's distributions too. And a row that is not ok."""
    some = [rows.cell(point, repetition) for repetition in range(3) for point in POINTS]
    for row in some:
        row["time"]["started"] = f"2026-11-21T08:00:{10 * row['repetition']:02}Z"
        if row["params"] == POINTS[0]:
            for name, factor in (("service_ns", 1), ("send_lag_ns", 2)):
                row["figures"][name] = rows.latency(np.random.default_rng(factor).lognormal(9 + factor, 1, 3000).astype(np.int64))
    return str(rows.write(tmp_path / "run", [*some, rows.not_ok(rows.params(window=2), "failed", "it hung")]))


@pytest.fixture
def google(directory, tmp_path):
    file = tmp_path / "out/feedrate.json"
    assert main(["export", directory, "--format", "google-benchmark", "--out", str(file)]) == 0
    return json.loads(file.read_text())


def test_google_benchmark_has_every_field_its_tools_read(google):
    context, benchmarks = google["context"], google["benchmarks"]
    needed = {"date", "host_name", "executable", "num_cpus", "mhz_per_cpu", "cpu_scaling_enabled", "caches"}
    assert needed <= set(context) and context["library_build_type"] == "release"
    for one in benchmarks:
        assert isinstance(one["name"], str) and one["name"].startswith(one["run_name"])
        assert one["run_type"] in ("iteration", "aggregate") and one["time_unit"] == "ns"
        assert all(isinstance(one[name], float) for name in ("real_time", "cpu_time"))
        assert all(isinstance(one[name], int) for name in ("iterations", "threads", "repetitions", "family_index"))
        if one["run_type"] == "iteration":
            assert one["name"] == one["run_name"] and one["repetition_index"] in range(3)
        else:
            assert one["name"] == f"{one['run_name']}_{one['aggregate_name']}"
    # three points, each with throughput, p50 and p99, the first with service p99; three repetitions, four aggregates
    assert len(benchmarks) == (3 * 3 + 1) * (3 + 4)


def test_google_benchmark_holds_the_rows_numbers(google, directory):
    written = [json.loads(line) for line in Path(directory, "rows.jsonl").read_text().splitlines()]
    row = next(row for row in written if row.get("params") == POINTS[2] and row["repetition"] == 1)
    name = (
        "redis_list+pinned/echo/cuda/payload_bytes:64/batch:64/window:256/producers:4/workers:1/block:128/"
        "pack:1/streams:4"
    )
    found = [one for one in google["benchmarks"] if one["name"] == name]
    assert [one["repetition_index"] for one in found] == [0, 1, 2]
    one, rate = found[1], row["figures"]["messages_per_second"]
    assert one["items_per_second"] == rate and one["bytes_per_second"] == rate * 64
    assert one["real_time"] == pytest.approx(1e9 / rate) and one["cpu_time"] == pytest.approx(3e9 / rate)  # 3 threads
    assert one["threads"] == 4 and one["iterations"] == row["details"]["counts"]["received"]
    tail = [one for one in google["benchmarks"] if one["name"] == f"{name}/p99"]
    assert tail[1]["real_time"] == row["figures"]["latency_ns"]["p99"] and "items_per_second" not in tail[1]
    times = [one["real_time"] for one in found]
    aggregates = {
        one["aggregate_name"]: one
        for one in google["benchmarks"]
        if one["run_name"] == name and one["run_type"] == "aggregate"
    }
    assert aggregates["mean"]["real_time"] == pytest.approx(np.mean(times))
    assert aggregates["cv"]["real_time"] == pytest.approx(np.std(times, ddof=1) / np.mean(times))


@pytest.mark.skipif(not COMPARE.is_file(), reason="needs Google Benchmark's tools/compare.py (libbenchmark-tools)")
def test_google_benchmarks_own_compare_reads_it(google, directory, tmp_path):
    file = tmp_path / "out/feedrate.json"
    for one in google["benchmarks"]:
        if one["run_name"].endswith("/p99"):
            one["real_time"] *= 1.5
    slower = tmp_path / "slower.json"
    slower.write_text(json.dumps(google))
    done = subprocess.run(
        [sys.executable, COMPARE, "--no-color", "benchmarks", file, slower], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    changes = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines() if "/echo/" in line}
    assert {change for name, change in changes.items() if name.endswith("/p99_mean")} == {"+0.5000"}
    assert {change for name, change in changes.items() if name.endswith("/p50_mean")} == {"+0.0000"}


def test_rows_from_before_an_axis_keep_their_names(tmp_path):
    names = []
    for name, more in (("old", {}), ("new", {"arrivals": "closed", "rate": 0, "trace_file": "none"})):
        source, file = rows.write(tmp_path / name, [rows.cell(rows.params(**more))]), tmp_path / f"{name}.json"
        main(["export", str(source), "--format", "google-benchmark", "--out", str(file)])
        names.append([one["name"] for one in json.loads(file.read_text())["benchmarks"]])
    assert names[0] == names[1]


@pytest.fixture
def logs(directory, tmp_path):
    out = tmp_path / "logs"
    assert main(["export", directory, "--format", "hdr", "--out", str(out)]) == 0
    return {file.name.split("_echo")[0]: file for file in out.iterdir()}


def test_hdr_log_has_a_file_a_point_and_an_interval_a_repetition(logs):
    assert set(logs) == {"host_polled+pinned", "gpu_ring", "redis_list+pinned"}
    comments = [line for line in logs["gpu_ring"].read_text().splitlines() if line.startswith("#")]
    assert "#[Histogram log format version 1.3]" in comments
    assert any(line.startswith("#[BaseTime: 1795248000.000 (seconds since epoch)]") for line in comments)
    tagged = [line.split(",") for line in logs["host_polled+pinned"].read_text().splitlines() if line[:4] == "Tag="]
    assert [fields[0] for fields in tagged] == [
        f"Tag={name}" for name in ("latency_ns", "service_ns", "send_lag_ns")
    ] * 3
    assert [fields[1] for fields in tagged[::3]] == ["0.000", "10.000", "20.000"]
    assert {fields[2] for fields in tagged} == {"0.700"}


def test_payload_is_the_documented_layout():
    """A header of 40 bytes, then zigzag LEB128: an empty bucket, 3, 298 empty ones (one of them told as 0), 200."""
    payload = base64.b64decode(encode(Histogram(8, np.array([1, 2, 300]), np.array([3, 0, 200]), 0)))
    assert struct.unpack(">ii", payload[:8]) == (0x1C849314, len(payload) - 8)
    plain = zlib.decompress(payload[8:])
    assert struct.unpack(">iiiiqqd", plain[:40]) == (0x1C849313, 6, 0, 2, 1, 1 << 40, 1.0)
    assert plain[40:] == bytes([0x01, 0x06, 0xD3, 0x04, 0x90, 0x03])


def test_the_package_reads_back_every_count(logs, directory):
    log, histogram = pytest.importorskip("hdrh.log"), pytest.importorskip("hdrh.histogram")
    written = [json.loads(line) for line in Path(directory, "rows.jsonl").read_text().splitlines()]
    for name, point in zip(("host_polled+pinned", "gpu_ring", "redis_list+pinned"), POINTS):
        reader = log.HistogramLogReader(str(logs[name]), histogram.HdrHistogram(1, 1 << 40, 2))
        for repetition in range(3):
            row = next(row for row in written if row.get("params") == point and row["repetition"] == repetition)
            for tag in ("latency_ns", "service_ns", "send_lag_ns"):
                if tag in row["figures"]:
                    interval = reader.get_next_interval_histogram()
                    expected = Histogram.from_row(row["figures"][tag]["histogram"])
                    assert interval.get_tag() == tag and interval.get_total_count() == expected.total
                    counts = {index: interval.get_count_at_index(index) for index in range(interval.counts_len)}
                    assert {index: count for index, count in counts.items() if count} == dict(
                        zip(expected.index.tolist(), expected.counts.tolist())
                    )
                    for percent in (50, 99, 99.9):
                        ours = expected.percentile(percent)
                        assert interval.get_value_at_percentile(percent) == pytest.approx(ours, rel=1 / 128)
        assert reader.get_next_interval_histogram() is None


def test_samples_beyond_the_range_are_said(tmp_path):
    row = rows.cell(rows.params())
    row["figures"]["latency_ns"]["histogram"]["overflow"] = 7
    a = rows.write(tmp_path / "a", [row])
    main(["export", str(a), "--format", "hdr", "--out", str(tmp_path / "logs")])
    (log,) = (tmp_path / "logs").iterdir()
    assert "#[repetition 0: 7 more of latency_ns above 1099511627776 ns]" in log.read_text()


def test_bad_input(tmp_path, directory, capsys):
    row = rows.cell(rows.params())
    row["figures"]["latency_ns"]["histogram"]["sub_bucket_bits"] = 7
    coarse = rows.write(tmp_path / "coarse", [row])
    none = rows.write(tmp_path / "none", [rows.not_ok(rows.params(), "failed", "it hung")])
    for source, form, said in (
        ("missing", "hdr", ["DIR 'missing'", "no such directory"]),
        (str(none), "google-benchmark", ["DIR", "no row is ok"]),
        (str(coarse), "hdr", ["DIR", "latency_ns has 2^7 sub-buckets", "allowed: 2^8"]),
    ):
        out = tmp_path / "nothing"
        assert main(["export", source, "--format", form, "--out", str(out)]) == 2
        error = capsys.readouterr().err
        assert all(part in error for part in said), error
        assert not out.exists()
    for form, wrong in (("google-benchmark", tmp_path), ("hdr", coarse / "rows.jsonl")):
        assert main(["export", directory, "--format", form, "--out", str(wrong)]) == 2
        assert f"error: --out '{wrong}'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as exit_:
        main(["export", directory, "--format", "csv", "--out", "x"])
    assert exit_.value.code == 2 and "google-benchmark" in capsys.readouterr().err
