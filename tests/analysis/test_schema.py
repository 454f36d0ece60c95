"""The row schema: what the tools write passes, and each way to be wrong is refused."""

import copy

import pytest
import rows


def test_every_row_of_a_run_is_valid(schema, sweep):
    for row in sweep + rows.sweep(1, "cpu", None):
        schema.validate(row)


def test_optional_parts_may_be_absent(schema):
    row = rows.cell(rows.params())
    for name in ("bound", "stages_ns"):
        del row[name]
    del row["cost"]["spinning_threads"], row["latency_ns"]["mean"], row["throughput"]["seconds"]
    schema.validate(row)


def test_open_parts_take_what_a_new_member_adds(schema):
    row = rows.cell(rows.params(doorbells=4))
    row["environment"]["nvlink"] = 18
    row["cost"]["watts"] = 410.5
    row["floors"] = row["floors"] | {"nvlink_bytes_per_second": 4e11}
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
    "another schema version": change("schema", to=2),
    "no schema version": drop("schema"),
    "unknown kind": change("kind", to="cells"),
    "id that is no hash": change("id", to="redis_list-64"),
    "unknown status": change("status", to="fine"),
    "negative repetition": change("repetition", to=-1),
    "skipped without a reason": change("status", to="skipped"),
    "invalid without a reason": change("status", to="invalid"),
    "failed with throughput": lambda row: row.update(status="failed", reason="the worker died"),
    "ok without counts": drop("counts"),
    "ok without throughput": drop("throughput"),
    "ok without latency": drop("latency_ns"),
    "ok without cost": drop("cost"),
    "ok without floors": drop("floors"),
    "lost messages and throughput": change("counts", "lost", to=1),
    "duplicated messages and throughput": change("counts", "duplicated", to=1),
    "corrupted messages and throughput": change("counts", "corrupted", to=1),
    "corrupted, invalid, yet with throughput": lambda row: (
        row.update(status="invalid", reason="wrong"),
        row["counts"].update(corrupted=1),
    ),
    "negative count": change("counts", "received", to=-5),
    "fractional count": change("counts", "sent", to=1.5),
    "no count of reordered": drop("counts", "reordered"),
    "no queue": drop("params", "queue"),
    "empty transfer": change("params", "transfer", to=""),
    "payload as text": change("params", "payload_bytes", to="64"),
    "unknown device": change("params", "device", to="rocm"),
    "nested parameter": change("params", "extra", to={"a": 1}),
    "negative throughput": change("throughput", "messages_per_second", to=-1.0),
    "throughput as null": change("throughput", "bytes_per_second", to=None),
    "no p99": drop("latency_ns", "p99"),
    "no histogram": drop("latency_ns", "histogram"),
    "histogram without overflow": drop("latency_ns", "histogram", "overflow"),
    "negative bucket": lambda row: row["latency_ns"]["histogram"]["counts"].append(-1),
    "no environment": drop("environment"),
    "gpu as a number": change("environment", "gpu", to=1),
    "no command line": drop("environment", "command"),
    "floor as text": lambda row: row.update(floors={"launch_sync_ns": "6 us"}),
    "bound without its floor": drop("bound", "throughput", "floor"),
    "misspelt key": lambda row: row.update(stage_ns=row.pop("stages_ns")),
    "time that is no date": change("time", "started", to="yesterday"),
}


@pytest.mark.parametrize("mutate", CELL_MUTATIONS.values(), ids=CELL_MUTATIONS.keys())
def test_wrong_cell_is_refused(schema, mutate):
    row = copy.deepcopy(rows.cell(rows.params()))
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
