"""Runs the examples on the package's page exactly as printed, in order, in a single session."""

import re
import subprocess
import sys
from pathlib import Path

import feedrate
import pytest

PAGE = Path(__file__).with_name("page.md")  # python/README.md
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def session(examples, tmp_path, socket):
    code = f"import os\nos.environ['FEEDRATE_SOCKET'] = {socket!r}\n" + "\n".join(examples)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)


@pytest.fixture
def examples():
    """Examples that this machine can run."""
    needs_gpu = not feedrate._core.gpus()
    found = []
    for example in EXAMPLES:
        compile(example, str(PAGE), "exec")
        if "feedrate.sweep(" in example:
            continue  # it takes minutes; test_harness.py covers these calls
        found.append("import numpy\n" if needs_gpu and 'device="cuda"' in example else example)
    return found


def test_examples_run_as_printed(examples, tmp_path, socket):
    done = session(examples, tmp_path, socket)
    assert done.returncode == 0, done.stderr
    assert "hello" in done.stdout
    assert len(EXAMPLES) >= 7
