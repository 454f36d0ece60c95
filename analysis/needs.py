"""The Python packages that the report needs. Imports none of them, so that it can name the missing ones."""

import importlib.util
import re
import sys
from importlib import metadata
from pathlib import Path

PYTHON = (3, 10)
PACKAGES = ("jinja2", "matplotlib", "numpy", "pandas", "scipy")
REQUIREMENTS = Path(__file__).resolve().parents[1] / "requirements.txt"


def missing() -> list:
    """The missing packages by name, and those that are too old with the required version."""
    bounds = _lower_bounds()
    lacks = [_lack(name, bounds.get(name, "")) for name in PACKAGES]
    if sys.version_info < PYTHON:
        lacks.insert(0, "Python >= {}.{}".format(*PYTHON))
    return [lack for lack in lacks if lack]


def complaint() -> str:
    """One line that names all missing packages, and the clone's own Python if it exists; empty if nothing is missing."""
    lacks = missing()
    if not lacks:
        return ""
    own = Path(".venv/bin/python")
    hint = f"; use {own} -m analysis" if (REQUIREMENTS.parent / own).exists() else ""
    return f"error: {sys.executable} lacks packages that the report needs: {', '.join(lacks)}{hint}"


def _lack(name: str, least: str) -> str:
    if importlib.util.find_spec(name) is None:
        return name
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""  # it can be imported, but its version is unknown
    return f"{name} >= {least} (found {found})" if _numbers(found) < _numbers(least) else ""


def _lower_bounds() -> dict:
    """Package -> minimum version, from requirements.txt; empty if the analysis was copied without that file."""
    text = REQUIREMENTS.read_text(encoding="utf-8") if REQUIREMENTS.is_file() else ""
    return dict(re.findall(r"^([\w-]+)>=([\d.]+)", text, re.MULTILINE))


def _numbers(version: str) -> list:
    return [int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3]]
