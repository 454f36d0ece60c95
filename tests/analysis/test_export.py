"""Exports have the fields that other tools need, and installed tools read them; timelines are read and drawn."""

import base64
import json
import lzma
import os
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as xml
import zlib
from pathlib import Path

import numpy as np
import other_rows
import pytest
import rows
from conftest import REFERENCE, main

from analysis import dark, trace
from analysis.errors import BadInput
from analysis.export.hdr import encode, file_names
from analysis.histogram import Histogram
from analysis.plots import timeline
from analysis.plots.style import figure_style

COMPARE = Path(os.environ.get("FEEDRATE_GBENCH_COMPARE", "/usr/share/benchmark/compare.py"))  # from libbenchmark-tools
POINTS = [rows.params(), rows.params("gpu_ring", window=1), rows.params("redis_list", producers=4)]
NAMES = ("host_polled+pinned", "gpu_ring", "redis_list+pinned")


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> Path:
    """Three points with three repetitions, and a row that is not ok. The first point also has an open load's
    distributions."""
    some = [rows.cell(point, n) for n in range(3) for point in POINTS]
    for row in some:
        row["time"]["started"] = f"2026-11-21T08:00:{10 * row['repetition']:02}Z"
        if row["params"] == POINTS[0]:
            for name, factor in (("service_ns", 1), ("send_lag_ns", 2)):
                row["figures"][name] = rows.latency(np.random.default_rng(factor).lognormal(9 + factor, 1, 3000))
    failed = rows.not_ok(rows.params(window=2), "failed", "it hung")
    return rows.write(tmp_path_factory.mktemp("export") / "run", [*some, failed])


def written(directory: Path, point: dict, repetition: int) -> dict:
    every = map(json.loads, (directory / "rows.jsonl").read_text().splitlines())
    return next(row for row in every if row.get("params") == point and row["repetition"] == repetition)


@pytest.fixture
def google(directory, tmp_path) -> dict:
    assert main(["export", str(directory), "--format", "google-benchmark", "--out", str(tmp_path / "out.json")]) == 0
    return json.loads((tmp_path / "out.json").read_text())


def test_google_benchmark_export_has_every_field_that_its_tools_read(google):
    context = google["context"]
    needed = {"date", "host_name", "executable", "num_cpus", "mhz_per_cpu", "cpu_scaling_enabled", "caches"}
    assert needed <= set(context) and context["library_build_type"] == "release"
    for one in google["benchmarks"]:
        assert all(isinstance(one[name], float) for name in ("real_time", "cpu_time")) and one["time_unit"] == "ns"
        assert all(isinstance(one[name], int) for name in ("iterations", "threads", "repetitions", "family_index"))
        repeated = one["run_type"] == "iteration" and one["repetition_index"] in range(3)
        assert one["name"] == one["run_name"] + ("" if repeated else f"_{one['aggregate_name']}")
    # Three points with throughput, p50 and p99, the first also with service p99; three repetitions, four aggregates.
    assert len(google["benchmarks"]) == (3 * 3 + 1) * (3 + 4)


def test_google_benchmark_export_has_the_numbers_of_the_rows(google, directory, folder, tmp_path):
    row = written(directory, POINTS[2], 1)
    name = "redis_list+pinned/echo/cuda/payload_bytes:64/batch:64/window:256/producers:4/workers:1/block:128/pack:1/streams:4"
    found = [one for one in google["benchmarks"] if one["name"] == name]
    one, rate = found[1], row["figures"]["messages_per_second"]
    assert [one["repetition_index"] for one in found] == [0, 1, 2]
    assert one["items_per_second"] == rate and one["bytes_per_second"] == rate * 64 and one["threads"] == 4
    assert (one["real_time"], one["cpu_time"]) == pytest.approx((1e9 / rate, 3e9 / rate))  # 3 threads
    assert one["iterations"] == row["details"]["counts"]["received"]
    tail = [one for one in google["benchmarks"] if one["name"] == f"{name}/p99"][1]
    assert tail["real_time"] == row["figures"]["latency_ns"]["p99"] and "items_per_second" not in tail
    times = [one["real_time"] for one in found]
    summed = {one["aggregate_name"]: one["real_time"] for one in google["benchmarks"]
              if one["run_name"] == name and one["run_type"] == "aggregate"}  # fmt: skip
    assert (summed["mean"], summed["cv"]) == pytest.approx((np.mean(times), np.std(times, ddof=1) / np.mean(times)))
    # Names of older rows are unchanged; with two experiments, names start with the experiment's name.
    out = tmp_path / "both.json"
    closed = rows.params(arrivals="closed", rate=0, trace_file="none")
    both = folder(rows.cell(closed), other_rows.launches(1))
    assert main(["export", str(both), "--format", "google-benchmark", "--out", str(out)]) == 0
    names = {one["run_name"] for one in json.loads(out.read_text())["benchmarks"]}
    assert {one.partition("/")[0] for one in names} == {"launch", "feeding"}
    assert "launch/graph/cuda/kernels:64/streams:1/threads:1/block:32/p99" in names
    name = "host_polled+pinned/echo/cuda/payload_bytes:64/batch:64/window:256/producers:1/workers:1/block:128/streams:4"
    assert f"feeding/{name}" in names


