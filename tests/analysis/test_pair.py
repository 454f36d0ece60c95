"""What one pair of threads carries stands beside the driver with the same batch and window."""

import ring_rows
import rows

from analysis.__main__ import main
from analysis.load import load
from analysis.feeding.ring import pair
from analysis.feeding.ring import points as ring


def table(tmp_path, *some):
    return pair.table(ring.read(load([rows.write(tmp_path / "some", list(some))])))


def test_the_best_lanes_of_each_batch_beside_null_with_that_batch(tmp_path):
    some = [
        ring_rows.point(batch=batch, window=window, lanes=lanes, rate=rate)
        for batch, window, lanes, rate in ((256, 2048, 4, 90e6), (256, 2048, 8, 100e6), (8192, 65536, 8, 180e6))
    ]
    some += [ring_rows.point("null", transfer="none", batch=256, window=2048, rate=200e6)]
    some += [ring_rows.point(batch=256, window=2048, lanes=8, producers=4, rate=400e6)]  # no pair
    some += [ring_rows.point(batch=1, window=1, rate=1e5)]  # a lone message
    short, long = table(tmp_path, *some).rows
    assert short[:3] == ["64 B", "256", "2048"]
    assert short[3].startswith("100 M msg/s") and "lanes 8" in short[3] and short[3].endswith("best of 2")
    assert short[4].startswith("200 M msg/s") and short[5] == "50 %"
    assert long[1] == "8192" and long[3].startswith("180 M msg/s") and long[4:] == ["—", "—"]


def test_the_fast_repetitions_count_as_at_least(tmp_path):
    """What is within 10 % of the driver's limit is fast: a median without it is of the slow ones. A batch of which all
    repetitions are so fast has a line, too."""
    rates = {(1024, 4): (117e6, 175e6, 208e6), (1024, 8): (148e6, 160e6, 165e6), (4096, 4): (164e6, 197e6, 226e6)}
    some = []
    for (batch, lanes), of_lanes in rates.items():
        for repetition, rate in enumerate(of_lanes):
            row = ring_rows.point(repetition=repetition, batch=batch, window=8 * batch, lanes=lanes, rate=rate)
            limited = rate != 117e6
            some.append(rows.spoilt(row, "driver_bound", "driver-bound: 99 % of what") if limited else row)
    for batch in (1024, 4096):
        some.append(ring_rows.point("null", transfer="none", batch=batch, window=8 * batch, rate=200e6))
    short, long = table(tmp_path, *some).rows
    assert short[3].startswith("at least 175 M msg/s") and "lanes 4" in short[3] and short[3].endswith("best of 2")
    assert long[1] == "4096" and long[3].startswith("at least 197 M msg/s")
    assert (short[5], long[5]) == ("at least 88 %", "at least 98 %")


def test_no_line_without_the_ring(tmp_path):
    assert table(tmp_path, ring_rows.point("null", transfer="none", batch=256, window=2048)) is None


def test_readme_block(tmp_path):
    directory = rows.write(tmp_path / "run", [ring_rows.point(batch=256, window=2048, rate=100e6)])
    (readme := tmp_path / "README.md").write_text("<!-- one_pair:begin -->\nold\n<!-- one_pair:end -->\n")
    arguments = ["readme", str(directory), str(readme), "--block", "one_pair"]
    assert main([*arguments, "--check"]) == 1
    assert main(arguments) == 0 and main([*arguments, "--check"]) == 0
    assert "| 64 B | 256 | 2048 | 100 M msg/s" in readme.read_text()
