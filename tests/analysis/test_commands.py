"""The command line. The message for invalid input names the option, the value and the allowed values; the exit code is
2. An external failure ends in a one-line message and exit code 1, and leaves no partial file. Blocks of pages are
rewritten and checked."""

import ast
import errno
import io
import json
import lzma
import os
import shutil
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import other_rows
import pytest
import rows
from conftest import REFERENCE, ROOT, main
from matplotlib.figure import Figure
from matplotlib.text import Text

from analysis import files, needs
from analysis.cores import on_all
from analysis.errors import CannotWrite
from analysis.figures import render
from analysis.plots.style import Drawing

GOOD = rows.cell(rows.params())


def without(key: str) -> dict:
    return {name: value for name, value in GOOD.items() if name != key}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a directory for each kind of invalid input, and a valid one."""
    here = tmp_path_factory.mktemp("place")
    for name, some in {
        "good": [GOOD], "no-rows": [], "limits-only": [rows.limit("launch_sync_ns", 6200.0)],
        "version-2": [GOOD, GOOD | {"schema": 2}], "version-4": [GOOD, GOOD | {"schema": 4}],
        "no-version": [{"kind": "cell"}], "no-object": [[1, 2]], "no-experiment": [without("experiment")],
        "other-kind": [GOOD | {"kind": "cel"}], "no-params": [without("params")],
        "run-without-id": [GOOD, {"schema": 3, "kind": "run", "environment": {}}],
        "other-status": [GOOD | {"status": "fine"}], "other-points": [rows.cell(rows.params(window=3))],
        "failed": [rows.not_ok(rows.params(), "failed", "it hung")], "launch": other_rows.launches(1),
        "others": [other_rows.handoff(), other_rows.overlap()],
    }.items():  # fmt: skip
        rows.write(here / name, some)
    rows.write(here / "bare", [GOOD], None)
    (rows.write(here / "cut-catalogue", [GOOD], None) / "catalogue.json.xz").write_bytes(lzma.compress(b"{}" * 99)[:40])
    rows.write(here / "odd-catalogue", [GOOD], {"experiments": [{"figures": 1}]})
    coarse = rows.cell(rows.params())
    coarse["figures"]["latency_ns"]["histogram"]["sub_bucket_bits"] = 7
    rows.write(here / "coarse", [coarse])
    for name in ("not-packed", "empty", "cut"):
        (here / name).mkdir()
    (here / "not-packed/rows.jsonl.xz").write_text("{}")
    (here / "cut/rows.jsonl").write_text(json.dumps(GOOD)[:100])
    (here / "bare.md").write_text("no markers")
    (here / "reversed.md").write_text("<!-- figures:end --><!-- figures:begin -->")
    names = ("figures", "transfers", "batch_timeout", "prices", "by_depth", "ways", "two_gpus", "several")
    (here / "page.md").write_text("".join(f"<!-- {name}:begin -->\n<!-- {name}:end -->\n" for name in names))
    (here / "no.json").write_text("not JSON\n")
    (here / "line.jsonl").write_text('{"way": "store"}\n')
    (here / "empty.jsonl").touch()
    (here / "damaged.json.xz").write_bytes(b"no archive")
    (here / "no-costs").mkdir()
    (here / "no-costs/vmm.json").write_text('{"benchmarks": [{"name": "x"}]}')
    shutil.copy(f"{REFERENCE}/h200/overlap/traces/ring.json.xz", here / "ring.json.xz")
    (here / "other.csv").write_text("Start (ns),Duration (ns),CorrId,Strm,Name\n1,50000,7,99,x\n")
    (here / "soon.csv").write_text("Start (ns),Duration (ns),CorrId,Strm,Name\n1,soon,7,14,x\n")
    return here


@pytest.mark.parametrize("arguments, expected", [
    ("report missing", "DIR 'missing': no such directory; allowed: a results directory"),
    ("report good missing", "DIR 'missing': no such directory"),
    ("report empty", "DIR 'empty': has no rows.jsonl"),
    ("report bare.md", "DIR 'bare.md': no such directory"),
    ("report no-rows", "DIR 'no-rows': rows.jsonl has no complete row"),
    ("report cut", "no complete row"),
    ("report limits-only", "no cell row"),
    ("report version-2", "rows.jsonl:3 has schema version 2, which this release does not read; allowed: version 3; to convert"),
    ("report version-4", "rows.jsonl:3 has schema version 4; allowed: 3"),
    ("report bare", "has no catalogue.json"),
    ("report good bare", "DIR 'bare': has no catalogue.json, which describes its rows"),
    ("compare good bare", "B 'bare'"),
    ("report odd-catalogue", "catalogue.json is not a catalogue"),
    ("report cut-catalogue", "catalogue.json is not a catalogue (LZMAError"),
    ("report no-experiment", "names no experiment"),
    ("report not-packed", "rows.jsonl.xz is not compressed"),
    ("report no-version", "has schema version None; allowed: 3"),
    ("report no-object", "schema version None"),
    ("report other-kind", "has kind 'cel'; allowed: run, cell, limit"),
    ("report no-params", "has no params"),
    ("report run-without-id", "has no id"),
    ("report other-status", "has status 'fine'; allowed: ok, invalid, unsustainable, failed, skipped"),
    ("compare missing good", "A 'missing': no such directory"),
    ("compare good missing", "B 'missing': no such directory"),
    ("compare good other-points", "B 'other-points': has no ok point in common"),
    ("figures missing --out out", "DIR 'missing'"),
    ("figures launch --out out", "no experiment in it has figures; allowed: rows of feeding"),
    ("readme good missing.md", "README.md 'missing.md': no such file"),
    ("readme good bare.md", "lacks the markers; allowed: a file with the lines <!-- figures:begin --> and"),
    ("readme good reversed.md", "README.md 'reversed.md': lacks the markers"),
    ("readme good page.md", "--figures 'good': has no figure; allowed: a folder that `python -m analysis figures"),
    ("readme launch page.md", "has only rows of launch; allowed: rows of feeding"),
    ("readme good page.md --block transfers", "does not have two transfers"),
    ("readme good page.md --block batch_timeout", "has no open load with two values of batch-timeout"),
    ("readme good page.md --block prices", "does not have redis_list and two other Redis queues"),
    ("readme good page.md --block ways", "has only rows of feeding; allowed: rows of handoff"),
    ("readme others page.md --block two_gpus", "has no row of handoff to another GPU that counts"),
    ("readme others page.md --block several", "has no way with two numbers of tensors or readers"),
    ("readme others page.md --block by_depth", "has no strategy with two values of depth"),
    ("ranks launch launch", "has only rows of launch; allowed: rows of feeding"),
    ("aa good good --check", "--check '': there is no block to check; allowed: --check with --readme README.md"),
    ("aa good good --readme bare.md", "--readme 'bare.md': lacks the markers"),
    ("power good --check", "--check"),
    ("ring good", "neither --out nor --note is given"),
    ("export missing --format hdr --out out", "DIR 'missing': no such directory"),
    ("export failed --format google-benchmark --out out", "no row is ok"),
    ("export coarse --format hdr --out out", "latency_ns has 2^7 sub-buckets; allowed: 2^8"),
    ("export good --format google-benchmark --out empty", "--out 'empty'"),
    ("export good --format hdr --out bare.md", "--out 'bare.md'"),
    ("faults missing", "FILE 'missing': no such file"),
    ("faults no.json", "FILE 'no.json': line 1 is invalid"),
    ("faults empty.jsonl", "has no line"),
    ("torch missing", "no such file; allowed: a file that experiments/handoff/torch_shared.py wrote"),
    ("torch no.json", "line 1 is invalid"),
    ("torch line.jsonl", "line 1 is invalid"),
    ("torch empty.jsonl", "experiments/handoff/torch_shared.py wrote"),
    ("store empty", "DIR 'empty'"),
    ("store no-costs", "vmm.json is not such a file"),
    ("beside missing other.csv", "no such file"),
    ("beside damaged.json.xz other.csv", "is not compressed by xz"),
    ("beside other.csv other.csv", "is not a timeline"),
    ("beside ring.json.xz missing", "no such file"),
    ("beside ring.json.xz other.csv", "has no work on the streams of the trace"),
    ("beside ring.json.xz soon.csv", "is not such a report"),
    ("timeline missing --out x.svg", "TRACE 'missing': no such file"),
    ("timeline no.json --out x.svg", "TRACE 'no.json': is not a timeline"),
    ("timeline ring.json.xz --out x.svg --milliseconds 0", "--milliseconds '0.0': invalid value; allowed: more than 0"),
    ("timeline ring.json.xz --out x.svg --milliseconds nan", "allowed: more than 0"),
])  # fmt: skip
def test_message_names_invalid_input_and_allowed_values(place, capsys, monkeypatch, arguments, expected):
    monkeypatch.chdir(place)
    before = contents(place)
    assert main(arguments.split()) == 2
    error = capsys.readouterr().err
    assert one_line(error, expected, "allowed: ")
    assert contents(place) == before, "invalid input must not leave files behind"


@pytest.mark.parametrize(
    "arguments", ["", "report", "compare", "figures a", "report --odd", "plot", "export a --format x --out b"]
)
def test_usage_error_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(arguments.split())
    assert exit_.value.code == 2 and "usage:" in capsys.readouterr().err


# --- external failures


@pytest.fixture
def directory(folder):
    return folder([rows.cell(rows.params(window=window)) for window in (1, 64)])


def program(*arguments, options=(), **more):
    """Runs a command as a separate process, to test its stdout, its limits and its imports."""
    words = [sys.executable, *options, "-m", "analysis", *map(str, arguments)]
    return subprocess.run(words, cwd=ROOT, stderr=subprocess.PIPE, text=True, **more)


def one_line(error: str, *parts: str) -> bool:
    assert error.count("\n") == 1 and error.startswith("error: ") and all(part in error for part in parts), error
    return True


def contents(folder: Path) -> dict:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def full(self, data):
    """Writes like a disk that has room for only a few bytes of a file."""
    with self.open("wb") as file:
        file.write(data[:10])
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))


@pytest.mark.parametrize("command", [
    "report DIR", "compare DIR DIR --out OUT", "export DIR --format hdr --out OUT",
    "export DIR --format google-benchmark --out OUT/one.json", "readme DIR README --figures FIGURES",
])  # fmt: skip
def test_full_disk_keeps_old_files(tmp_path, directory, capsys, monkeypatch, figureless, command):
    (readme := tmp_path / "README.md").write_text("<!-- figures:begin -->\nold\n<!-- figures:end -->")
    (figures := tmp_path / "figures").mkdir()
    (figures / "headline.png").touch()
    (directory / "report.html").write_text("the last report")
    before = contents(tmp_path)
    monkeypatch.setattr(Path, "write_bytes", full)
    for name, path in {"DIR": directory, "OUT": tmp_path / "out", "README": readme, "FIGURES": figures}.items():
        command = command.replace(name, str(path))
    assert main(command.split()) == 1
    assert one_line(capsys.readouterr().err, "No space left on device", str(tmp_path)) and contents(tmp_path) == before


HOSTILE = "<script>alert(1)</script> <!-- points:end --> b$^$ costs $5 to $10"


def test_text_from_rows_is_escaped(tmp_path, folder):
    cells = [rows.cell(rows.params(arrivals="trace", trace_file=trace)) for trace in (HOSTILE, "plain")]
    failed = rows.not_ok(rows.params(window=2), "failed", HOSTILE)
    some = folder([*cells, failed])
    assert main(["report", str(some), "--title", HOSTILE, "--out", str(tmp_path / "out")]) == 0
    for page in ("report.md", "report.html"):
        text = (tmp_path / "out" / page).read_text(encoding="utf-8")
        assert "<script>alert" not in text and "&lt;script" in text
    (page := tmp_path / "page.md").write_bytes("<!-- points:begin -->\r\n<!-- points:end -->\r\nmine: é\r\n".encode())
    for _ in range(2):
        assert main(["readme", str(some), str(page), "--block", "points"]) == 0
    written = page.read_bytes()
    assert written.count(b"\n") == written.count(b"\r\n") and written.endswith("mine: é\r\n".encode())
    assert written.count(b"<!-- points:end -->") == 1


def test_dollar_signs_in_figures_are_not_mathematics():
    figure = Figure(layout="constrained")
    figure.add_subplot().set(xscale="log", xlim=(1, 1000), title="b$^$ costs $5 to $10")
    (drawn,) = render([Drawing("name", "title", "caption", figure)], png=True)
    assert drawn.png
    assert [text.get_parse_math() for text in figure.findobj(Text) if "$" in text.get_text()].count(False) == 1


def test_page_that_is_not_utf8_is_rejected(tmp_path, directory, capsys):
    (page := tmp_path / "page.md").write_bytes("<!-- points:begin -->\n<!-- points:end -->\né".encode("latin-1"))
    assert main(["readme", str(directory), str(page), "--block", "points"]) == 2
    assert one_line(capsys.readouterr().err, "page.md", "is not UTF-8")


def test_shared_output_is_not_replaced(tmp_path, directory):
    with (tmp_path / "log").open("a") as log:
        print("before", file=log, flush=True)
        words = ["export", directory, "--format", "google-benchmark", "--out", "/dev/stdout"]
        assert program(*words, stdout=log).returncode == 0
        print("after", file=log)
    lines = (tmp_path / "log").read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after") and "{" in lines


def test_commands_work_with_folder_name_that_is_not_utf8_and_ascii_stdout(tmp_path, directory, figureless, monkeypatch):
    foreign = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    shutil.copytree(directory, foreign)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed := io.BytesIO(), encoding="ascii", errors="strict"))
    for words in (["compare", str(foreign), str(foreign)], ["report", str(foreign)]):
        assert main([*words, "--out", str(tmp_path / "out")]) == 0
    assert rb"caf\udce9" in printed.getvalue()
    assert (tmp_path / "out/report.html").stat().st_size > 10_000


def test_message_names_unreadable_and_unwritable_paths(tmp_path, directory, capsys, monkeypatch, figureless):
    (tmp_path / "file").touch()
    assert main(["report", str(directory), "--out", str(tmp_path / "file/deep")]) == 1
    one_line(capsys.readouterr().err, "file/deep", "Not a directory")

    def denied(self):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "read_bytes", denied)
    assert main(["report", str(directory)]) == 1
    one_line(capsys.readouterr().err, str(directory / "rows.jsonl"), "Permission denied")


def test_files_are_written_all_or_none_and_keep_links_modes_and_pipes(tmp_path):
    old, new, real, link = (tmp_path / name for name in ("old", "gone/new", "real", "link"))
    old.write_text("before")
    (tmp_path / "gone").touch()
    with pytest.raises(CannotWrite):
        files.write_all({old: "after", new: "never"})
    assert old.read_text() == "before" and {file.name for file in tmp_path.iterdir()} == {"old", "gone"}
    real.write_text("before")
    real.chmod(0o640)
    link.symlink_to(real)
    files.write_all({link: "after"})
    assert link.is_symlink() and real.read_text() == "after" and real.stat().st_mode & 0o777 == 0o640
    os.mkfifo(pipe := tmp_path / "pipe")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.write_all({pipe: b"through"})
    assert os.read(reader, 100) == b"through" and pipe.is_fifo()
    os.close(reader)


@pytest.mark.parametrize("end", ["closed", "full", "no reader"])
def test_unwritable_stdout_is_reported(end):
    if end == "closed":
        done = program("needs", preexec_fn=lambda: os.close(1))
    elif end == "full":
        with open("/dev/full", "w") as sink:
            done = program("needs", stdout=sink)
    else:
        read, write = os.pipe()
        os.close(read)
        done = program("needs", stdout=write)
        os.close(write)
    assert done.returncode == 1 and one_line(done.stderr, "stdout")


# --- needs


def test_needs_lists_missing_and_outdated_packages(monkeypatch, capsys):
    assert main(["needs"]) == 0 and needs.missing() == []
    known, version = needs.importlib.util.find_spec, needs.metadata.version
    monkeypatch.setattr(needs.importlib.util, "find_spec", lambda name: None if name in ("numpy", "scipy") else known(name))
    monkeypatch.setattr(needs, "complaint", needs.complaint.__wrapped__)
    capsys.readouterr()
    assert main(["needs"]) == 1 and capsys.readouterr().out == "numpy\nscipy\n"
    assert main(["report", "anything"]) == 1 and one_line(capsys.readouterr().err, "numpy, scipy")
    monkeypatch.setattr(needs, "REQUIREMENTS", ROOT / "requirements.txt")
    assert needs.complaint().endswith("; use .venv/bin/python -m analysis") == (ROOT / ".venv/bin/python").exists()
    monkeypatch.setattr(needs.importlib.util, "find_spec", known)
    old = ["pandas >= 1.5 (found 1.4.99)"]
    for found, lacks in (("1.5", []), ("1.5.0rc1", []), ("1.10.2", []), ("2.0+cu12", []), ("1.4.99", old)):
        monkeypatch.setattr(needs.metadata, "version", lambda name: found if name == "pandas" else version(name))
        assert needs.missing() == lacks


def test_needs_covers_all_imports_of_the_analysis():
    imported = set()
    for file in (ROOT / "analysis").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(node.module.split(".")[0])
    brought = {"PIL"}  # a dependency of matplotlib
    assert imported - set(sys.stdlib_module_names) - brought == set(needs.PACKAGES)


def test_needs_runs_without_any_package():
    """The option -S disables site-packages."""
    asked = program("needs", options=["-S"], stdout=subprocess.PIPE)
    assert asked.returncode == 1 and asked.stdout.split() == list(needs.PACKAGES) and asked.stderr == ""
    rejected = program("report", "anything", options=["-S"], stdout=subprocess.PIPE)
    assert rejected.returncode == 1 and one_line(rejected.stderr, *needs.PACKAGES)


# --- work on all cores


def test_on_all_keeps_the_order_and_raises_failures(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    parent = os.getpid()
    assert on_all(lambda item: item * item, range(11)) == [item * item for item in range(11)] and on_all(str, []) == []
    assert parent not in on_all(lambda _: os.getpid(), range(4))
    with pytest.raises(ZeroDivisionError):
        on_all(lambda item: 1 // item, [2, 1, 0, 1])
    with pytest.raises(BrokenProcessPool):
        on_all(lambda item: os.kill(os.getpid(), 9) if os.getpid() != parent and item == 1 else item, range(4))


# --- blocks of pages


@pytest.mark.parametrize("command, block", [
    ("readme DIR PAGE --block points", "points"), ("aa DIR DIR --readme PAGE", "aa"), ("ring RING --note PAGE", "axes"),
])  # fmt: skip
def test_block_is_rewritten_and_checked_and_rest_of_page_is_kept(folder, tmp_path, capsys, command, block):
    directory = folder([rows.cell(rows.params(window=window), n) for window in (1, 64) for n in (0, 1)])
    ring = folder([rows.ring(lanes=lanes, rate=lanes * 1e6) for lanes in (4, 8)], name="ring")
    (page := tmp_path / "page.md").write_text(f"# Text\n\n<!-- {block}:begin -->\nold\n<!-- {block}:end -->\n\nThe rest.\n")
    before = page.read_text()
    places = {"DIR": str(directory), "RING": str(ring), "PAGE": str(page)}
    words = [places.get(word, word) for word in command.split()]
    assert main([*words, "--check"]) == 1 and page.read_text() == before
    assert f"{page}: the block '{block}' does not match" in capsys.readouterr().err
    assert main(words) == 0 and main([*words, "--check"]) == 0
    text = page.read_text()
    assert text.startswith(f"# Text\n\n<!-- {block}:begin -->\n") and text.endswith(f"<!-- {block}:end -->\n\nThe rest.\n")
    assert "\nold\n" not in text
    number = next(place for place, sign in enumerate(text) if sign.isdigit())
    page.write_text(text[:number] + str((int(text[number]) + 1) % 10) + text[number + 1 :])
    assert main([*words, "--check"]) == 1
    assert main(words) == 0 and page.read_text() == text
