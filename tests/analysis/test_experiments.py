"""Experiments that the analysis has never heard of, and figures that nobody told it of: the catalogue is enough."""

import json

import launch_rows as launch
import pytest
import rows
from test_report import report

from analysis import sections
from analysis.__main__ import main
from analysis.load import load, load_all

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def swept(tmp_path):
    return launch.write(tmp_path / "launch", launch.sweep())


def lines(text: str, start: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith(start)]


def test_the_rows_are_valid(schema):
    for row in rows.with_runs(launch.sweep(1)):
        schema.validate(row)


def test_no_section_is_needed():
    assert sections.of("launch") == sections.Section() and sections.of("feeding") != sections.Section()
    assert sections.of("not a name") == sections.Section()


def test_the_answer_names_the_best_form_by_each_figure(swept):
    text = report(swept)
    (rate,), (time,) = lines(text, "| highest launches per second"), lines(text, "| lowest round trip p50")
    assert rate[1].startswith("graph") and "threads 4" in rate[1] and "M launches/s" in rate[2]
    assert rate[3].startswith("streams") and "5." not in rate[5][:1]
    assert time[1].startswith("graph") and "ns" in time[2]
    assert "queue" not in text.partition("## What was measured")[0]


def test_every_point_stands_in_a_table_with_range_ratio_and_cost(swept):
    text = report(swept)
    (head,) = lines(text, "| form | point |")
    assert head == [
        *("form", "point", "repetitions", "launches per second", "round trip p50", "round trip p99"),
        *("host threads", "SMs"),
    ]
    table = text.partition("## Every point")[2].partition("## Floors")[0]
    forms = [line[0] for line in lines(table, "| ") if line[0] in launch.FORMS]
    assert forms == [*["plain"] * 2, *["graph"] * 3, *["streams"] * 2]
    (point,) = lines(table, "| graph | threads 1, nodes 64 |")
    assert point[2] == "5" and "(" in point[3] and "% of launches" in point[3] and "× launch sync" in point[4]
    assert point[6:] == ["1", "0"]


def test_the_rest_of_the_report_is_there(swept):
    text = report(swept)
    assert "35 rows: 35 ok, 0 invalid" in text and "None of 7 points measured more than once is unstable" in text
    assert "round trip" not in text.partition("## What was run")[2] and "| nodes | 16, 64 |" in text
    assert "| launch sync | 6.20 µs |" in text and "| launches | 3.00 M/s |" in text
    assert (swept / "report.html").is_file()


def test_a_point_that_is_unstable_says_so_by_the_catalogues_rule(tmp_path):
    some = launch.sweep(2)
    for row in some:
        if row["kind"] == "cell" and row["params"] == launch.params("plain") and row["repetition"]:
            row["figures"]["launches_per_second"] *= 2
    text = report(launch.write(tmp_path / "run", some))
    assert "1 of 7 points measured more than once is unstable: throughput or p50 differ by 1.5 times" in text
    assert "unstable: 2 times between repetitions" in text


def test_rows_that_do_not_count_are_told(tmp_path):
    failed = launch.cell(launch.params("plain")) | {"status": "failed", "cause": "error", "reason": "no such kernel"}
    del failed["figures"], failed["bounds"]
    text = report(launch.write(tmp_path / "run", [failed, launch.cell(launch.params("graph"))]))
    assert "| failed | no such kernel | plain | 1 |" in text


def test_nothing_ok_is_still_a_report(tmp_path):
    failed = launch.cell(launch.params("plain")) | {"status": "failed", "cause": "error", "reason": "no such kernel"}
    del failed["figures"], failed["bounds"]
    assert "no such kernel" in report(launch.write(tmp_path / "run", [failed]))


def test_compare_judges_the_catalogues_figures_by_their_direction(tmp_path, capsys):
    a, b = (launch.write(tmp_path / name, launch.sweep(speed=speed)) for name, speed in (("a", 1.0), ("b", 1.4)))
    assert main(["compare", str(a), str(b), "--run-noise", "0"]) == 0
    text = capsys.readouterr().out
    assert "7 points matched" in text and "| form | point | repetitions | throughput | p50 | p99 |" in text
    for metric in ("throughput", "p50", "p99"):
        assert f"{metric}: 7 FASTER, 0 SLOWER" in text
    assert (b / "compare.png").is_file()
    assert main(["compare", str(b), str(a), "--run-noise", "0"]) == 0
    assert "throughput: 0 FASTER, 7 SLOWER" in capsys.readouterr().out


