"""The cost of an addition in files: only their own files may name the examples in tests/example."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


OWN = {
    "tests/example/additions_test.cpp",
    "tests/cli/depot_test.cpp",
    "tests/cli/errands_test.cpp",
    "tests/CMakeLists.txt",
    "tests/scripts/test_additions.py",
    # The Python package passes payloads by address, in its own mailboxes.
    "python/feedrate/_core.pyi",
    "python/feedrate/delivery.py",
    "python/feedrate/ring.py",
    "python/src/calls.cpp",
    "python/src/calls.hpp",
    "python/src/module.cpp",
}


def naming(word: str) -> set[str]:
    """Files in the working tree that contain the word, except those in OWN."""
    ran = subprocess.run(
        ["git", "-C", ROOT, "grep", "-lw", "--untracked", "-e", word, "--", "*.cpp", "*.hpp", "*.cu", "*.py", "*.txt"],
        capture_output=True,
        text=True,
        check=False,
    )
    return set(ran.stdout.split()) - OWN


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (["mailbox", "resend-every", "mailbox_locks_per_second"], "tests/example/mailbox_queue.cpp"),
        (["depot", "depot-take", "depot_round_trip_ns"], "tests/example/depot_broker.cpp"),
        (["errands", "errand-us", "errands_per_second"], "tests/example/errand_experiment.cpp"),
        (["relay", "copies-each"], "tests/example/relay_transfer.cpp"),
        (["counted_per_second", "step_ns"], "tests/example/count_experiment.cpp"),
    ],
)
def test_an_addition_is_one_file(words, file):
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    for word in words:
        assert naming(word) == {file}, word


def test_a_workload_with_an_option_is_one_file():
    """`fma_chain` and its axis: the harness, the commands and the analysis name neither of them."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    known = {name for name in naming("flops-per-byte") if name.startswith(("common", "kernels", "librar", "variants", "experim"))}
    assert known == {"kernels/workloads/fma_chain.cu"}


@pytest.mark.parametrize(
    ("word", "file"),
    [
        ("two_stream", "variants/overlap/strategies/two_stream.cpp"),
        ("copy_process_copy", "variants/overlap/pipelines/copy_process_copy.cpp"),
        ("stream_ordered", "variants/feeding/transfers/stream_ordered.cpp"),
    ],
)
def test_a_member_of_overlap_or_a_transfer_is_one_file(word, file):
    """Checks only sources: specs and pages do name members, and figures may assign colours to existing members."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    sources = (".cpp", ".hpp", ".cu", ".cuh", ".py")
    known = {name for name in naming(word) if name.endswith(sources) and not name.startswith(("tests", "analysis"))}
    assert known == {file}
