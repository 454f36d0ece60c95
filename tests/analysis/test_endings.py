"""How commands end when something outside fails: one line on stderr that names it, exit code 1, nothing by halves."""

import ast
import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import rows
from conftest import ROOT

from analysis import files, needs
from analysis.__main__ import main
from analysis.errors import CannotWrite

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def directory(tmp_path):
    return rows.write(tmp_path / "some", [rows.cell(rows.params(window=window)) for window in (1, 64)])


def program(*arguments, **options):
    """A command as a program of its own, for what happens to its stdout and its limits."""
    words = [sys.executable, "-m", "analysis", *map(str, arguments)]
    return subprocess.run(words, cwd=ROOT, stderr=subprocess.PIPE, text=True, **options)


def one_line(error: str, *parts: str) -> bool:
    return error.count("\n") == 1 and error.startswith("error: ") and all(part in error for part in parts)


def full(self, data):
    """A disk that has room for a little of a file."""
    with self.open("wb") as file:
        file.write(data[:10])
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))


def contents(folder: Path) -> dict:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    "command",
    [
        ["report", "DIR"],
        ["figures", "DIR", "--out", "OUT"],
        ["compare", "DIR", "DIR", "--out", "OUT"],
        ["export", "DIR", "--format", "hdr", "--out", "OUT"],
        ["export", "DIR", "--format", "google-benchmark", "--out", "OUT/one.json"],
        ["readme", "DIR", "README", "--figures", "FIGURES"],
    ],
    ids=lambda command: " ".join(command[:4]),
)
def test_a_full_disk_leaves_what_was_there(tmp_path, directory, capsys, monkeypatch, command):
    (readme := tmp_path / "README.md").write_text("<!-- figures:begin -->\nold\n<!-- figures:end -->")
    (figures := tmp_path / "figures").mkdir()
    (figures / "headline.png").touch()
    (directory / "report.html").write_text("the last report")
    places = {"DIR": directory, "OUT": tmp_path / "out", "README": readme, "FIGURES": figures}
    before = contents(tmp_path)
    monkeypatch.setattr(Path, "write_bytes", full)
    assert main([str(places.get(word, word.replace("OUT/", f"{tmp_path}/out/"))) for word in command]) == 1
    assert one_line(capsys.readouterr().err, "No space left on device", str(tmp_path))
    assert contents(tmp_path) == before


def test_a_file_that_cannot_grow_stops_the_report(directory):
    """The system's own refusal, in the middle of a picture."""
    before = contents(directory)
    cap = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))  # noqa: E731
    done = program("report", directory, stdout=subprocess.PIPE, preexec_fn=cap)
    assert done.returncode == 1 and one_line(done.stderr, "headline.png", "File too large")
    assert contents(directory) == before


def test_a_place_that_is_no_folder_is_named(tmp_path, directory, capsys):
    (tmp_path / "file").touch()
    assert main(["report", str(directory), "--out", str(tmp_path / "file/deep")]) == 1
    assert one_line(capsys.readouterr().err, "file/deep", "Not a directory")


def test_rows_that_cannot_be_read_are_named(directory, capsys, monkeypatch):
    def refuse(self):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert main(["report", str(directory)]) == 1
    assert one_line(capsys.readouterr().err, str(directory / "rows.jsonl"), "Permission denied")


def test_all_files_appear_or_none(tmp_path):
    old, new = tmp_path / "old", tmp_path / "gone/new"
    old.write_text("before")
    (tmp_path / "gone").touch()
    with pytest.raises(CannotWrite):
        files.write_all({old: "after", new: "never"})
    assert old.read_text() == "before" and {file.name for file in tmp_path.iterdir()} == {"old", "gone"}


def test_a_link_stays_a_link_and_a_mode_stays(tmp_path):
    (real := tmp_path / "real").write_text("before")
    real.chmod(0o640)
    (link := tmp_path / "link").symlink_to(real)
    files.write_all({link: "after"})
    assert link.is_symlink() and real.read_text() == "after" and real.stat().st_mode & 0o777 == 0o640


def test_a_device_is_written_to_and_not_replaced(tmp_path):
    os.mkfifo(pipe := tmp_path / "pipe")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.write_all({pipe: b"through"})
    assert os.read(reader, 100) == b"through" and pipe.is_fifo()
    os.close(reader)


@pytest.mark.parametrize("end", ["closed", "full", "nobody reads"])
def test_stdout_that_takes_nothing_is_named(directory, end):
    command = ("export", directory, "--format", "hdr", "--out", directory / "logs")
    if end == "closed":
        done = program(*command, preexec_fn=lambda: os.close(1))
    elif end == "full":
        with open("/dev/full", "w") as sink:
            done = program(*command, stdout=sink)
    else:
        read, write = os.pipe()
        os.close(read)
        done = program(*command, stdout=write)
        os.close(write)
    assert done.returncode == 1 and one_line(done.stderr, "stdout"), done.stderr


def absent(*names):
    """`find_spec` of a Python that lacks these packages."""
    known = needs.importlib.util.find_spec
    return lambda name: None if name in names else known(name)


def test_needs_names_every_package_that_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(needs.importlib.util, "find_spec", absent("matplotlib", "scipy"))
    assert needs.missing() == ["matplotlib", "scipy"]
    assert main(["needs"]) == 1 and capsys.readouterr().out == "matplotlib\nscipy\n"
    assert main(["report", "anything"]) == 1
    assert one_line(capsys.readouterr().err, "matplotlib, scipy")


def test_needs_is_content_where_all_is_there(capsys):
    assert main(["needs"]) == 0 and needs.missing() == []


def test_the_report_needs_no_test_tools():
    """All that analysis/ imports and Python does not have itself is among the packages that `needs` names."""
    imported = set()
    for file in (ROOT / "analysis").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(node.module.split(".")[0])
    brought = {"PIL"}  # by matplotlib, which cannot do without
    assert imported - set(sys.stdlib_module_names) - brought == set(needs.PACKAGES)


def test_a_package_that_is_too_old_is_named_with_what_would_do(monkeypatch):
    monkeypatch.setattr(needs.metadata, "version", lambda name: "1.4.9" if name == "pandas" else "99.0")
    assert needs.missing() == ["pandas >= 1.5 (here 1.4.9)"]


@pytest.mark.parametrize(
    "version, old", [("1.5", False), ("1.5.0rc1", False), ("1.10.2", False), ("2.0+cu12", False), ("1.4.99", True)]
)
def test_versions_are_compared_as_numbers(monkeypatch, version, old):
    monkeypatch.setattr(needs.metadata, "version", lambda name: version if name == "pandas" else "99.0")
    assert bool(needs.missing()) == old


def test_a_python_with_none_of_the_packages_can_say_so():
    """-S: without site-packages."""
    words = [sys.executable, "-S", "-m", "analysis"]
    asked = subprocess.run([*words, "needs"], cwd=ROOT, capture_output=True, text=True)
    assert asked.returncode == 1 and asked.stdout.split() == list(needs.PACKAGES) and asked.stderr == ""
    refused = subprocess.run([*words, "report", "anything"], cwd=ROOT, capture_output=True, text=True)
    assert refused.returncode == 1 and one_line(refused.stderr, *needs.PACKAGES)