@pytest.mark.skipif(not COMPARE.is_file(), reason="needs Google Benchmark's tools/compare.py (libbenchmark-tools)")
def test_google_benchmark_compare_reads_the_export(google, tmp_path):
    for one in google["benchmarks"]:
        one["real_time"] *= 1.5 if one["run_name"].endswith("/p99") else 1
    (slower := tmp_path / "slower.json").write_text(json.dumps(google))
    words = [sys.executable, COMPARE, "--no-color", "benchmarks", tmp_path / "out.json", slower]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    changes = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines() if "/echo/" in line}
    for end, change in (("/p99_mean", "+0.5000"), ("/p50_mean", "+0.0000")):
        assert {expected for name, expected in changes.items() if name.endswith(end)} == {change}


@pytest.fixture
def logs(directory, tmp_path) -> dict[str, Path]:
    assert main(["export", str(directory), "--format", "hdr", "--out", str(tmp_path / "logs")]) == 0
    return {file.name.split("_echo")[0]: file for file in (tmp_path / "logs").iterdir()}


def test_hdr_export_has_a_file_per_point_and_an_interval_per_repetition(logs, folder, tmp_path):
    assert set(logs) == set(NAMES)
    comments = [line for line in logs["gpu_ring"].read_text().splitlines() if line.startswith("#")]
    assert "#[Histogram log format version 1.3]" in comments
    assert any(line.startswith("#[BaseTime: 1795248000.000 (seconds since epoch)]") for line in comments)
    tagged = [line.split(",") for line in logs["host_polled+pinned"].read_text().splitlines() if line[:4] == "Tag="]
    assert [fields[0] for fields in tagged] == [f"Tag={name}" for name in ("latency_ns", "service_ns", "send_lag_ns")] * 3
    assert [fields[1] for fields in tagged[::3]] == ["0.000", "10.000", "20.000"]
    assert {fields[2] for fields in tagged} == {"0.700"}
    row = rows.cell(rows.params())
    row["figures"]["latency_ns"]["histogram"]["overflow"] = 7
    assert main(["export", str(folder(row)), "--format", "hdr", "--out", str(tmp_path / "over")]) == 0
    (log,) = (tmp_path / "over").iterdir()
    assert "#[repetition 0: 7 more of latency_ns above 1099511627776 ns]" in log.read_text()


def test_file_names_are_short_and_distinct():
    points = ["a/b", "a_b", "A_B", "a\nb", "plain", "é" * 200, "é" * 201, "é" * 201 + "x", "x" * 250, "x" * 251]
    points += ["\udce9" * 255, "\udce9" * 256]  # bytes that are not UTF-8
    names = file_names(points, ".hlog")
    assert len({name.casefold() for name in names.values()}) == len(points)
    assert all(len(os.fsencode(name)) <= 255 and "/" not in name for name in names.values())
    assert names["plain"] == "plain.hlog" and names["x" * 250] == "x" * 250 + ".hlog"


def test_hdr_logs_of_long_and_similar_trace_files_are_separate(folder, tmp_path):
    traces = ["/data/" + "long/" * 80 + end for end in ("a.csv", "b.csv")] + ["/data/a_b.csv", "/data/a/b.csv"]
    cells = [rows.cell(rows.params(arrivals="trace", trace_file=trace)) for trace in traces]
    assert main(["export", str(folder(*cells)), "--format", "hdr", "--out", str(tmp_path / "logs")]) == 0
    logs = [file.read_text().splitlines()[0] for file in (tmp_path / "logs").iterdir()]
    assert sorted(trace in log for trace in traces for log in logs).count(True) == 4
    assert len(logs) == 4


def test_hdr_payload_has_the_documented_layout():
    """A header of 40 bytes, then zigzag LEB128: 1 empty bucket, count 3, 298 empty buckets (one given as count 0),
    count 200."""
    payload = base64.b64decode(encode(Histogram(8, np.array([1, 2, 300]), np.array([3, 0, 200]), 0)))
    assert struct.unpack(">ii", payload[:8]) == (0x1C849314, len(payload) - 8)
    plain = zlib.decompress(payload[8:])
    assert struct.unpack(">iiiiqqd", plain[:40]) == (0x1C849313, 6, 0, 2, 1, 1 << 40, 1.0)
    assert plain[40:] == bytes([0x01, 0x06, 0xD3, 0x04, 0x90, 0x03])


# --- timelines of committed traces


TRACES = [f"{REFERENCE}/h200/overlap/traces/{name}.json.xz" for name in ("serial", "ping_pong", "ring")]