@pytest.mark.parametrize(
    "gate, code",
    [("slower:5%", 1), ("slower:5%:p99", 1), ("slower:50%", 0), ("slower:5%:launches_per_second", 1),
     ("slower:5%:round_trip_ns.p50", 1), ("unclear:throughput", 0)],
)  # fmt: skip
def test_a_gate_knows_the_metrics_by_either_name(tmp_path, capsys, gate, code):
    a, b = (launch.write(tmp_path / name, launch.sweep(speed=speed)) for name, speed in (("a", 1.0), ("b", 0.7)))
    assert main(["compare", str(a), str(b), "--run-noise", "0", "--fail-on", gate]) == code
    error = capsys.readouterr().err
    assert not code or "plain, threads 1: " in error or "graph, threads 1, nodes 16: " in error


def test_a_gate_on_a_metric_that_no_catalogue_has_is_bad_input(swept, capsys):
    assert main(["compare", str(swept), str(swept), "--fail-on", "slower:5%:service_p99"]) == 2
    assert "no such metric 'service_p99'; allowed: throughput, p50, p99" in capsys.readouterr().err


def test_aa_counts_its_false_verdicts(swept, capsys):
    assert main(["aa", str(swept), str(swept)]) == 0
    assert "| throughput | 7 | 0 | 0 |" in capsys.readouterr().out


def exported(directory, out) -> list[dict]:
    assert main(["export", str(directory), "--format", "google-benchmark", "--out", str(out)]) == 0
    return json.loads(out.read_text())["benchmarks"]


def test_exports_hold_its_figures(swept, tmp_path):
    found = exported(swept, tmp_path / "out.json")
    assert {one["run_name"] for one in found if "nodes:64" in one["run_name"]} == {
        f"graph/cuda/streams:1/threads:1/nodes:64{series}" for series in ("", "/p50", "/p99")
    }
    one = next(one for one in found if one["run_name"] == "plain/cuda/streams:1/threads:1")
    assert one["items_per_second"] == pytest.approx(4e5, rel=0.05) and one["real_time"] == 1e9 / one["items_per_second"]
    assert one["iterations"] == 2000 and one["threads"] == 1
    assert main(["export", str(swept), "--format", "hdr", "--out", str(tmp_path / "logs")]) == 0
    assert all("Tag=round_trip_ns," in file.read_text() for file in (tmp_path / "logs").iterdir())


@pytest.mark.parametrize(
    "command", [["readme", "DIR", "PAGE"], ["figures", "DIR", "--out", "OUT"], ["ranks", "DIR", "DIR"]]
)
def test_feedings_own_commands_say_that_they_need_its_rows(swept, tmp_path, capsys, command):
    (page := tmp_path / "PAGE.md").write_text("<!-- figures:begin --><!-- figures:end -->")
    places = {"DIR": str(swept), "PAGE": str(page), "OUT": str(tmp_path / "out")}
    assert main([places.get(word, word) for word in command]) == 2
    said = capsys.readouterr().err  # figures are of every experiment that has some
    only = "no experiment with figures" if command[0] == "figures" else "launch only"
    assert f"holds rows of {only}; allowed: rows of feeding" in said


# A figure that no file of the analysis names.
def with_occupancy(speed: float = 1.0, occupancy: float = 0.4) -> list[dict]:
    return launch.sweep(speed=speed, occupancy=occupancy)


def test_a_new_figure_appears_in_report_compare_and_export(tmp_path, capsys):
    a, b = (
        launch.write(tmp_path / name, with_occupancy(occupancy=share), launch.OCCUPANCY)
        for name, share in (("a", 0.4), ("b", 0.5))
    )
    text = report(a)
    assert lines(text, "| highest") and lines(text, "| lowest occupancy") and "| occupancy |" in text
    assert "0.400" in lines(text, "| lowest occupancy")[0][2]
    capsys.readouterr()
    assert main(["compare", str(a), str(b), "--run-noise", "0", "--fail-on", "slower:5%:occupancy"]) == 1
    said = capsys.readouterr()
    assert "occupancy: 0 FASTER, 7 SLOWER" in said.out and "occupancy SLOWER, 25 % worse" in said.err
    found = exported(a, tmp_path / "out.json")
    assert any(one.get("occupancy") == 0.4 for one in found)


