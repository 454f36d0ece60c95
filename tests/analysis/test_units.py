"""Numbers as people read them."""

import pytest

from analysis import units


@pytest.mark.parametrize(
    "formatter, value, said",
    [
        (units.messages_per_second, 24.13e6, "24.1 M msg/s"),
        (units.messages_per_second, 999_800, "1.00 M msg/s"),
        (units.messages_per_second, 12.0, "12.0 msg/s"),
        (units.bytes_per_second, 41.27e9, "41.3 GB/s"),
        (units.nanoseconds, 3420.0, "3.42 µs"),
        (units.nanoseconds, 174.2, "174 ns"),
        (units.nanoseconds, 2.5e9, "2.50 s"),
        (units.nanoseconds, float("inf"), "—"),
        (units.size, 64, "64 B"),
        (units.size, 1 << 20, "1 MiB"),
        (units.size, 1536, "1.50 KiB"),
        (units.size, 0, "0 B"),
        (units.number, 950, "950"),
        (units.number, 1_234_567, "1.23 M"),
        (units.percent, 0.831, "83 %"),
        (units.percent, 0.0042, "0.42 %"),
        (units.ratio, None, "—"),
        (units.ratio, 0.0, "0"),
        (units.tick(units.nanoseconds), 10_000.0, "10 µs"),
        (units.tick(units.number), 100_000.0, "100 k"),
        (units.unit_of("copy_engine_h2d_bytes_per_second"), 55e9, "55.0 GB/s"),
        (units.unit_of("redis_list_push_per_second"), 5.2e6, "5.20 M msg/s"),
        (units.unit_of("launch_sync_ns"), 6200.0, "6.20 µs"),
    ],
)
def test_said(formatter, value, said):
    assert formatter(value) == said


def test_spread_says_the_unit_once():
    assert units.spread(units.nanoseconds, 3400, 3300, 3500) == "3.40 µs (3.30–3.50)"
    assert units.spread(units.nanoseconds, 1000, 990, 1100) == "1.00 µs (990 ns–1.10 µs)"
    assert units.spread(units.nanoseconds, 3400, 3400, 3400) == "3.40 µs"


def test_words_drop_the_unit():
    assert units.words("copy_engine_h2d_bytes_per_second") == "copy engine h2d"
    assert units.words("launch_sync_ns") == "launch sync"


def test_a_range_with_a_negative_end_has_no_dash():
    assert units.spread(units.ratio, 0.02, -0.1, 0.14) == "0.0200 (-0.100 to 0.140)"
