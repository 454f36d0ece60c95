"""What a guarantee costs: each Redis queue against redis_list, its ratios with intervals."""

import rows
from test_answer import cells

from analysis.feeding import prices
from analysis.load import load

QUICK, SLOW = (10e6, 10.1e6, 9.9e6), (2.5e6, 2.5e6, 2.5e6)


def found(tmp_path, *groups):
    some = [row for group in groups for row in group]
    for row in some:
        row["params"].setdefault("pack", 64)
        row["params"].setdefault("once_seconds", 0)
    return prices.prices(load([rows.write(tmp_path / "rows", some)]))


def reliable(rates, **params):
    some = cells("redis_stream", rates)
    for row in some:
        row["params"] |= {"queue": "redis_reliable"} | params
        row["id"] = f"{row['id'][:-2]}{len(params):02}"
    return some


def test_each_queue_stands_at_its_share_of_redis_list(tmp_path):
    once = reliable((1e6, 1e6), once_seconds=60)
    alone = [cells(queue, (1e4,), p50=p50, window=1) for queue, p50 in (("redis_list", 4e4), ("redis_stream", 6e4))]
    queues = [cells("redis_list", QUICK), reliable(SLOW), cells("redis_stream", SLOW)]
    lines = found(tmp_path, *queues, once, *alone).set_index(["measure", "line"])["share"]
    rates = lines["most messages"]
    assert rates["redis_list"] == 1 and rates["redis_reliable"] == 0.25 and rates["redis_reliable, once"] == 0.1
    assert lines["lone p50"]["redis_stream"] == 1.5


def test_the_intervals_of_both_are_in_the_ratio(tmp_path):
    shares = found(tmp_path, cells("redis_list", QUICK), reliable(SLOW), cells("redis_stream", SLOW))
    one = shares.set_index(["measure", "line"]).loc["most messages", "redis_reliable"]
    assert one["share_low"] < 0.25 < one["share_high"]
    table = prices.table(shares)
    assert table.columns[:2] == ["queue", "delivery"] and len(table.rows) == 3
    assert any("× 0.25" in cell for row in table.rows for cell in row)


def test_without_redis_list_or_with_one_other_there_is_no_price(tmp_path):
    assert found(tmp_path, reliable(SLOW), cells("redis_stream", SLOW)).empty
    assert found(tmp_path / "two", cells("redis_list", QUICK), cells("redis_stream", SLOW)).empty
