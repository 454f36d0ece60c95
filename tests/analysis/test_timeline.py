"""Timelines drawn one above the other: what is read of a trace, what is drawn, and what is no trace."""

import json
import re
import xml.etree.ElementTree as xml

import pytest
import trace_files as made

from analysis import dark, timeline, trace
from analysis.__main__ import main
from analysis.plots import timeline as drawn
from analysis.plots.style import looks


@pytest.fixture
def files(tmp_path):
    """serial, ping_pong and ring, as the command takes them."""
    told = {"serial": {}, "ping_pong": {}, "ring": {"depth": 3}}
    for name, params in told.items():
        (tmp_path / f"{name}.json").write_text(made.pipeline(name, **params))
    return [str(tmp_path / f"{name}.json") for name in told]


def read(tmp_path, text: str) -> trace.Trace:
    (tmp_path / "one.json").write_text(text)
    return trace.read(str(tmp_path / "one.json"))


def test_a_stage_is_what_the_range_around_its_launch_says(files):
    """All stages are launches of one kernel, and all of them lie in the harness's own range."""
    serial = trace.read(files[0])
    (track,) = serial.tracks
    assert track.name == "stream 13 kernels" and len(track.work) == 18
    assert [work.label for work in track.work[:4]] == ["decode", "normalise", "reduce", "decode"]


def test_times_are_since_the_first_work(files):
    serial, ping_pong, ring = map(trace.read, files)
    assert (serial.tracks[0].work[0].begin, serial.tracks[0].work[0].end) == pytest.approx((0, 60))
    assert serial.length == pytest.approx(18 * 60) and ping_pong.length == pytest.approx(8 * 60)
    assert [one.title for one in (serial, ping_pong, ring)] == ["serial", "ping_pong", "ring, depth 3"]
    assert [track.work[0].begin for track in ring.tracks] == pytest.approx([0, 60, 120])


def test_copies_have_tracks_of_their_own(tmp_path):
    one = read(tmp_path, made.pipeline("ring", stages=("copy in", "process", "copy out")))
    assert [track.name for track in one.tracks] == ["stream 13 copies", "stream 14 kernels", "stream 15 copies"]
    assert {work.label for track in one.tracks for work in track.work} == {"copy in", "process", "copy out"}


def test_without_a_range_the_kernel_has_its_own_name(tmp_path):
    document = json.loads(made.pipeline("graph", stages=("copy in", "process")))
    document["traceEvents"] = [one for one in document["traceEvents"] if one.get("cat") not in ("range", "api")]
    one = read(tmp_path, json.dumps(document))
    assert {work.label for track in one.tracks for work in track.work} == {"copy to device", "stage_kernel"}


@pytest.mark.parametrize(
    "name, said",
    [
        (made.KERNEL, "stage_kernel"),
        ("void feedrate::resident<feedrate::Echo, 4>(feedrate::Lanes<8>*)", "resident"),
        ("memset_kernel", "memset_kernel"),
        ("()", "()"),
    ],
)
def test_kernels_are_named_shortly(name, said):
    assert trace.short(name) == said


def test_what_overlaps_in_one_stream_lies_below_each_other(tmp_path):
    """As the branches of a graph do, which was launched into one stream."""
    document = json.loads(made.pipeline("ping_pong"))
    for one in document["traceEvents"]:
        if one["pid"] == made.GPU and one["ph"] == "X":
            one["tid"] = 27
    one = read(tmp_path, json.dumps(document))
    assert [track.name for track in one.tracks] == ["stream 13 kernels", "", ""]
    for track in one.tracks:
        assert all(first.end <= second.begin for first, second in zip(track.work, track.work[1:]))
    assert sum(len(track.work) for track in one.tracks) == 18


def test_another_experiment_has_its_files_name(tmp_path):
    document = json.loads(made.pipeline("ring"))
    document["otherData"]["params"] = {"queue": "gpu_ring"}
    assert read(tmp_path, json.dumps(document)).title == "one"


