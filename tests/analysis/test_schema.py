"""The row schema: what the tools write passes, and each way to be wrong is refused."""

import copy
import json

import jsonschema
import pytest
import rows
from conftest import ROOT


@pytest.mark.parametrize("file", ["common/results/row.schema.json", "experiments/feeding/cell.schema.json"])
def test_the_schemas_are_schemas(file):
    """A misspelt type would pass rows unseen: the validator in use asks less than the metaschema."""
    jsonschema.Draft7Validator.check_schema(json.loads((ROOT / file).read_text()))


def test_every_row_of_a_run_is_valid(schema, sweep):
    for row in rows.with_runs(sweep + rows.sweep(1, "cpu", None)):
        schema.validate(row)


def test_optional_parts_may_be_absent(schema):
    row = rows.cell(rows.params())
    del row["bounds"], row["details"]["stages_ns"], row["details"]["throughput_seconds"]
    del row["cost"]["spinning_threads"], row["figures"]["latency_ns"]["mean"]
    schema.validate(row)


def test_open_parts_take_what_a_new_member_adds(schema):
    row = rows.cell(rows.params(doorbells=4))
    row["cost"]["watts"] = 410.5
    row["figures"]["watts"] = 231.0
    rows.rerun(row, where=rows.environment(nvlink=18), floors=rows.FLOORS | {"nvlink_bytes_per_second": 4e11})
    for one in rows.with_runs([row]):
        schema.validate(one)


def test_a_histogram_tells_its_buckets_in_one_of_two_ways(schema):
    row = rows.cell(rows.params())
    told = row["figures"]["latency_ns"]["histogram"]
    told["steps"] = [1] * len(told["counts"])
    assert not schema.is_valid(row)
    del told["index"]
    schema.validate(row)
    del told["steps"]
    assert not schema.is_valid(row)


def test_duplicates_are_no_failure_of_an_at_least_once_queue(schema):
    row = rows.cell(rows.params())
    row["details"]["counts"]["duplicated"] = 3
    assert not schema.is_valid(row)
    row["cost"]["delivery"] = "at least once"
    schema.validate(row)


def test_wrong_answers_without_throughput_are_valid(schema):
    schema.validate(rows.not_ok(rows.params(), "invalid", "3 results are wrong", corrupted=3))


def test_machine_without_gpu_or_counters_is_valid(schema):
    row = rows.cell(rows.params()) | {"machine": rows.machine()}
    schema.validate(row)
    machine = row["machine"]
    del machine["gpu"]
    machine["samples"] = []
    machine["host"] = {"own_cores": 1.2, "context_switches": {"voluntary": 1, "involuntary": 0}}
    machine["disturbances"] = ["the GPU's clocks were held down by power cap in 1 of 2 samples"]
    schema.validate(row)


def change(*path, to):
    """A mutation: sets the value at the path."""

    def apply(row):
        for key in path[:-1]:
            row = row[key]
        row[path[-1]] = to

    return apply


def drop(*path):
    """A mutation: removes the key at the path."""

    def apply(row):
        for key in path[:-1]:
            row = row[key]
        del row[path[-1]]

    return apply


CELL_MUTATIONS = {
    "another schema version": change("schema", to=1),
    "no schema version": drop("schema"),
    "unknown kind": change("kind", to="cells"),
    "no experiment": drop("experiment"),
    "no run": drop("run"),
    "run that is no hash": change("run", to="the last one"),
    "id that is no hash": change("id", to="redis_list-64"),
    "unknown status": change("status", to="fine"),
    "no cause": drop("cause"),
    "unknown cause": lambda row: row.update(status="invalid", cause="bad luck", reason="bad luck"),
    "ok with a cause": change("cause", to="disturbed"),
    "negative repetition": change("repetition", to=-1),
    "skipped without a reason": change("status", to="skipped"),
    "invalid without a reason": change("status", to="invalid"),
    "failed with figures": lambda row: row.update(status="failed", cause="error", reason="the worker died"),
    "details without counts": drop("details", "counts"),
    "ok without details": drop("details"),
    "ok without figures": drop("figures"),
    "ok without throughput": drop("figures", "messages_per_second"),
    "ok without latency": drop("figures", "latency_ns"),
    "lost messages and throughput": change("details", "counts", "lost", to=1),
    "duplicated messages and throughput": change("details", "counts", "duplicated", to=1),
    "corrupted messages and throughput": change("details", "counts", "corrupted", to=1),
    "corrupted, invalid, yet with throughput": lambda row: (
        row.update(status="invalid", cause="wrong_results", reason="wrong"),
        row["details"]["counts"].update(corrupted=1),
    ),
    "ok without cost": drop("cost"),
    "negative count": change("details", "counts", "received", to=-5),
    "fractional count": change("details", "counts", "sent", to=1.5),
    "no count of reordered": drop("details", "counts", "reordered"),
    "no queue": drop("params", "queue"),
    "payload as text": change("params", "payload_bytes", to="64"),
    "no device": drop("params", "device"),
    "empty transfer": change("params", "transfer", to=""),
    "unknown device": change("params", "device", to="rocm"),
    "nested parameter": change("params", "extra", to={"a": 1}),
    "negative throughput": change("figures", "messages_per_second", to=-1.0),
    "throughput as null": change("figures", "bytes_per_second", to=None),
    "throughput as text": change("figures", "bytes_per_second", to="64"),
    "no p99": drop("figures", "latency_ns", "p99"),
    "no histogram": drop("figures", "latency_ns", "histogram"),
    "histogram without overflow": drop("figures", "latency_ns", "histogram", "overflow"),
    "negative bucket": lambda row: row["figures"]["latency_ns"]["histogram"]["counts"].append(-1),
    "bound without its floor": drop("bounds", "messages_per_second", "floor"),
    "bound without its value": drop("bounds", "latency_ns", "value"),
    "driver without its ratio": drop("details", "driver", "ratio"),
    "misspelt key": lambda row: row.update(figure=row.pop("figures")),
    "misspelt detail": lambda row: row["details"].update(stage_ns=row["details"].pop("stages_ns")),
    "an environment of its own": lambda row: row.update(environment=rows.environment()),
    "floors of its own": lambda row: row.update(floors=rows.FLOORS),
    "time that is no date": change("time", "started", to="yesterday"),
}