def test_a_new_figure_of_feeding_appears_too(tmp_path, capsys):
    """A distribution this time, beside the sections that know feeding."""
    told = json.loads(json.dumps(rows.CATALOGUE))
    figure = {"name": "queueing_ns", "unit": "ns", "better": "lower", "distribution": True, "headline": True}
    told["experiments"][0]["figures"].append(figure | {"description": "time in the queue"})
    sides = []
    for name, factor in (("a", 1.0), ("b", 2.0)):
        some = [rows.cell(rows.params(window=window), repetition) for window in (1, 64) for repetition in range(5)]
        for row in some:
            own = row["figures"]["latency_ns"]
            scaled = {key: factor * own[key] / 2 for key in ("min", "mean", "p50", "p90", "p99", "p999", "max")}
            row["figures"]["queueing_ns"] = own | scaled
        sides.append(rows.write(tmp_path / name, some, told))
    text = report(sides[0])
    assert lines(text, "| lowest queueing p50") and "| queueing p50 | queueing p99 |" in text
    capsys.readouterr()
    assert main(["compare", *map(str, sides), "--run-noise", "0"]) == 0
    assert "queueing p99: 0 FASTER, 2 SLOWER" in capsys.readouterr().out
    found = exported(sides[0], tmp_path / "out.json")
    assert any(one["run_name"].endswith("/queueing_p99") for one in found)


def test_a_figure_that_the_catalogue_lacks_is_no_figure(tmp_path):
    results = load([launch.write(tmp_path / "run", with_occupancy())], experiment="launch")
    assert "occupancy" not in results.cells


def both(directory, speed: float = 1.0):
    some = [*launch.sweep(speed=speed), *(rows.cell(rows.params(), repetition) for repetition in range(5))]
    return launch.write(directory, some, feeding=True)


def test_experiments_of_one_folder_are_reported_each_by_itself(tmp_path):
    directory = both(tmp_path / "run")
    found = load_all([directory])
    assert {name: len(results.cells) for name, results in found.items()} == {"launch": 35, "feeding": 5}
    text = report(directory)
    first, second = text.index("# Experiment launch"), text.index("# Experiment feeding")
    assert first < text.index("| highest launches per second") < second < text.index("| small messages")
    assert "35 rows: 35 ok" in text and "5 rows: 5 ok" in text
    assert "launches/s" not in text[second:] and "msg/s" not in text[first:second]


def test_experiments_of_several_folders_are_reported_each_by_itself(tmp_path, swept):
    other = rows.write(tmp_path / "feeding", [rows.cell(rows.params())])
    text = report(swept, other, out=tmp_path / "out")
    assert "# Experiment launch" in text and "# Experiment feeding" in text


def test_experiments_are_compared_each_by_itself(tmp_path, capsys):
    a, b = both(tmp_path / "a"), both(tmp_path / "b", 0.7)
    gates = ["--run-noise", "0", "--fail-on", "slower:5%:throughput"]
    assert main(["compare", str(a), str(b), *gates]) == 1
    said = capsys.readouterr()
    assert "7 points matched" in said.out and "1 points matched" in said.out
    assert said.err.count("\n") == 7 and all(line.startswith("launch: ") for line in said.err.splitlines())
    assert {file.name for file in b.glob("*.png")} == {"compare_launch.png", "compare_feeding.png"}


def test_what_only_one_side_measured_is_said(tmp_path, swept, capsys):
    assert main(["compare", str(both(tmp_path / "a")), str(swept)]) == 0
    assert "Only A holds rows of feeding." in capsys.readouterr().out


def test_no_experiment_in_common_is_bad_input(tmp_path, swept, capsys):
    other = rows.write(tmp_path / "feeding", [rows.cell(rows.params())])
    assert main(["compare", str(swept), str(other)]) == 2
    assert "shares no experiment with A: rows of feeding; allowed: rows of launch" in capsys.readouterr().err


def test_exports_of_several_experiments_begin_with_their_names(tmp_path):
    found = exported(both(tmp_path / "run"), tmp_path / "out.json")
    assert {one["run_name"].partition("/")[0] for one in found} == {"launch", "feeding"}


def test_an_experiment_that_the_catalogue_lacks_still_tells_the_fate_of_its_rows(tmp_path):
    known = launch.catalogue()
    text = report(rows.write(tmp_path / "run", launch.sweep(1), known | {"experiments": []}))
    assert "7 rows: 7 ok" in text
