"""Filters in scripts for GPU hosts must match tests: if a test is renamed, GoogleTest silently runs nothing."""

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
NAMES = {f"{suite}.{name}" for file in TESTS.rglob("*.cpp")
         for suite, name in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", file.read_text(encoding="utf-8"),
                                       re.MULTILINE)}


def unknown(script: str) -> list[str]:
    """Patterns in the script's filters that match no test."""
    patterns = [pattern for found in re.findall(r"--gtest_filter=([^'\"\s]+)", script)
                for pattern in re.split("[:-]", found)]
    return [pattern for pattern in patterns if not any(fnmatchcase(name, _without_parameter(pattern)) for name in NAMES)]


def _without_parameter(pattern: str) -> str:
    """The suite and name in a pattern for tests with parameters: Each/Suite.Name/parameter."""
    return re.sub(r"/[^/]*$", "", re.sub(r"^[$\w]+/", "", pattern))


@pytest.mark.parametrize("script", sorted(TESTS.glob("*.sh")), ids=lambda script: script.name)
def test_filters_name_existing_tests(script):
    assert unknown(script.read_text(encoding="utf-8")) == []


def test_filter_without_a_match_is_detected():
    script = "run test gpu '--gtest_filter=ActivityOnGpu.*:NoSuch.*-ActivityOnGpu.Gone'"
    assert unknown(script) == ["NoSuch.*", "ActivityOnGpu.Gone"]