def changed(tmp_path, change) -> trace.Trace:
    """The trace of `ping_pong` with a change to its events or to the description of its point."""
    document = json.loads(lzma.decompress(Path(TRACES[1]).read_bytes()))
    document["traceEvents"] = [one for one in document["traceEvents"] if change(one, document["otherData"])]
    (tmp_path / "one.json").write_text(json.dumps(document))
    return trace.read(str(tmp_path / "one.json"))


def on_gpu(event: dict) -> bool:
    return event["pid"] == 1 and event["ph"] == "X"


def test_trace_labels_work_by_the_ranges_around_its_launches():
    serial, ping_pong, ring = map(trace.read, TRACES)
    assert [one.title for one in (serial, ping_pong, ring)] == ["serial", "ping_pong", "ring, depth 3"]
    assert [track.name for track in serial.tracks] == ["stream 177 kernels", "stream 177 copies"]
    for one in (ping_pong, ring):
        assert [track.name.split()[2] for track in one.tracks] == ["copies", "kernels", "copies"]
        assert [{work.label for work in track.work} for track in one.tracks] == [{"copy in"}, {"process"}, {"copy out"}]
        begins = [track.work[0].begin for track in one.tracks]
        assert begins == sorted(begins) and begins[0] == 0 and all(len(track.work) == 32 for track in one.tracks)
    events = [one for one in json.loads(lzma.decompress(Path(TRACES[2]).read_bytes()))["traceEvents"] if on_gpu(one)]
    first, last = min(one["ts"] for one in events), max(one["ts"] + one["dur"] for one in events)
    assert ring.length == pytest.approx(last - first)
    cut = trace.window(ring, 60)  # ends during the first kernel
    assert [[work.end == 60 for work in track.work][-1:] for track in cut.tracks[1:]] == [[True], []]
    assert cut.length == ring.length


def test_trace_handles_missing_ranges_overlapping_work_and_no_work(tmp_path):
    def without_ranges(event, about):
        about["params"] = {"queue": "gpu_ring"}
        return event.get("cat") not in ("range", "api")

    def one_stream(event, about):  # like the branches of a graph
        event["tid"] = 354 if on_gpu(event) else event["tid"]
        return True

    one = changed(tmp_path, without_ranges)
    assert one.title == "one"
    assert {work.label for track in one.tracks for work in track.work} == {"copy to device", "copy to host", "stage_kernel"}
    one = changed(tmp_path, one_stream)
    assert len(one.tracks) > 1 and not any(track.name for track in one.tracks[1:])
    assert all(first.end <= second.begin for track in one.tracks for first, second in zip(track.work, track.work[1:]))
    with pytest.raises(BadInput, match="has no GPU work"):
        changed(tmp_path, lambda event, about: not on_gpu(event))


@pytest.mark.parametrize("name, expected", [
    ("feedrate::(anonymous namespace)::stage_kernel(StageWork, std::byte const*, bool)", "stage_kernel"),
    ("memset_kernel", "memset_kernel"), ("()", "()"),
    ("void feedrate::resident<feedrate::Echo, 4>(feedrate::Lanes<8>*)", "resident"),
])  # fmt: skip
def test_kernel_names_are_shortened(name, expected):
    assert trace.short(name) == expected


def test_timelines_share_one_axis_in_one_svg_for_light_and_dark(tmp_path, monkeypatch, capsys):
    with figure_style():
        figure = timeline.draw([trace.read(file) for file in TRACES]).figure
    assert len({axes.get_xlim() for axes in figure.axes}) == 1 and figure.axes[0].get_xlim()[0] == 0
    titles = ["serial: 3.70 ms in total", "ping_pong: 1.99 ms in total", "ring, depth 3: 1.99 ms in total"]
    assert [axes.get_title(loc="left") for axes in figure.axes] == titles
    assert {text.get_text() for text in figure.legends[0].get_texts()} == {"copy in", "process", "copy out"}
    heights = [axes.get_position().height / len(axes.get_yticks()) for axes in figure.axes]
    assert max(heights) / min(heights) < 1.2
    out = tmp_path / "all.svg"
    assert main(["timeline", *TRACES, "--out", str(out)]) == 0 and str(out) in capsys.readouterr().out
    text = out.read_text()
    root = xml.fromstring(text)
    assert root.tag.endswith("svg") and float(root.get("width").removesuffix("pt")) < 72 * (timeline.WIDTH + 1)
    style = re.search(r"<style>@media screen and \(prefers-color-scheme:dark\)\{(.*?)</style>", text, re.DOTALL)[1]
    assert f"svg{{fill:{dark.TEXT}}}" in style and style.count("{") == style.count("}") - 1  # the brace of @media
    colours = {colour.upper() for colour in re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", text.replace(style, ""))}
    assert len(colours) > 4 and colours <= dark.FIGURES.keys()
    monkeypatch.setattr(timeline, "MOST", 50)
    assert main(["timeline", *TRACES, "--out", str(out)]) == 2
    assert "288 kernels and copies are too many; allowed: --milliseconds N" in capsys.readouterr().err
    assert main(["timeline", *TRACES, "--out", str(out), "--milliseconds", "0.2"]) == 0 and len(out.read_text()) < len(text)
