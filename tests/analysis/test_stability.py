"""Points whose repetitions differ too much: one rule judges, tables and figures mark them, the summary counts them."""

import load_rows
import pytest
import numpy as np
import rows
from test_report import report, with_rows

from analysis import catalogue, stability, stats
from analysis.feeding import open_load
from analysis.load import load
from analysis.stats import points
from analysis.feeding.plots import distribution, draw_all, heatmap, stages

pytestmark = pytest.mark.usefixtures("undrawn")

RATE, P50, P99 = "messages_per_second", "latency_ns.p50", "latency_ns.p99"


def repeated(throughputs=(1e6,), p50s=(1e4,), p99s=(2e4,), **changes) -> list[dict]:
    """Repetitions of one point with these figures; the shorter lists end with their last again and again."""
    count = max(map(len, (throughputs, p50s, p99s)))
    some = [rows.cell(rows.params(**changes), repetition) for repetition in range(count)]
    for place, row in enumerate(some):
        rate, p50, p99 = (values[min(place, len(values) - 1)] for values in (throughputs, p50s, p99s))
        row["figures"] |= {"messages_per_second": rate, "bytes_per_second": rate * row["params"]["payload_bytes"]}
        row["figures"]["latency_ns"] |= {"p50": p50, "p99": p99}
    return some


def judged(tmp_path, some):
    (point,) = stats.points(load([with_rows(tmp_path, *some)])).to_dict("records")
    return point


@pytest.mark.parametrize(
    "figures, unstable",
    [
        ({"throughputs": (1e6, 1.49e6)}, []),
        ({"throughputs": (1.5e6, 1e6, 1.2e6)}, ["throughput"]),
        ({"p50s": (1e4, 1.49e4)}, []),
        ({"p50s": (1e4, 1.5e4)}, ["p50"]),
        ({"p99s": (2e4, 5.9e4)}, []),
        ({"p99s": (2e4, 6e4)}, ["p99"]),
        ({"throughputs": (1e6, 6e6), "p50s": (1e4, 9e4), "p99s": (1e4, 63e4)}, ["throughput", "p50", "p99"]),
        ({"throughputs": (1e6,)}, []),
    ],
)
def test_the_rule(tmp_path, figures, unstable):
    assert judged(tmp_path, repeated(**figures))["unstable"] == unstable


def test_the_spread_is_the_largest_over_the_smallest(tmp_path):
    assert judged(tmp_path, repeated(throughputs=(2e6, 1e6, 6e6)))["spread"]["throughput"] == 6


def test_what_the_rows_say_counts(tmp_path):
    some = repeated(throughputs=(1e6, 9e6))
    stop = {"reason": "repetitions", "repetitions": 2, "spread": {RATE: 1.0, P50: 1.6, P99: 1.0}}
    some[-1]["stop"] = stop | {"unstable": [P50]}
    point = judged(tmp_path, some)
    assert point["unstable"] == ["p50"] and point["spread"]["p50"] == 1.6


def test_of_two_runs_neither_knows_the_other(tmp_path):
    """Each was steady by itself, and they differ by six times."""
    stop = {"reason": "repetitions", "repetitions": 2, "spread": {}, "unstable": []}
    sides = []
    for name, rate in (("a", 1e6), ("b", 6e6)):
        some = repeated(throughputs=(rate, rate))
        some[-1]["stop"] = stop
        sides.append(rows.write(tmp_path / name, some))
    (point,) = stats.points(load(sides)).to_dict("records")
    assert point["unstable"] == ["throughput"] and point["spread"]["throughput"] == 6


def test_the_report_marks_the_figures_and_counts_the_points(tmp_path):
    shaky = repeated(throughputs=(1e6, 6e6), window=1, p50s=(1e4, 2e4), p99s=(2e4, 9e4))
    text = report(with_rows(tmp_path, *shaky, *repeated(throughputs=(2e5, 2e5), window=64)))
    line = next(line for line in text.splitlines() if line.startswith("| host_polled + pinned | 3.50 M msg/s"))
    assert "unstable: 6 times between repetitions" in line  # throughput
    assert "unstable: 2 times between repetitions" in line  # p50
    assert "unstable: 4.5 times between repetitions" in line  # p99
    assert "1 of 2 points measured more than once is unstable" in text
    page = (tmp_path / "some/report.html").read_text()
    assert '<span class="more flag' in page


def test_a_steady_run_says_so(tmp_path):
    text = report(with_rows(tmp_path, *repeated(throughputs=(1e6, 1e6))))
    assert "None of 1 points measured more than once is unstable" in text
    assert "unstable:" not in text.replace("is unstable:", "")


