"""Makes `analysis` importable from wherever pytest is started, and writes runs that several tests read."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import fastjsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import load_rows  # noqa: E402  (all need the path above)
import rows  # noqa: E402

from analysis.feeding.plots.styles import OTHER_QUEUES  # noqa: E402
from analysis.figures import Rendered  # noqa: E402
from analysis.report import write_report  # noqa: E402


@pytest.fixture(scope="session")
def sweep() -> list[dict]:
    return rows.sweep()


@pytest.fixture(scope="session")
def reported(tmp_path_factory, sweep) -> Path:
    """A result directory of a whole run on a GPU, with its report made. Only to be read."""
    directory = rows.write(tmp_path_factory.mktemp("reported") / "run", sweep)
    write_report([str(directory)], None, None)
    return directory


@pytest.fixture(scope="session")
def page(tmp_path_factory) -> str:
    """report.html with every figure: closed and open loads, capacities, all of the CPU's, queues unknown so far, and a
    floor made of several."""
    some = [*rows.sweep(1, "cpu", None), *load_rows.sweep(2)]
    some += [load_rows.capacity(load_rows.params(queue), 1000, 1100) for queue in ("gpu_ring", "redis_list")]
    some += [load_rows.late(load_rows.params("gpu_ring", rate=123_456))]
    for number in range(len(OTHER_QUEUES)):
        row = rows.cell(rows.params(window=1))
        row["params"]["queue"], row["id"] = f"new_{number}", f"{number:016}"
        some.append(row)
    for row in some:
        if row["kind"] == "cell" and row["params"]["queue"] == "redis_list" and "bounds" in row:
            row["bounds"]["latency_ns"]["floor"] = "2*redis_round_trip_ns+copy_launch_copy_ns"
    directory = rows.write(tmp_path_factory.mktemp("page") / "run", some)
    with without_pngs():
        return write_report([str(directory)], None, None).read_text()


@pytest.fixture
def run(tmp_path, sweep) -> Path:
    """A fresh result directory of a whole run on a GPU."""
    return rows.write(tmp_path / "run", sweep)


def blank(drawings, *_, **__) -> list[Rendered]:
    empty = {"svg": "<svg></svg>", "png": b"none"}
    return [
        Rendered(one.name, one.title, one.caption, **(empty if one.figure else {"missing": one.missing}))
        for one in drawings
    ]


@contextmanager
def without_rendering() -> Iterator[None]:
    """Figures are composed and not rendered, which takes longer than all the rest: for tests of the text."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("report", "figures"):  # a report's, and those of commands that write PNGs alone
            patch.setattr(f"analysis.{module}.render", blank)
        yield


@contextmanager
def without_pngs() -> Iterator[None]:
    """Reports whose page alone is looked at: its figures are drawn as SVG, and not as PNG too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("analysis.figures._png", lambda drawing: b"")
        yield


@pytest.fixture
def undrawn() -> Iterator[None]:
    with without_rendering():
        yield


def inlined(schema, definitions: dict):
    """The schema with the definition of a number or a text in place of each reference to it: compiled, it costs no call
    for each of the millions of counts that committed rows hold."""
    if isinstance(schema, list):
        return [inlined(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.keys() == {"$ref"}:
        meant = definitions.get(schema["$ref"].removeprefix("#/definitions/"))
        return meant if meant and meant.get("type") in ("integer", "number", "string") else schema
    return {key: inlined(value, definitions) for key, value in schema.items()}


class Schemas:
    """The schema of every row, and that of the cells of `feeding`."""

    def __init__(self):
        self._row, self._cell = (
            self._read(ROOT / name)
            for name in ("common/results/row.schema.json", "experiments/feeding/cell.schema.json")
        )

    @staticmethod
    def _read(file: Path) -> Callable[[dict], dict]:
        schema = json.loads(file.read_text())
        return fastjsonschema.compile(inlined(schema, schema.get("definitions", {})), use_default=False)

    def validate(self, row: dict) -> None:
        self._row(row)
        if row["kind"] == "cell" and row["experiment"] == "feeding":
            self._cell(row)

    def is_valid(self, row: dict) -> bool:
        try:
            self.validate(row)
        except fastjsonschema.JsonSchemaValueException:
            return False
        return True


@pytest.fixture(scope="session")
def schema() -> Schemas:
    return Schemas()
