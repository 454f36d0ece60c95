"""`analysis dose`: the planted share, from the kernel's own time."""

import pytest
import rows
from conftest import main

pytestmark = pytest.mark.usefixtures("figureless")


def measured(kernel_ns: float, work: float, window: int, rate: float, repetition: int) -> dict:
    point = rows.params(workload="fma_chain", flops_per_byte=work, window=window)
    row = rows.cell(point, repetition, rate=rate)
    row["details"]["stages_ns"]["kernel_end"]["mean"] = kernel_ns
    return row


def side(folder, name: str, slower: float) -> str:
    """Lone messages, whose kernel takes 2 of 10 µs, and a full pipeline with kernels of 100 µs."""
    found = [
        row
        for repetition in range(3)
        for row in (
            measured(2000 + 10_000 * slower, 64 * (1 + slower), 1, 1e5, repetition),
            measured(100_000 * (1 + slower), 4096 * (1 + slower), 256, 1e6, repetition),
        )
    ]
    return str(folder(found, name=name))


def test_planted_share_is_of_the_time_that_counts(folder, capsys):
    assert main(["dose", side(folder, "a", 0.0), side(folder, "b", 0.05)]) == 0
    text = capsys.readouterr().out
    lines = [line for line in text.splitlines() if line.startswith("| host_polled")]
    assert len(lines) == 2 and all(" | 5 % | " in line for line in lines), text
    assert "| 2.00 µs | 2.50 µs | 5 % | 10.0 µs |" in lines[0] and "| 100 µs | 105 µs | 5 % | 1.00 µs |" in lines[1]
    assert "Medians of at least 3 repetitions" in text


def test_several_pairs_give_one_table(folder, capsys):
    pairs = []
    for window, slower in ((1, 0.05), (2, 0.03)):
        for name, share in (("a", 0.0), ("b", slower)):
            cells = [measured(100_000 * (1 + share), 64 * (1 + share), 256 * window, 1e6, repetition) for repetition in range(3)]
            pairs.append(str(folder(cells, name=f"{name}{window}")))
    assert main(["dose", *pairs]) == 0
    text = capsys.readouterr().out
    assert "| 256 | 100 µs | 105 µs | 5 % |" in text.replace("window ", "") and "| 512 | 100 µs | 103 µs | 3 % |" in text.replace("window ", "")
    assert main(["dose", *pairs[:3]]) == 2 and "is an odd number of directories" in capsys.readouterr().err


def test_sides_with_other_points_are_rejected(folder, capsys):
    without = str(folder([rows.cell(rows.params(window=7))], name="without"))
    assert main(["dose", without, without]) == 2 and "has no axis flops_per_byte" in capsys.readouterr().err
    other = str(folder([measured(2000, 64, 7, 1e5, 0)], name="other"))
    assert main(["dose", side(folder, "a", 0.0), other]) == 2
    assert "has 2 points that the other side lacks" in capsys.readouterr().err


def test_a_point_has_one_amount_of_work(folder, capsys):
    several = [measured(2000, work, 1, 1e5, repetition) for work in (64, 70) for repetition in range(2)]
    several = str(folder(several, name="several"))
    assert main(["dose", several, several]) == 2
    assert "has several values of flops_per_byte at one point" in capsys.readouterr().err


def test_sides_of_several_revisions_are_rejected(folder, capsys):
    later = [rows.rerun(measured(2000, 64, 1, 1e5, 0), where=rows.environment(revision="later"))]
    first = [measured(2000, 64, 1, 1e5, 0)]
    assert main(["dose", str(folder(first, name="first")), str(folder(later, name="later"))]) == 2
    assert "these runs differ in their revision" in capsys.readouterr().err
