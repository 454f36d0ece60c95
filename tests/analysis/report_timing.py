"""How long a large report takes. Run where nothing else runs: what is said of times is only true there."""

import copy
import time

import load_rows
import rows
from test_report import report


def test_two_thousand_rows_of_all_kinds_take_less_than_twenty_seconds(tmp_path):
    some = [*rows.sweep(1), *load_rows.sweep(3, queues=rows.QUEUES, payloads=(64, 4096))]
    some += [
        load_rows.capacity(load_rows.params(queue), 1000, 1100, slo, repetition, some[-24:])
        for queue in rows.QUEUES
        for slo in ("p99:50us", "p99:1ms")
        for repetition in range(3)
    ]
    again = [copy.deepcopy(row) | {"id": rows.row_id(row["id"], copied)} for copied in range(7) for row in some]
    directory = rows.write(tmp_path / "large", again)
    assert len(again) > 2000
    begin = time.monotonic()
    report(directory)
    assert time.monotonic() - begin < 20


def test_two_thousand_rows_take_less_than_twenty_seconds(tmp_path):
    base, some = rows.sweep(1), []
    for repetition in range(15):
        for row in copy.deepcopy(base):
            row["id"] = rows.row_id(row.get("params", row.get("floor")), repetition)
            some.append(row)
    directory = rows.write(tmp_path / "large", some)
    assert len(some) > 2000
    begin = time.monotonic()
    report(directory)
    assert time.monotonic() - begin < 20
