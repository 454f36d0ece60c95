"""The table of the same point under Nsight Systems and under `--trace`."""

import lzma

import pytest
import trace_files

from analysis.__main__ import main

HEAD = "Start (ns),Duration (ns),CorrId,Strm,Name"
KERNEL = '"feedrate::<unnamed>::stage_kernel(feedrate::StageWork, const std::byte *)"'


@pytest.fixture
def trace(tmp_path):
    file = tmp_path / "ring.json.xz"
    file.write_bytes(lzma.compress(trace_files.pipeline("ring", 6, ("copy in", "process", "copy out")).encode()))
    return str(file)


def report(tmp_path, *lines):
    file = tmp_path / "gputrace.csv"
    file.write_text("\n".join([HEAD, *lines]) + "\n")
    return str(file)


def test_what_ran_on_the_same_stream_stands_side_by_side(trace, tmp_path, capsys):
    mine = report(tmp_path, f"1,50000,7,14,{KERNEL}", f"2,70000,8,14,{KERNEL}", f"3,1,9,99,{KERNEL}")
    assert main(["beside", trace, mine]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| 14")]
    assert lines == ["| 14 | stage_kernel | 2 | 60.0 µs | 6 | 60.0 µs | 1.00 |"]


def test_a_page_is_rewritten_and_checked(trace, tmp_path, capsys):
    page, mine = tmp_path / "page.md", report(tmp_path, f"1,30000,7,14,{KERNEL}")
    page.write_text("<!-- nsys:begin -->\n<!-- nsys:end -->\n")
    assert main(["beside", trace, mine, "--page", str(page), "--check"]) == 1
    assert main(["beside", trace, mine, "--page", str(page)]) == 0
    assert "| 2.00 |" in page.read_text()
    assert main(["beside", trace, mine, "--page", str(page), "--check"]) == 0


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([f"1,50000,7,99,{KERNEL}"], "has no work on the streams of the trace"),
        (["1,soon,7,14,x"], "is no such report"),
        (["1"], "has no work on the streams of the trace"),
    ],
)
def test_a_report_of_something_else_is_bad_input(trace, tmp_path, capsys, lines, said):
    assert main(["beside", trace, report(tmp_path, *lines)]) == 2
    assert said in capsys.readouterr().err


def test_files_that_are_none_are_bad_input(trace, tmp_path, capsys):
    mine, damaged = report(tmp_path, f"1,50000,7,14,{KERNEL}"), tmp_path / "t.json.xz"
    damaged.write_bytes(b"no archive")
    for arguments in (["none.json", mine], [str(damaged), mine], [mine, mine], [trace, "none.csv"], [trace, mine, "--check"]):
        assert main(["beside", *arguments]) == 2, arguments
        assert "allowed" in capsys.readouterr().err
