"""The table of what Python's ring reaches: a figure says what it is the median of."""

import importlib.util

from conftest import ROOT

SPEC = importlib.util.spec_from_file_location("python_table", ROOT / "python/benchmarks/table.py")
python_table = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(python_table)


def tensor(size: int, p50: float) -> dict:
    return {"figure": "tensors", "bytes": size, "p50_us": p50, "over_the_host_p50_us": 80.0}


def line(some: list[dict]) -> list[str]:
    (found,) = (one for one in python_table.lines({"tensors": some}) if "tensor" in one[0])
    return found


def test_tensors_of_several_sizes_have_the_figure_of_the_least_one_which_is_named():
    some = [tensor(65536, 95.1), tensor(4096, 90.0), tensor(4096, 94.0), tensor(4096, 99.0), tensor(1 << 20, 131.0)]
    name, value, each = line(some)
    assert (name, value) == ("a GPU tensor of 4 KiB by address, p50", "94 µs")
    assert "64 KiB: 95 µs" in each and "1024 KiB: 131 µs" in each


def test_tensors_that_broke_are_told():
    assert line([{"figure": "tensors", "error": "no GPU"}]) == [
        "a GPU tensor by address, p50", "—", " **broke: no GPU**",
    ]  # fmt: skip
