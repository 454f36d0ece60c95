"""The sections of `overlap` and `handoff`: the compared points, the contents of tables, and what tables leave out.
test_blocks.py recomputes the tables of committed rows; these tests cover cases that those rows do not contain."""

import re

import numpy as np
import pytest
from conftest import committed, dictionaries, report
from other_rows import KI, MI, handoff, handoffs, nothing_to_save, overlap, skipped

import analysis.sections.handoff
import analysis.sections.overlap
from analysis import answer, sections
from analysis.document import Bullets
from analysis.handoff import changes, cheapest
from analysis.overlap import points, strategies

pytestmark = pytest.mark.usefixtures("figureless")


@pytest.fixture
def overlaps(read):
    return lambda *some, **options: read(*some, experiment="overlap", **options)


def by_strategy(results, pipeline: str = "chain") -> dict[str, dict]:
    measured = points.read(results)
    table = strategies.table(results, pipeline, measured[measured["pipeline"] == pipeline])
    return {line["strategy"]: line for line in dictionaries(table)}


# --- overlap


def test_strategies_are_compared_at_the_most_common_setting(overlaps):
    whole = committed("h200/overlap", "overlap")
    assert list(by_strategy(whole))[:7] == ["serial", "two_stream", "ping_pong", "ring", "graph", "pdl", "persistent"]
    measured = points.read(whole)
    shared = points.compared(whole, measured[measured["pipeline"] == "chain"])
    assert set(shared["item_bytes"]) == {MI} and set(shared["balance"]) == {"even"}
    assert set(shared.loc[shared["strategy"] == "ring", "depth"]) == {3}  # the default, although 8 may be faster
    some = [overlap(name, n) for name in ("serial", "ping_pong") for n in (0, 1)]
    found = overlaps(some, [overlap("ring", n, depth=depth, items_per_second=depth * 1e4) for depth in (1, 2) for n in (0, 1)])
    assert list(points.compared(found, points.read(found))["depth"]) == [0, 0, 2]  # without the default, the fastest
    found = overlaps(some, overlap("peer_copy", item_bytes=16 * MI), name="elsewhere")
    assert list(by_strategy(found))[-1].startswith("peer_copy\nitem 16 MiB")


def test_strategy_without_figures_shows_the_reason(overlaps):
    wrong = overlap("graph")
    wrong["details"]["verified"]["wrong"] = 1
    unstable = [overlap("ping_pong", n, items_per_second=rate) for n, rate in enumerate((1e4, 2e4))]
    lost = [nothing_to_save(overlap("ring", n), "overlap_efficiency", "overlap_efficiency_alone") for n in range(3)]
    partly = [overlap("persistent", n) for n in range(3)]
    nothing_to_save(partly[2], "overlap_efficiency")
    found = by_strategy(overlaps(overlap("serial"), wrong, unstable, lost, partly, skipped(overlap("pdl"), "needs a GPU")))
    serial, ring, persistent = found["serial"], found["ring"], found["persistent"]
    assert (serial["speedup"], serial["overlap efficiency"], serial["by stages alone"]) == ("1", "0", "0")
    assert found["graph"]["items per second"] == "invalid: items were wrong"
    assert found["pdl"]["items per second"] == "skipped: needs a GPU" and found["pdl"]["speedup"] == "—"
    assert "unstable: 2 times between" in found["ping_pong"]["items per second"]
    assert ring["overlap efficiency"] == ring["by stages alone"] == "—\n4 % to save"
    assert persistent["overlap efficiency"].endswith("\nin 2 of 3 repetitions") and "rep" not in persistent["by stages alone"]
    assert ring["stages, alone"].startswith("decode 60.") and ring["stages, alone"].count("\n") == 2