def test_open_loads_are_judged_too(tmp_path):
    some = [load_rows.cell(load_rows.params(), repetition) for repetition in range(2)]
    for row, p99 in zip(some, (1e4, 4e4)):
        row["figures"]["latency_ns"]["p99"] = p99
    found = open_load.points(load([with_rows(tmp_path, *some)]))
    assert found["unstable"].tolist() == [["p99"]]
    assert "unstable: 4 times" in open_load.saturation(open_load.curves(found)).rows[0][4]


def lines_of(axes) -> list[tuple]:
    """The ends of every line and whisker."""
    drawn = [segment for group in axes.collections for segment in getattr(group, "get_segments", list)()]
    ends = [tuple(map(tuple, segment)) for segment in drawn]
    return [*ends, *(tuple(zip(*line.get_data())) for line in axes.lines)]


def holds(axes, *ends: tuple) -> bool:
    """Whether a line has these ends, to what arithmetic rounds."""
    return any(np.shape(line) == np.shape(ends) and np.allclose(line, ends) for line in lines_of(axes))


def figures(tmp_path, some) -> dict:
    return {drawing.name: drawing for drawing in draw_all(load([with_rows(tmp_path, *some)])) if drawing.figure}


def test_the_headline_shows_both_intervals(tmp_path):
    some = repeated(throughputs=(1e6, 3e6), window=1, p50s=(1e4, 1.2e4), p99s=(2e4, 4e4))
    left, right = figures(tmp_path, some)["headline"].figure.axes
    point = points(load([tmp_path / "some"])).iloc[0]
    for axes, metric in ((left, "messages_per_second"), (right, "p50"), (right, "p99")):
        assert holds(axes, (point[f"{metric}_low"], 0), (point[f"{metric}_high"], 0))


def test_latency_against_throughput_shows_both_intervals(tmp_path):
    some = [*repeated((1e6, 3e6), p99s=(2e4, 4e4), window=16), *repeated((4e6,), window=64)]
    last = figures(tmp_path, some)["latency_window"].figure.axes[2]
    found = points(load([tmp_path / "some"]))
    point = found[found["window"] == 16].iloc[0]
    rate, p99 = ((point[f"{metric}_low"], point[f"{metric}_high"]) for metric in ("messages_per_second", "p99"))
    assert holds(last, (rate[0], 3e4), (rate[1], 3e4)) and holds(last, (2e6, p99[0]), (2e6, p99[1]))


def test_distributions_are_shaded_over_the_repetitions(tmp_path):
    drawn = figures(tmp_path, repeated(throughputs=(1e6, 1e6), window=1))[distribution.NAME]
    assert "shaded" in drawn.caption and all(len(axes.collections) == 1 for axes in drawn.figure.axes)


def test_stages_tell_the_range_of_their_sum(tmp_path):
    some = repeated(throughputs=(1e6, 1e6), window=1)
    for row, factor in zip(some, (1, 3)):
        row["details"]["stages_ns"] = {name: {"mean": 1000 * factor, "p50": 1, "p99": 1} for name in ("sent", "collected")}
    (axes,) = figures(tmp_path, some)[stages.NAME].figure.axes
    assert [text.get_text() for text in axes.texts] == ["4.00 µs\n(2.00–6.00)"]


def test_a_heat_map_names_its_unstable_cells(tmp_path):
    some = [
        row
        for block in (64, 128)
        for streams in (1, 2)
        for row in repeated((1e6, 1e6 if (block, streams) != (64, 2) else 2e6), block=block, streams=streams)
    ]
    drawing = figures(tmp_path, some)[heatmap.NAME]
    said = [text.get_text() for text in drawing.figure.axes[0].texts]
    assert sum("unstable" in text for text in said) == 1 and "1.50 M\nunstable" in said
    assert "Unstable: the repetitions differ" in drawing.caption


def test_rows_with_spread_are_valid(schema):
    row = rows.cell(rows.params())
    stop = {"reason": "repetitions", "repetitions": 3, "spread": {RATE: 6.1, P50: 1.0, P99: 63.2}}
    schema.validate(row | {"stop": stop | {"unstable": [RATE, P99]}})
    for wrong in ({"unstable": [""]}, {"unstable": [P50, P50]}, {"spread": {P50: 0.5}}, {"spread": {P99: "2"}}):
        assert not schema.is_valid(row | {"stop": stop | wrong})


def test_the_rule_in_words_is_the_rule():
    experiment = catalogue.merged([rows.CATALOGUE]).experiment("feeding")
    rule = "throughput or p50 differ by 1.5 times or more between repetitions, or p99 by 3 times or more"
    assert stability.rule(experiment) == rule
    factors = {metric.name: metric.unstable_from for metric in experiment.judged}
    assert factors == {"throughput": 1.5, "p50": 1.5, "p99": 3}
