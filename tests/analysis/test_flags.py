"""What a row warns of is told by the row, or derived from an older one, and marked wherever its figures stand."""

import pytest
import rows
from test_report import report, with_rows

from analysis.load import load
from analysis.stats import points

pytestmark = pytest.mark.usefixtures("undrawn")

WHICH = ["late_generator", "unsteady", "above_floor"]


def flagged(*codes: str, **changes) -> dict:
    return rows.cell(rows.params(**changes)) | {"flags": list(codes)}


def read(tmp_path, *some) -> list[list[str]]:
    return list(load([with_rows(tmp_path, *some)]).cells["flags"])


def test_a_rows_own_flags_count(tmp_path):
    steady = flagged(window=2)
    steady["details"]["warmup"] = {"steady": False}  # a row that tells its flags is believed
    assert read(tmp_path, flagged(*WHICH), steady) == [WHICH, []]


def test_an_older_rows_flags_are_derived(tmp_path):
    late, unsteady, above, latency, plain = (rows.cell(rows.params(window=window)) for window in (1, 2, 4, 8, 16))
    late = rows.spoilt(late, "generator", "generator: late")
    unsteady["details"]["warmup"] = {"steady": False}
    above["bounds"]["messages_per_second"]["ratio"] = 1.06
    latency["bounds"]["latency_ns"]["ratio"] = 9.0  # a time may be as far above its floor as it likes
    plain["bounds"]["messages_per_second"]["ratio"] = 1.05
    plain["details"]["warmup"] = {"steady": True}
    assert read(tmp_path, late, unsteady, above, latency, plain) == [*([code] for code in WHICH), [], []]


def test_a_late_row_counts(tmp_path):
    late = rows.spoilt(rows.cell(rows.params()), "generator", "generator: late")
    cells = load([with_rows(tmp_path, late)]).cells
    assert list(cells["status"]) == ["ok"] and list(cells["reason"]) == [""]


def test_a_late_row_with_wrong_results_does_not(tmp_path):
    late = rows.spoilt(rows.cell(rows.params()), "generator", "generator: late")
    late["details"]["counts"]["corrupted"] = 1
    assert list(load([with_rows(tmp_path, late)]).cells["status"]) == ["invalid"]


def test_a_point_counts_its_rows_by_flag(tmp_path):
    some = [
        rows.cell(rows.params(), repetition) | {"flags": codes}
        for repetition, codes in enumerate((WHICH, [], WHICH[:2]))
    ]
    (found,) = points(load([with_rows(tmp_path, *some)]))["flags"]
    assert found == {"late_generator": 2, "unsteady": 2, "above_floor": 1}


@pytest.mark.parametrize("code, mark, said", [
    ("late_generator", "†", "with a late load generator"),
    ("unsteady", "‡", "unsteady"),
    ("above_floor", "§", "with a figure more than 5 % better than its floor"),
])  # fmt: skip
def test_a_report_marks_and_counts(tmp_path, code, mark, said):
    some = [rows.cell(rows.params(), repetition) for repetition in range(3)]
    some[2]["flags"] = [code]
    some[2]["figures"]["messages_per_second"] /= 2
    text = report(with_rows(tmp_path, *some))
    assert f"{mark} 1 of 3 rows {said}" in text
    every_point = text.partition("## Every point")[2].partition("##")[0]
    assert f") {mark}<br>" in every_point
    least, greatest = sorted(row["figures"]["messages_per_second"] for row in some)[::2]
    assert f"{least / 1e6:.2f} M msg/s to {greatest / 1e6:.2f} M msg/s" in every_point


def test_without_flags_there_is_no_word_of_them(tmp_path):
    text = report(with_rows(tmp_path, *(rows.cell(rows.params(), repetition) for repetition in range(3))))
    assert not any(mark in text for mark in "†‡§")