def test_efficiency_interval_is_linear_and_other_intervals_are_logarithmic(overlaps):
    some = [overlap("two_stream", n, overlap_efficiency=value) for n, value in enumerate((-0.02, 0.0, 0.02))]
    results = overlaps(some)
    point = points.read(results).iloc[0]
    reach = 4.302652729911275 * 0.02 * np.sqrt(1.346 / 3)  # Student's t with 2 degrees of freedom
    assert [point[f"overlap_efficiency_{end}"] for end in ("low", "high")] == pytest.approx([-reach, reach])
    assert by_strategy(results)["two_stream"]["overlap efficiency"] == "0 (-0.0576 to 0.0576)"
    low, middle, high = (point[f"items_per_second{end}"] for end in ("_low", "", "_high"))
    assert middle / low == pytest.approx(high / middle) and sections.of("feeding").linear == ()


def test_answer_is_by_pipeline_without_cpu_rows(overlaps):
    some = [overlap("serial", device=device) for device in ("cpu", "cuda")]
    some += [overlap(name, pipeline=pipeline) for pipeline in points.PIPELINES for name in ("serial", "ping_pong")]
    some = list({row["id"]: row for row in some}.values())
    results = overlaps(some)
    table = answer.table(results, sections.overlap.questions(results))
    assert [row[0].split(":")[0] for row in table.rows] == list(points.PIPELINES)
    assert {row[1].split("\n")[0] for row in table.rows} == {"ping_pong"} and "item 1 MiB" in table.rows[1][0]
    assert set(points.read(results)["device"]) == {"cuda"}


def test_report_sections_are_in_order_and_omitted_without_rows_that_count(folder, tmp_path):
    pipeline = [overlap(name, n) for name in ("serial", "ring") for n in (0, 1)]
    tensors = [row for size in (KI, MI) for way in ("store", "shm_copy") for row in handoffs(FAST, way, size, device="cpu")]
    text = report(folder(pipeline, tensors))
    order = ["# Experiment overlap", "## The answer", "## What was measured", "## Pipeline chain", "## Every point",
             "# Experiment handoff", f"## {sections.handoff.WAYS}"]  # fmt: skip
    places = [text.find(heading) for heading in order]
    assert places == sorted(places) and -1 not in places and "over the bus" not in text
    assert text.index("these are not GPU results") < text.index("100 µs") and "× launch sync" in text
    assert sections.handoff.TWO_GPUS not in text
    gone = report(folder(skipped(overlap(), "no such GPU"), skipped(handoff(), "no such GPU"), name="gone"))
    assert gone.count("no such GPU") == 2 and "## Pipeline" not in gone and f"## {sections.handoff.WAYS}" not in gone


# --- handoff: the cheapest way


FAST, SLOW, NEAR = (100e3, 101e3, 99e3), (200e3, 202e3, 198e3), (100.5e3, 101e3, 99.5e3)


@pytest.fixture
def hands(read):
    return lambda *some, **options: read(*some, experiment="handoff", **options)


def cheapest_lines(results, to: str = "same", shown: tuple = ()) -> list[dict]:
    return dictionaries(cheapest.table(results, cheapest.places(results, to), shown))


def sentences_of(results) -> list[str]:
    return changes.sentences(results, cheapest.places(results))


def test_cheapest_way_is_shown_with_runner_up(hands):
    wrong = handoffs((50e3,) * 3, "shm_pinned")
    for row in wrong:
        row["details"]["verified"]["wrong"] = 1
    results = hands(handoffs(SLOW, "shm_copy"), handoffs(FAST), handoffs((3e5, 3e5, 3e5), "redis_value"), wrong,
                    handoffs(FAST, "ipc_memfd", device="cpu"))  # fmt: skip
    (line,) = cheapest_lines(results)
    assert (line["use"], line["size"], line["cheapest"], line["runner-up"]) == ("cached", "1 MiB", "store", "shm_copy")
    assert re.fullmatch(r"100 µs \(9\d\.?\d*–10\d\)", line["hand-off"])
    assert line["time to start"].startswith("10.0 µs (")
    ratio, _, interval = line["ratio"].partition(" ")
    low, _, high = interval.strip("()").partition("–")
    assert ratio == "2.00" and 1 < float(low) < 2 < float(high)


