"""A search must find what a long sweep found. On made-up rows, and on the rows recorded on an H200."""

from pathlib import Path

import pytest
import rows
from test_answer import cells

from analysis.__main__ import main
from analysis.load import load
from analysis.ranks import MEASURES, disagreements

H200 = Path(__file__).resolve().parents[2] / "results" / "reference" / "h200"


def directory(folder: Path, name: str, speeds: dict[str, float]) -> Path:
    """One point a queue, with so many messages a second."""
    return rows.write(folder / name, [row for queue, speed in speeds.items() for row in cells(queue, [speed])])


SWEPT = {"gpu_ring": 9e6, "host_polled": 4e6, "redis_list": 3.5e6}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"gpu_ring": 8e6, "host_polled": 3e6, "redis_list": 3.4e6}, []),  # these two are less than 1.5 x apart
        ({"gpu_ring": 5e6, "host_polled": 3e6, "redis_list": 3e6}, ["gpu_ring reaches 56%"]),
        (
            {"gpu_ring": 7e6, "host_polled": 8e6, "redis_list": 3e6},
            ["gpu_ring is 2.2 × better than host_polled + pinned, and is not ranked before it"],
        ),
        ({"gpu_ring": 9e6, "host_polled": 4e6}, ["redis_list + pinned was not searched"]),
    ],
)
def test_what_a_search_missed_is_named(tmp_path, capsys, found, said):
    swept, searched = directory(tmp_path, "swept", SWEPT), directory(tmp_path, "found", found)
    problems = disagreements(MEASURES[0], load([searched]), load([swept]))
    assert problems == [f"peak messages: {each}" for each in said]
    assert main(["ranks", str(searched), str(swept)]) == (1 if said else 0)
    printed = capsys.readouterr().out
    assert all(each in printed for each in said)


def test_the_old_quick_was_wrong(capsys):
    """Windows and packing were not searched then: Redis stood above kernels that are three times faster."""
    assert main(["ranks", str(H200 / "aa" / "a"), str(H200)]) == 1
    assert "host_polled + mapped is 3.5 × better than redis_list + pinned" in capsys.readouterr().out
