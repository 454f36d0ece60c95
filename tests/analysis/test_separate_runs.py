"""The trial of separate runs says of a kept file what `compare` says of the folders."""

import importlib.util

import numpy as np
import rows
from conftest import ROOT

from analysis.compare import match, metrics_of
from analysis.load import load

SPEC = importlib.util.spec_from_file_location("separate_runs", ROOT / "tests/trials/separate_runs.py")
separate_runs = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(separate_runs)


def measure(folder, factor: float, spoilt: bool = False) -> None:
    """Three runs a side of four points; the last point of B is so many times as fast."""
    generator = np.random.default_rng(1)
    points = [rows.params(window=window) for window in (1, 2, 4, 8)]
    for run in "123":
        for side in "ab":
            some = [rows.cell(point, 0) for point in points]
            for row in some:
                row["figures"]["messages_per_second"] *= np.exp(generator.normal(0, 0.002))
            if side == "b":
                some[-1]["figures"]["messages_per_second"] *= factor
            if spoilt and (side, run) == ("b", "2"):
                some[0] = rows.spoilt(some[0], "driver_bound", "driver-bound: 101 % of what the driver alone reaches")
            rows.write(folder / f"{side}{run}", some)


def test_a_kept_file_is_judged_as_compare_judges_the_folders(tmp_path):
    measure(tmp_path, 1.3)
    kept = tmp_path / "kept.jsonl"
    kept.write_text("".join(map(separate_runs.line, separate_runs.keep(tmp_path))))
    lines = separate_runs.read(kept)
    assert lines[0]["runs"] == [["a1", "a2", "a3"], ["b1", "b2", "b3"]] and len(lines) == 5
    sides = [load(sorted(tmp_path.glob(f"{side}?"))) for side in "ab"]
    matched, _ = match(*sides)
    compared = {metric.name: [one.verdict for one in matched[metric.column]] for metric in metrics_of(*sides)}
    for name, those in separate_runs.judged(lines).items():
        assert [one.verdict for one in those] == compared[name]
    assert [one.verdict for one in separate_runs.judged(lines)["throughput"]] == ["SAME"] * 3 + ["FASTER"]


def test_a_point_that_one_run_lacks_is_judged_by_the_others(tmp_path):
    measure(tmp_path, 1, spoilt=True)
    lines = separate_runs.keep(tmp_path)
    assert [point["throughput"][1][1] is None for point in lines[1:]] == [True, False, False, False]
    assert all(one.verdict == "SAME" for one in separate_runs.judged(lines)["throughput"])
