"""How much longer a large report takes than a small one. Run where nothing else runs: what is said of times is only true
there."""

import copy
import time

import load_rows
import pytest
import rows
from test_report import report


def rows_of_all_kinds() -> list[dict]:
    some = [*rows.sweep(1), *load_rows.sweep(3, queues=rows.QUEUES, payloads=(64, 4096))]
    return some + [
        load_rows.capacity(load_rows.params(queue), 1000, 1100, slo, repetition, some[-24:])
        for queue in rows.QUEUES
        for slo in ("p99:50us", "p99:1ms")
        for repetition in range(3)
    ]


def seconds_for(path, some: list[dict], times: int) -> float:
    """How long a report of so many repetitions of these rows takes."""
    again = [copy.deepcopy(row) | {"id": rows.row_id(row["id"], copied)} for copied in range(times) for row in some]
    assert times == 1 or len(again) > 2000
    directory = rows.write(path / str(times), again)
    begin = time.monotonic()
    report(directory)
    return time.monotonic() - begin


@pytest.mark.parametrize("some, times", [(rows_of_all_kinds(), 7), (rows.sweep(1), 15)], ids=["all_kinds", "one_kind"])
def test_two_thousand_rows_take_little_longer_than_their_plots(tmp_path, some, times):
    # Repetitions add no plot. The smaller report says what this machine takes for the plots.
    assert seconds_for(tmp_path, some, times) < 2.5 * seconds_for(tmp_path, some, 1)
