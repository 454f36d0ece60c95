"""The harness from Python: a child process measures, and rejected options raise ValueError."""

import os
import signal
import subprocess
import sys
import time

import feedrate
import pytest
from conftest import LONG, TIMEOUT, wait_until
from feedrate import harness

SPEC = {
    "name": "small",
    "run": {"messages": 1000, "warmup": 0, "repetitions": 2},
    "parts": [{"name": "one", "axes": {"queue": "gpu_ring", "payload": [64, 256], "window": [1, 64]}}],
}


def test_run_returns_a_row():
    row = feedrate.run(queue="gpu_ring", device="cpu", payload=256, seconds=0.05, keep_disturbed=True)
    assert row["params"]["payload_bytes"] == 256 and row["figures"]["messages_per_second"] > 0


@pytest.mark.parametrize(
    "options, message",
    [({"payload": -1}, "--payload"), ({"queue": "kafka"}, "--queue: invalid value 'kafka'"), ({"no_such": 1}, "no-such")],
)
def test_option_rejected_by_the_executable_raises_value_error(options, message):
    with pytest.raises(ValueError, match=message):
        feedrate.run(device="cpu", **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep") / "rows"
    frame = feedrate.sweep(SPEC, out=out, device="cpu", keep_disturbed=True)
    assert len(frame) >= 8 and frame.attrs["folder"] == str(out)
    return out


def test_sweep_returns_a_data_frame(folder, capsys):
    frame = feedrate.load(folder)
    assert set(frame["payload_bytes"]) == {64, 256} and set(frame["window"]) == {1, 64}
    assert (frame[frame["status"] == "ok"]["messages_per_second"] > 0).all()


def test_report_and_comparison_are_created(folder, tmp_path):
    page = feedrate.report(folder, tmp_path / "report")
    assert page.read_text().startswith("<!doctype html>") or "<html" in page.read_text()
    assert "verdict" in feedrate.compare(folder, folder).lower()


@pytest.mark.skipif(not LONG, reason="takes 5 s: LONG_TESTS=1")
def test_limits_are_measured():
    found = {limit["name"]: limit for limit in feedrate.limits("cpu")}
    assert found and all(limit["value"] > 0 for limit in found.values() if limit["status"] == "ok")


def test_limits_are_read_from_the_rows(tmp_path, monkeypatch):
    program = tmp_path / "feedrate"
    program.write_text("""#!/bin/sh
        [ "$*" = "limits --json --device cpu" ] || { echo "wrong: $*" >&2; exit 2; }
        echo '{"kind": "environment"}'
        echo '{"kind": "limit", "limit": {"name": "copy", "value": 2.5}, "status": "ok"}'
        """)
    program.chmod(0o755)
    monkeypatch.setattr(harness, "executable", lambda: program)
    assert feedrate.limits("cpu") == [{"name": "copy", "value": 2.5, "status": "ok"}]
    with pytest.raises(ValueError, match="wrong: limits --json --device tpu"):
        feedrate.limits("tpu")


def test_folder_without_rows_raises_value_error(tmp_path):
    with pytest.raises(ValueError, match="rows.jsonl"):
        feedrate.load(tmp_path)
    with pytest.raises(ValueError, match="give either a spec or a folder to resume"):
        feedrate.sweep()


def test_interrupted_sweep_can_be_resumed(tmp_path):
    """The interrupt arrives in one of the first of 20 one-second cells. The remaining cells then take 0.01 s each."""
    long = SPEC | {"run": {"seconds": 1, "warmup": 0, "repetitions": 5}}
    rows = tmp_path / "rows" / "rows.jsonl"
    arguments = f"{long!r}, out={str(rows.parent)!r}, device='cpu', keep_disturbed=True"
    code = f"import feedrate; feedrate.sweep({arguments})"
    child = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_until(lambda: rows.exists() and '"kind":"cell"' in rows.read_text())
    child.send_signal(signal.SIGINT)
    _, messages = child.communicate(timeout=TIMEOUT)
    assert "to continue: feedrate.sweep(resume=" in messages
    before = rows.read_text().count('"kind":"cell"')
    frame = feedrate.sweep(resume=rows.parent, progress=False, resume_anyway=True, seconds=0.01)
    assert frame["afresh_of"].isna().sum() == 20 > before


def test_child_does_not_outlive_its_call():
    code = "import feedrate; feedrate.run(queue='gpu_ring', device='cpu', seconds=60)"
    parent = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    children = []

    def found():
        listed = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(parent.pid)], capture_output=True, text=True)
        # Before exec, the child's name is not "feedrate", and the parent may not have its process id yet.
        children[:] = [int(line.split()[0]) for line in listed.stdout.splitlines() if line.endswith(" feedrate")]
        return children

    wait_until(found, 0.1)
    time.sleep(0.5)
    parent.send_signal(signal.SIGINT)
    parent.wait(30)
    for pid in children:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
