"""The scripts for GPU hosts name tests, which may be renamed: GoogleTest runs nothing, and says so nowhere."""

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
NAMES = {f"{suite}.{name}" for file in TESTS.rglob("*.cpp")
         for suite, name in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", file.read_text(encoding="utf-8"),
                                       re.MULTILINE)}


def unknown(script: str) -> list[str]:
    """Patterns of the script's filters that fit no test."""
    patterns = [pattern for told in re.findall(r"--gtest_filter=([^'\"\s]+)", script)
                for pattern in re.split("[:-]", told)]
    return [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in NAMES)]


@pytest.mark.parametrize("script", sorted(TESTS.glob("*.sh")), ids=lambda script: script.name)
def test_filters_name_tests_that_there_are(script):
    assert unknown(script.read_text(encoding="utf-8")) == []


def test_a_filter_that_fits_nothing_is_found():
    script = "run test gpu '--gtest_filter=ActivityOnGpu.*:NoSuch.*-ActivityOnGpu.Gone'"
    assert unknown(script) == ["NoSuch.*", "ActivityOnGpu.Gone"]
