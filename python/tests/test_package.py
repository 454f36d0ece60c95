"""The package itself: its version and help, its dependencies, its types, and its examples."""

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
from pathlib import Path

import feedrate
import pytest
from conftest import GPU, python

FOLDER = Path(__file__).parent


def examples_in(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_installed_package_is_imported():
    assert "site-packages" in feedrate.__file__


def test_version_and_revision_match_the_executable():
    version = subprocess.run([feedrate.executable(), "--version"], capture_output=True, text=True).stdout
    assert feedrate.__version__ in version and importlib.metadata.version("feedrate") == feedrate.__version__
    # A source distribution has no revision.
    if feedrate.__revision__ != "unknown" and not feedrate.__revision__.endswith("-dirty"):
        assert feedrate.__revision__ in version


def test_devices_lists_cpu_and_gpus():
    first, *gpus = feedrate.devices()
    assert first["device"] == "cpu" and first["processors"] == len(os.sched_getaffinity(0))
    assert bool(gpus) == ("cuda" not in first)
    assert json.loads(python("-m", "feedrate", "devices").stdout) == feedrate.devices()


def test_package_needs_only_numpy():
    code = "import sys, feedrate, gpuqueue; print(*(m for m in ('pandas', 'matplotlib', 'redis', 'tqdm') if m in sys.modules))"
    found = python("-c", code)
    assert found.stdout.strip() == "" and found.returncode == 0, found


def test_package_imports_without_root():
    if os.getuid() != 0:
        pytest.skip("the tests do not run as root")
    code = "import os; os.setgid(65534); os.setuid(65534); import feedrate; print(feedrate.Ring(device='cpu').call(b'x'))"
    found = python("-c", code, env={"PATH": os.environ["PATH"], "PYTHONPATH": ""})
    if "Permission denied" in found.stderr or "No module named" in found.stderr:
        pytest.skip("the user nobody cannot read this environment")
    assert found.stdout.strip() == "b'x'", found


def test_help_lists_devices_and_commands():
    text = python("-m", "feedrate", "--help").stdout
    assert "python -m feedrate devices" in text and "sweep" in text


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
def test_types_pass_mypy_strict(tmp_path):
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
    (error,) = found.stdout.splitlines()  # the deliberate error
    assert found.returncode == 1 and error.startswith("wrong.py:2: error: Incompatible types"), found


@pytest.mark.parametrize("example", sorted(FOLDER.glob("examples/*.py")), ids=lambda path: path.name)
def test_example_runs(example, tmp_path):
    assert len(example.read_text().splitlines()) < 40
    found = python(str(example), cwd=tmp_path, env=os.environ | {"MPLBACKEND": "agg"})
    if "needs PyTorch" in found.stdout:
        pytest.skip("PyTorch is not installed")
    assert found.returncode == 0 and found.stdout, found.stderr


def test_python_in_readme_runs(tmp_path):
    (code,) = examples_in(FOLDER.parent / "README.md")
    found = python("-c", code, cwd=tmp_path)
    printed = re.search(r"(\d+) answers, the first (\S+) of (\S+)", found.stdout)
    assert found.returncode == 0 and printed, found
    assert 1 <= int(printed[1]) <= 512 and printed[2] == printed[3], "expected 1 to 512 answers, first row first"


def test_examples_on_the_page_run_as_printed(tmp_path, socket):
    """All examples run in order in one session, except those that need a GPU or minutes (sweeps: test_harness.py)."""
    examples = examples_in(FOLDER / "page.md")  # python/README.md
    assert len(examples) >= 7
    code = f"import os\nos.environ['FEEDRATE_SOCKET'] = {socket!r}\n"
    for example in examples:
        compile(example, "page.md", "exec")
        if "feedrate.sweep(" not in example:
            code += example if GPU or 'device="cuda"' not in example else "import numpy\n"
    done = python("-c", code, cwd=tmp_path)
    assert done.returncode == 0 and "hello" in done.stdout, done.stderr