def test_a_window_begins_with_the_first_work(files):
    cut = trace.window(trace.read(files[1]), 100)
    assert [[work.end for work in track.work] for track in cut.tracks] == [[60, 100], [100], []]
    assert cut.length == pytest.approx(480)


def test_all_have_one_time_axis_and_one_look(files):
    with looks():
        figure = drawn.draw([trace.read(file) for file in files]).figure
    assert len({axes.get_xlim() for axes in figure.axes}) == 1 and figure.axes[0].get_xlim()[0] == 0
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "serial: 1.08 ms in all", "ping_pong: 480 µs in all", "ring, depth 3: 480 µs in all",
    ]  # fmt: skip
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["decode", "normalise", "reduce"]
    heights = [axes.get_position().height / len(axes.get_yticks()) for axes in figure.axes]
    assert max(heights) / min(heights) < 1.2


def test_the_command_writes_one_svg_for_light_and_dark(files, tmp_path, capsys):
    out = tmp_path / "all.svg"
    assert main(["timeline", *files, "--out", str(out)]) == 0 and str(out) in capsys.readouterr().out
    text = out.read_text()
    root = xml.fromstring(text)
    assert root.tag.endswith("svg") and float(root.get("width").removesuffix("pt")) < 72 * (drawn.WIDTH + 1)
    style = re.search(r"<style>@media screen and \(prefers-color-scheme:dark\)\{(.*?)</style>", text, re.DOTALL)[1]
    assert f"svg{{fill:{dark.TEXT}}}" in style and style.count("{") == style.count("}") - 1  # that of @media
    colours = {colour.upper() for colour in re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", text.replace(style, ""))}
    assert len(colours) > 4 and colours <= dark.FIGURES.keys()


def test_the_command_is_the_same_each_time(files, tmp_path):
    for name in ("a.svg", "b.svg"):
        assert main(["timeline", *files, "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_window_shows_less(files, tmp_path):
    arguments = ["timeline", *files, "--out", str(tmp_path / "cut.svg")]
    assert main([*arguments, "--milliseconds", "0.1"]) == 0
    assert main(["timeline", *files, "--out", str(tmp_path / "all.svg")]) == 0
    assert (tmp_path / "cut.svg").stat().st_size < (tmp_path / "all.svg").stat().st_size


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf"])
def test_a_window_of_nothing_is_bad_input(files, tmp_path, value, capsys):
    assert main(["timeline", *files, "--out", str(tmp_path / "x.svg"), f"--milliseconds={value}"]) == 2
    assert "allowed: more than 0" in capsys.readouterr().err


def test_too_many_bars_are_bad_input(files, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(timeline, "MOST", 50)
    assert main(["timeline", *files, "--out", str(tmp_path / "x.svg")]) == 2
    assert "54 kernels and copies are too many to be seen; allowed: --milliseconds N" in capsys.readouterr().err
    assert main(["timeline", *files, "--out", str(tmp_path / "x.svg"), "--milliseconds", "0.5"]) == 0


@pytest.mark.parametrize(
    "text, said",
    [
        (made.cpu(), "holds no work of a GPU"),
        ("", "is no timeline"),
        ("[]", "is no timeline"),
        ('{"traceEvents": [{"ph": "X"}]}', "is no timeline"),
        (made.pipeline("ring")[:3000], "is no timeline"),
    ],
)
def test_what_is_no_timeline_is_bad_input(tmp_path, capsys, text, said):
    (tmp_path / "one.json").write_text(text)
    assert main(["timeline", str(tmp_path / "one.json"), "--out", str(tmp_path / "x.svg")]) == 2
    assert said in capsys.readouterr().err and not (tmp_path / "x.svg").exists()


def test_a_file_that_is_not_there_is_bad_input(tmp_path, capsys):
    assert main(["timeline", str(tmp_path / "none.json"), "--out", str(tmp_path / "x.svg")]) == 2
    assert "no such file" in capsys.readouterr().err