@pytest.mark.parametrize("some, cheapest_way, ratio, sentence", [
    ([handoffs(FAST), handoffs(NEAR, "ipc_vmm")], "store", "unclear", ""),
    ([handoffs(FAST), handoffs(FAST, "ipc_vmm")], "ipc_vmm", "1.00 (", ""),  # equal times keep the order of ways
    ([handoffs(FAST[:1]), handoffs(SLOW[:1], "ipc_vmm")], "store", "2.00\nunclear",
     "The ways do not clearly differ at 1 MiB."),
    ([handoffs(FAST)], "store", "—", "Only store was measured at 1 MiB."),
    ([handoffs((100e3, 200e3)), handoffs(SLOW, "ipc_vmm")], "store", "unclear", ""),
])  # fmt: skip
def test_cheapest_way_reflects_the_certainty_of_its_rows(hands, some, cheapest_way, ratio, sentence):
    results = hands(*some)
    (line,) = cheapest_lines(results)
    assert line["cheapest"] == cheapest_way and ratio in line["ratio"] and sentences_of(results)[0].endswith(sentence)
    assert ("unstable: 2 times" in line["hand-off"]) == (len(some[0]) == 2)
    assert (line["runner-up"] == "no other was measured") == (len(some) == 1)


def by_size(way: str, *times, use: str = "cached") -> list[dict]:
    """Rows of a way at growing sizes; None means that it was not measured at that size."""
    return [row for size, some in zip((KI, 64 * KI, MI, 64 * MI), times) if some for row in handoffs(some, way, size, use)]


@pytest.mark.parametrize("some, sentence", [
    ([by_size("shm_pinned", FAST, FAST, SLOW, SLOW), by_size("store", SLOW, SLOW, FAST, FAST)],
     "shm_pinned is cheapest from 1 KiB to 64 KiB. store is cheapest from 1 MiB to 64 MiB."),
    ([by_size("ipc_vmm", FAST, NEAR, FAST, NEAR), by_size("store", NEAR, FAST, NEAR, FAST), by_size("shm_copy", *[SLOW] * 4)],
     "ipc_vmm and store are cheapest from 1 KiB to 64 MiB, or not clearly slower than the cheapest."),  # only noise
    ([by_size("ipc_vmm", FAST, NEAR, SLOW, SLOW), by_size("store", NEAR, FAST, FAST, FAST), by_size("shm_copy", *[SLOW] * 4)],
     "(cached): store is cheapest from 1 KiB to 64 MiB, or not clearly slower than the cheapest."),
    ([by_size("shm_pinned", FAST, FAST, SLOW, SLOW), by_size("store", *[FAST] * 4)],
     "Compared with the best way that moves no bytes over the bus, the best that does takes 1.00 times as long at "
     "1 KiB (shm_pinned) and 2.00 times as long at 64 MiB (shm_pinned)."),
    # The best way was not measured at 1 MiB, so another way's lead there does not count.
    ([by_size("store", FAST, FAST, None, FAST), by_size("shm_pinned", *[SLOW] * 4)], "store is cheapest from 1 KiB to 64 MiB."),
    ([by_size("redis_value", FAST, FAST, FAST, None), by_size("store", *[SLOW] * 4),
      [skipped(handoff("redis_value", 64 * MI), "a Redis value cannot exceed 512 MiB")]],  # cannot be measured at this size
     "redis_value is cheapest from 1 KiB to 1 MiB. Only store was measured at 64 MiB."),
])  # fmt: skip
def test_sentences_state_the_sizes_at_which_each_way_is_cheapest(hands, some, sentence):
    results = hands(*some)
    (text,) = sentences_of(results)
    assert sentence in text and text.startswith(changes.USES["cached"])
    heading, bullets, *_ = sections.of("handoff").answer(results)
    assert heading.text == "The answer" and bullets == Bullets([text])
