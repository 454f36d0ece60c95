"""The package itself: what it says of itself, what it needs, and that its types hold."""

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import feedrate
import pytest


def python(*words: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=120, **options)


def test_it_is_the_installed_one():
    assert "site-packages" in feedrate.__file__


def test_version_and_revision_are_the_executables():
    said = subprocess.run([feedrate.executable(), "--version"], capture_output=True, text=True).stdout
    assert feedrate.__version__ in said and importlib.metadata.version("feedrate") == feedrate.__version__
    # A source distribution has no revision.
    if feedrate.__revision__ != "unknown" and not feedrate.__revision__.endswith("-dirty"):
        assert feedrate.__revision__ in said


def test_devices_tell_what_is_there():
    first, *gpus = feedrate.devices()
    assert first["device"] == "cpu" and first["processors"] == len(os.sched_getaffinity(0))
    assert bool(gpus) == ("cuda" not in first)
    assert json.loads(python("-m", "feedrate", "devices").stdout) == feedrate.devices()


def test_it_needs_only_numpy():
    code = "import sys, feedrate, gpuqueue; print(*(m for m in ('pandas', 'matplotlib', 'redis', 'tqdm') if m in sys.modules))"
    found = python("-c", code)
    assert found.stdout.strip() == "" and found.returncode == 0, found


def test_it_imports_without_root():
    if os.getuid() != 0:
        pytest.skip("not root anyway")
    code = "import os; os.setgid(65534); os.setuid(65534); import feedrate; print(feedrate.Ring(device='cpu').call(b'x'))"
    found = python("-c", code, env={"PATH": os.environ["PATH"], "PYTHONPATH": ""})
    if "Permission denied" in found.stderr or "No module named" in found.stderr:
        pytest.skip("nobody may not read this environment")
    assert found.stdout.strip() == "b'x'", found


def test_help_tells_both():
    said = python("-m", "feedrate", "--help").stdout
    assert "python -m feedrate devices" in said and "sweep" in said


def test_every_public_name_is_documented():
    import gpuqueue
    import feedrate.redis

    for module in (feedrate, gpuqueue, feedrate.redis):
        for name in module.__all__:
            one = getattr(module, name)
            if callable(one):
                assert one.__doc__, f"{module.__name__}.{name}"
                for method, body in vars(one).items() if isinstance(one, type) else ():
                    if not method.startswith("_") and callable(body):
                        assert body.__doc__, f"{module.__name__}.{name}.{method}"


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_types_hold_in_strict_mode(tmp_path):
    (tmp_path / "use.py").write_text(
        "import feedrate\nimport gpuqueue\nimport feedrate.redis\n"
        "with feedrate.Ring('echo') as ring:\n    answer: bytes = ring.call(b'x')\n"
        "number: int = gpuqueue.GpuQueue().enqueue(b'x')\n"
    )
    (tmp_path / "wrong.py").write_text("import feedrate\nanswer: int = feedrate.Ring('echo').call(b'x')\n")
    names = ["buffers", "delivery", "errors", "harness", "kernels", "redis", "redis.client", "redis.server", "redis.wire", "redis.worker", "ring", "tensors", "views", "__main__"]
    modules = ["gpuqueue", "feedrate", *(f"feedrate.{name}" for name in names), "use", "wrong"]
    words = [word for module in modules for word in ("-m", module)]
    found = python("-m", "mypy", "--strict", "--no-error-summary", "--follow-imports", "silent", *words, cwd=tmp_path)
    (error,) = found.stdout.splitlines()  # the planted one
    assert found.returncode == 1 and error.startswith("wrong.py:2: error: Incompatible types"), found


EXAMPLES = sorted(Path(__file__).with_name("examples").glob("*.py")) or sorted(
    Path(__file__).parent.parent.joinpath("examples").glob("*.py")
)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(example, tmp_path):
    assert len(example.read_text().splitlines()) < 40
    found = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, timeout=120, cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "agg"},
    )  # fmt: skip
    if "needs PyTorch" in found.stdout:
        pytest.skip("PyTorch is not installed")
    assert found.returncode == 0 and found.stdout, found.stderr


def test_the_readmes_python_runs(tmp_path):
    page = Path(__file__).parent.parent / "README.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    found = python("-c", code, cwd=tmp_path)
    told = re.search(r"(\d+) answers, the first (\S+) of (\S+)", found.stdout)
    assert found.returncode == 0 and told, found
    assert 1 <= int(told[1]) <= 512 and told[2] == told[3], "a block has what has come, at most what was asked for"


def test_there_are_five_examples():
    assert len(EXAMPLES) == 5
