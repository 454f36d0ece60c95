"""The schema of rows accepts synthetic and committed rows and rejects each kind of invalid row."""

import copy
import json
import lzma
import re
import subprocess
from pathlib import Path

import fastjsonschema
import jsonschema
import kernels_rows
import other_rows
import pytest
import rows
import storage_rows
from conftest import REFERENCE, ROOT

from analysis import catalogue

# Limits that depend on a point's axes, so that no catalogue can list them all.
LIMIT_OF_POINTS = re.compile(r"fio_(sequential|random)_(read|write)_[0-9]+_[0-9]+x[0-9]+_bytes_per_second")
MOST = 13_000_000  # maximum bytes of all files committed in results/reference, including figures


def inlined(schema, definitions: dict):
    """The schema with definitions of numbers and strings in place of references to them. The compiled schema then needs
    no function call for each of the millions of counts in committed rows."""
    if isinstance(schema, list):
        return [inlined(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.keys() == {"$ref"}:
        meant = definitions.get(schema["$ref"].removeprefix("#/definitions/"))
        return meant if meant and meant.get("type") in ("integer", "number", "string") else schema
    return {key: inlined(value, definitions) for key, value in schema.items()}


@pytest.fixture(scope="session")
def validate():
    """A function that checks a row, and a cell also against the schema of its experiment if there is one."""

    def compiled(file: Path):
        schema = json.loads(file.read_text())
        # A misspelt type would let invalid rows pass, because the validator does not check the metaschema.
        jsonschema.Draft7Validator.check_schema(schema)
        return fastjsonschema.compile(inlined(schema, schema.get("definitions", {})), use_default=False)

    of_row = compiled(ROOT / "common/results/row.schema.json")
    of_cells = {file.parent.name: compiled(file) for file in (ROOT / "experiments").glob("*/cell.schema.json")}

    def every(row: dict) -> None:
        of_row(row)
        if row["kind"] == "cell" and row["experiment"] in of_cells:
            of_cells[row["experiment"]](row)

    return every


# --- committed rows


def histograms(value):
    """Every histogram within a row. A schema cannot require that its lists have equal lengths."""
    if isinstance(value, dict):
        if "counts" in value and ("steps" in value or "index" in value):
            yield value
        else:
            for one in value.values():
                yield from histograms(one)


def check_names(row: dict, known: catalogue.Catalogue) -> None:
    """Checks that the catalogue defines all names in a row."""
    if row["kind"] == "limit":
        assert row["limit"]["name"] in known.limits or LIMIT_OF_POINTS.fullmatch(row["limit"]["name"])
    elif row["kind"] != "run":
        experiment = known.experiments[row["experiment"]]
        assert row["params"].keys() <= experiment.axes.keys()
        assert row.get("figures", {}).keys() <= experiment.figures.keys()
        assert all(experiment.applies(axis, row["params"]) for axis in row["params"])


@pytest.mark.parametrize("folder", sorted(str(file.parent.relative_to(ROOT)) for file in (ROOT / REFERENCE).rglob("rows.jsonl*")))
def test_committed_rows_are_valid_and_match_their_runs_and_catalogue(validate, folder):
    packed = lzma.decompress(Path(folder, "rows.jsonl.xz").read_bytes())
    known, runs, named = catalogue.merged([catalogue.read(Path(folder), "DIR")]), set(), set()
    for row in map(json.loads, packed.splitlines()):
        validate(row)
        check_names(row, known)
        (runs if row["kind"] == "run" else named).add(row["id"] if row["kind"] == "run" else row["run"])
        for one in histograms(row.get("figures", {})):
            assert len(one["counts"]) == len(one["steps" if "steps" in one else "index"])
    assert runs == named


def test_committed_results_stay_small():
    listed = subprocess.run(["git", "ls-files", "-z", REFERENCE], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    sizes = {name: (ROOT / name).stat().st_size for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}
    assert sizes and sum(sizes.values()) < MOST, sorted(sizes.items(), key=lambda one: -one[1])[:10]


# --- synthetic rows


def test_synthetic_rows_are_valid(validate):
    some = [*rows.every_figure(), *other_rows.launches(1), rows.attempt(rows.cell(rows.params())), rows.ring()]
    some += [other_rows.overlap(), other_rows.skipped(other_rows.overlap("pdl"), "no"), other_rows.handoff(use="first")]
    some += rows.winner("gather", [1e6])
    some += [storage_rows.storage(), storage_rows.storage(**storage_rows.DIRECT, arrivals="poisson", rate=1e9)]
    some += [KERNEL, kernels_rows.kernels("cublas"), kernels_rows.kernels("cpu_packed"), kernels_rows.kernels(reasons=())]
    some += [other_rows.skipped(KERNEL, "cuBLAS has no epilogue")]
    for row in [*rows.RUNS.values(), *some]:
        validate(row)


def changed(row: dict, *path, to=None, drop=False) -> dict:
    """The row with another value at the path, or without the path."""
    row = copy.deepcopy(row)
    place = row
    for key in path[:-1]:
        place = place[key]
    if drop:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return row


CELL = rows.cell(rows.params(), machine=rows.machine())
STEPS = [1] * len(CELL["figures"]["latency_ns"]["histogram"]["counts"])
STOP = {"reason": "repetitions", "repetitions": 3}
RATE, P50, P99 = "messages_per_second", "latency_ns.p50", "latency_ns.p99"


def spread(**more) -> dict:
    return CELL | {"stop": STOP | {"spread": {RATE: 6.1, P50: 1.0, P99: 63.2}, "unstable": [RATE, P99]} | more}


BARE = copy.deepcopy(CELL)
del BARE["bounds"], BARE["details"]["stages_ns"], BARE["details"]["throughput_seconds"]
del BARE["cost"]["spinning_threads"], BARE["figures"]["latency_ns"]["mean"], BARE["machine"]["gpu"]
BARE["machine"] |= {"samples": [], "disturbances": ["the GPU's clocks were held down by power cap in 1 of 2 samples"]}
BARE["machine"]["host"] = {"own_cores": 1.2, "context_switches": {"voluntary": 1, "involuntary": 0}}
AT_LEAST_ONCE = changed(changed(CELL, "details", "counts", "duplicated", to=3), "cost", "delivery", to="at least once")
LIMIT = rows.limit("host_copy_bytes_per_second", 3.0)
READINGS = changed(LIMIT, "limit", to=LIMIT["limit"] | {"least": 1.0, "greatest": 5.0, "readings": [5.0, 1.0, 3.0]})


@pytest.mark.parametrize("row", [
    CELL, BARE, AT_LEAST_ONCE, spread(), LIMIT, READINGS,
    changed(changed(CELL, "params", "doorbells", to=4), "cost", "watts", to=410.5),  # additions of a new member
    changed(CELL, "figures", "watts", to=231.0),
    changed(changed(CELL, "figures", "latency_ns", "histogram", "steps", to=STEPS), "figures", "latency_ns", "histogram",
            "index", drop=True),
    rows.not_ok(rows.params(), "invalid", "3 results are wrong", corrupted=3),
    changed(LIMIT | {"status": "failed", "reason": "Redis refused"}, "limit", "value", drop=True),
    CELL | {"flags": ["above_limit"]}, CELL | {"limit_rounds": 5}, CELL | {"ab": {"point": 1, "start": 2, "slices": [{"block": 0, "place": 3, "figures": {"x": 1.5}}]}},
])  # fmt: skip
def test_optional_and_additional_parts_are_valid(validate, row):
    validate(row)


# A path and an invalid value, or only a path to remove.
WRONG_CELLS = [
    (("schema",), 1), (("schema",),), (("kind",), "cells"), (("experiment",),), (("run",),), (("run",), "the last one"),
    (("id",), "redis_list-64"), (("status",), "fine"), (("cause",),), (("cause",), "disturbed"), (("repetition",), -1),
    (("status",), "skipped"), (("status",), "invalid"), (("details", "counts"),), (("details",),), (("figures",),),
    (("figures", RATE),), (("figures", "latency_ns"),), (("details", "counts", "lost"), 1),
    (("details", "counts", "duplicated"), 1), (("details", "counts", "corrupted"), 1), (("cost",),),
    (("details", "counts", "received"), -5), (("details", "counts", "sent"), 1.5), (("details", "counts", "reordered"),),
    (("params", "queue"),), (("params", "payload_bytes"), "64"), (("params", "device"),), (("params", "transfer"), ""),
    (("params", "device"), "rocm"), (("params", "extra"), {"a": 1}), (("figures", RATE), -1.0),
    (("figures", "bytes_per_second"), None), (("figures", "bytes_per_second"), "64"), (("figures", "latency_ns", "p99"),),
    (("figures", "latency_ns", "histogram"),), (("figures", "latency_ns", "histogram", "overflow"),),
    (("figures", "latency_ns", "histogram", "counts"), [-1]), (("figures", "latency_ns", "histogram", "index"),),
    (("figures", "latency_ns", "histogram", "steps"), STEPS),  # in addition to an index
    (("bounds", RATE, "bound"),), (("bounds", RATE, "bound"), "launch_sync_ns"),
    (("bounds", RATE, "bound"), {"sum": [1]}), (("bounds", RATE, "bound"), {"floor": "a_ns", "ceiling": "b_per_second"}), (("bounds", "latency_ns", "value"),), (("details", "driver", "ratio"),),
    (("figure",), {}), (("details", "stage_ns"), {}), (("environment",), {}), (("limits",), {}),
    (("time", "started"), "yesterday"), (("flags",), []), (("flags",), ["odd"]), (("flags",), ["above_limit"] * 2),
    (("limit_rounds",), 0), (("ab",), {"point": 1}), (("ab",), {"point": 1, "start": -1}),
    (("ab",), {"point": 1, "start": 2, "more": 3}), (("ab",), {"point": 1, "start": 2, "slices": [{"block": 0, "place": 4}]}),
    (("machine", "host"),), (("machine", "period_seconds"),), (("machine", "sample"), []),
    (("machine", "samples", 0, "t"),), (("machine", "samples", 0, "gpu", "sm_clock_mhz"), {"min": 1}),
    (("machine", "samples"), CELL["machine"]["samples"] * 61), (("machine", "gpu", "sm_clock_mhz"), 1980),
    (("machine", "gpu", "sm_clock_mhz", "min"),), (("machine", "gpu", "voltage"), 1),
    (("machine", "gpu", "utilisation"), 97), (("machine", "gpu", "throttle_reasons"), 4),
    (("machine", "gpu", "energy_j"), -1), (("machine", "host", "per_core_busy"), [1.01]),
    (("machine", "host", "steal_share"), "1 %"), (("machine", "host", "context_switches", "voluntary"), 0.5),
    (("machine", "host", "context_switches"),), (("machine", "disturbances"), [""]),
]  # fmt: skip
RUN, TRY, LAUNCH = rows.RUNS[CELL["run"]], rows.attempt(CELL), rows.limit("launch_sync_ns", 6200.0)
WRONG_RUNS = [
    (("id",),), (("experiment",),), (("environment",),), (("limits",),), (("settings",),), (("environment", "gpu"), 1),
    (("environment", "command"),), (("limits", "launch_sync_ns"), "6 us"), (("settings", "seconds"), -1),
    (("figures",), {}), (("time", "started"), "yesterday"),
]  # fmt: skip
WRONG_LIMITS = [
    (("limit", "value"),), (("limit", "unit"),), (("limit", "name"), "launch_sync"), (("limit", "value"), -1),
    (("limit", "scope"),), (("limit", "scope"), {"of": "moon"}), (("limit", "unit"), "B/s"),
    (("status",), "failed"), (("device",),), (("run",),), (("params",), {}), (("limit", "readings"), "several"),
]  # fmt: skip
KERNEL = kernels_rows.kernels(peers={"cublas": 1.1}, details={"failed_peers": {"cublaslt": "2 of 2048 elements are wrong"}})
WRONG_KERNELS = [
    (("params", "rung"),), (("params", "cache"), "warm"), (("params", "pace"),), (("params", "dtype"), "fp64"),
    (("params", "m"), -1), (("figures", "time_ns"),), (("figures", "operations_per_second"),), (("details",),),
    (("details", "peers"),),  # but a share of the best peer
    (("details", "verified"),), (("details", "samples"),), (("details", "samples", "count"), 0), (("details", "step"),),
    (("details", "samples", "sm_clock_mhz", "median"),), (("details", "samples", "clock_reasons"), []),
    (("details", "compiled", "registers"),), (("details", "peers", "cublas", "share"),), (("details", "more"), 1),
    (("details", "launches_per_sample"), 0), (("details", "inputs", "copies"), 0), (("details", "failed_peers", "cublaslt"), ""),
    (("details", "chosen"), {"algorithm": 3}), (("cause",), "wrong_results"),
]  # fmt: skip
WRONG_TRIES = [(("search", key),) for key in ("variant", "goal", "rung", "try")] + [
    (("search", "goal"), ""), (("search", "rung"), -1), (("search", "try"), 0.5), (("search", "variant"), ""),
]  # fmt: skip
KINDS = ((CELL, WRONG_CELLS), (RUN, WRONG_RUNS), (LAUNCH, WRONG_LIMITS), (TRY, WRONG_TRIES), (KERNEL, WRONG_KERNELS))


@pytest.mark.parametrize("row, wrong", [
    pytest.param(row, wrong, id=f"{row.get('experiment', row['kind'])}: {'.'.join(map(str, wrong[0]))}")
    for row, every in KINDS for wrong in every
])  # fmt: skip
def test_invalid_row_is_rejected(validate, row, wrong):
    validate(row)
    path, *value = wrong
    with pytest.raises(fastjsonschema.JsonSchemaValueException):
        validate(changed(row, *path, to=value[0] if value else None, drop=not value))


@pytest.mark.parametrize("row", [
    rows.spoilt(CELL, "bad luck", "bad luck"), rows.spoilt(CELL, "error", "the worker died", "failed"),
    changed(rows.spoilt(CELL, "wrong_results", "wrong"), "details", "counts", "corrupted", to=1),
    *(spread(**wrong) for wrong in ({"unstable": [""]}, {"unstable": [P50, P50]}, {"spread": {P50: 0.5}}, {"spread": {P99: "2"}})),
])  # fmt: skip
def test_contradictory_row_is_rejected(validate, row):
    with pytest.raises(fastjsonschema.JsonSchemaValueException):
        validate(row)