@pytest.mark.parametrize("mutate", CELL_MUTATIONS.values(), ids=CELL_MUTATIONS.keys())
def test_wrong_cell_is_refused(schema, mutate):
    row = copy.deepcopy(rows.cell(rows.params()))
    schema.validate(row)
    mutate(row)
    assert not schema.is_valid(row)


RUN_MUTATIONS = {
    "no id": drop("id"),
    "no experiment": drop("experiment"),
    "no environment": drop("environment"),
    "no floors": drop("floors"),
    "no settings": drop("settings"),
    "gpu as a number": change("environment", "gpu", to=1),
    "no command line": drop("environment", "command"),
    "floor as text": change("floors", "launch_sync_ns", to="6 us"),
    "negative seconds": change("settings", "seconds", to=-1),
    "figures": change("figures", to={}),
    "time that is no date": change("time", "started", to="yesterday"),
}


@pytest.mark.parametrize("mutate", RUN_MUTATIONS.values(), ids=RUN_MUTATIONS.keys())
def test_wrong_run_is_refused(schema, mutate):
    row = copy.deepcopy(rows.RUNS[rows.run()])
    schema.validate(row)
    mutate(row)
    assert not schema.is_valid(row)


MACHINE_MUTATIONS = {
    "no host": drop("host"),
    "no period": drop("period_seconds"),
    "misspelt key": lambda machine: machine.update(sample=machine.pop("samples")),
    "sample without its time": lambda machine: machine["samples"][0].pop("t"),
    "sample with a range": lambda machine: machine["samples"][0]["gpu"].update(sm_clock_mhz={"min": 1}),
    "too many samples": lambda machine: machine.update(samples=machine["samples"] * 61),
    "summary with one clock": change("gpu", "sm_clock_mhz", to=1980),
    "clock without its least": drop("gpu", "sm_clock_mhz", "min"),
    "unknown value of the GPU": change("gpu", "voltage", to=1),
    "utilisation in percent": change("gpu", "utilisation", to=97),
    "reasons as bits": change("gpu", "throttle_reasons", to=4),
    "negative energy": change("gpu", "energy_j", to=-1),
    "share above 1": lambda machine: machine["host"]["per_core_busy"].append(1.01),
    "steal as text": change("host", "steal_share", to="1 %"),
    "fractional switches": change("host", "context_switches", "voluntary", to=0.5),
    "no context switches": drop("host", "context_switches"),
    "disturbance without words": change("disturbances", to=[""]),
}


@pytest.mark.parametrize("mutate", MACHINE_MUTATIONS.values(), ids=MACHINE_MUTATIONS.keys())
def test_wrong_machine_is_refused(schema, mutate):
    row = copy.deepcopy(rows.cell(rows.params()) | {"machine": rows.machine()})
    schema.validate(row)
    mutate(row["machine"])
    assert not schema.is_valid(row)


FLOOR_MUTATIONS = {
    "no value": drop("floor", "value"),
    "no unit": drop("floor", "unit"),
    "name without a unit": change("floor", "name", to="launch_sync"),
    "negative value": change("floor", "value", to=-1),
    "failed without a reason": change("status", to="failed"),
    "no device": drop("device"),
    "no run": drop("run"),
    "a cell's params": change("params", to={}),
}


@pytest.mark.parametrize("mutate", FLOOR_MUTATIONS.values(), ids=FLOOR_MUTATIONS.keys())
def test_wrong_floor_is_refused(schema, mutate):
    row = rows.floor("launch_sync_ns", 6200.0)
    schema.validate(row)
    mutate(row)
    assert not schema.is_valid(row)


def test_a_failed_floor_needs_no_value(schema):
    row = rows.floor("redis_round_trip_ns", 1.0) | {"status": "failed", "reason": "Redis refused"}
    del row["floor"]["value"]
    schema.validate(row)


def test_flags_are_known_words_and_never_an_empty_list(schema):
    row = rows.cell(rows.params()) | {"flags": ["above_floor"]}
    schema.validate(row)
    for wrong in ([], ["odd"], ["above_floor", "above_floor"]):
        assert not schema.is_valid(row | {"flags": wrong})


def test_a_floor_tells_its_readings_and_a_cell_which_of_them_bind_it(schema):
    row = rows.floor("host_copy_bytes_per_second", 3.0)
    row["floor"] |= {"least": 1.0, "greatest": 5.0, "readings": [5.0, 1.0, 3.0]}
    schema.validate(row)
    row["floor"]["readings"] = "several"
    assert not schema.is_valid(row)
    cell = rows.cell(rows.params()) | {"floor_rounds": 5}
    schema.validate(cell)
    assert not schema.is_valid(cell | {"floor_rounds": 0})
