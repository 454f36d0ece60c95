"""What is said of an A/B with a planted slowdown: how many pairs each point has, and every verdict that is false."""

import importlib.util

import rows
from conftest import ROOT
from test_ab import side

SPEC = importlib.util.spec_from_file_location("planted_ab", ROOT / "tests/trials/planted_ab.py")
planted_ab = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(planted_ab)

SLOWED, EQUAL, CHANGED = (rows.params(payload_bytes=size, window=1) for size in (96, 64, 128))
BOUND = rows.params(payload_bytes=65536)


def judged(tmp_path, factors, pairs_of_the_last: int) -> str:
    points = [SLOWED, EQUAL, CHANGED, BOUND]
    before, after = side(points, (1, 1, 1, 1), 16), side(points, factors, 16, seed=1)
    for row in after:
        if row["ab"]["point"] == 3 and row["ab"]["pair"] >= pairs_of_the_last:
            row |= rows.spoilt(row, "driver_bound", "driver-bound: 101 % of what the driver alone reaches")
    rows.write(tmp_path / "run/a", before)
    rows.write(tmp_path / "run/b", after)
    return planted_ab.text([str(tmp_path / "run")])


def test_the_pairs_are_a_range_and_points_of_few_pairs_are_named_with_their_ratios(tmp_path):
    text = judged(tmp_path, (0.95, 1, 1, 2.85), 1)
    assert "- `run`: 4 points with 1 to 16 pairs, 16 at the median, 0 without any. Fewer than half" in text
    assert "host_polled + pinned, 65536 B, window 256: 1 of 16 pairs, throughput 2.8" in text
    assert "those that the load generator limited are in none" in text
    assert "3 points with 16 to 16 pairs, 16 at the median, 1 without any." in judged(tmp_path, (0.95, 1, 1, 1), 0)


def test_a_slowed_point_that_is_called_faster_is_false_too(tmp_path):
    text = judged(tmp_path, (1.2, 1, 1.2, 1), 16)
    assert "of 9 verdicts on equal points 1 is FASTER or SLOWER, and false (11.1 %): host_polled + pinned, 128 B" in text
    assert "of 3 verdicts on slowed points 1 is FASTER, and false (33.3 %): host_polled + pinned, 96 B" in text


def test_a_slowed_point_that_is_called_slower_is_not(tmp_path):
    assert "of 3 verdicts on slowed points 0 are FASTER, and false." in judged(tmp_path, (0.8, 1, 1, 1), 16)
