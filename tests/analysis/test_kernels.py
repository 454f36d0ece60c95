"""The section of `kernels`: the fastest rung, ladders, absent libraries, conditions, errors, and the specs."""

import json
import re

import kernels_rows
import pytest
import rows
from conftest import ROOT, dictionaries, main, report
from kernels_rows import TERA, errors, kernels, ladder, repeated

from analysis import bounds, catalogue, units
from analysis.document import Bullets, Table, Text
from analysis.kernels import conditions, fastest, ladders, libraries, table
from analysis.kernels import errors as error_tables

pytestmark = pytest.mark.usefixtures("figureless")
PEERS = {"cublas": 0.9, "cublaslt": 0.8}
MISSING = "cuBLAS is missing: install libcublas"


@pytest.fixture
def measured(read):
    def load(*some, known: dict = kernels_rows.CATALOGUE, **options):
        return read(*some, experiment="kernels", catalogue=known, **options)

    return load


def lines(blocks: list) -> list[dict]:
    """The lines of all tables of the blocks."""
    return [line for block in blocks if isinstance(block, Table) for line in dictionaries(block)]


def bullets(blocks: list) -> list[str]:
    return [item for block in blocks if isinstance(block, Bullets) for item in block.items]


# --- the answer


def test_fastest_rung_is_shown_with_its_shares_and_the_runner_up(measured):
    (line,) = lines(fastest.blocks(measured(*ladder())))
    assert line["problem"] == "matmul bf16, 4096 × 4096 × 4096, layout nt\ncache cold, pace sustained"
    assert (line["fastest rung"], line["runner-up"], line["n"]) == ("tma_store", "persistent", "3")
    assert re.fullmatch(r"720 T/s \(71\d–72\d\)", line["operations per second"])
    assert line["of the roofline"] == "90 %\nof tensor bf16"
    assert re.fullmatch(r"1\.03 \(1\.0[23]–1\.0[34]\)\nof cublaslt", line["of the best library"])
    assert line["ratio"].startswith("1.20 (1.1")


@pytest.mark.parametrize("some, cell", [
    (repeated(peers={"cublas": 1.001}), "no clear difference"), (repeated(peers={"cublas": 0.8}), "of cublas"),
    ([kernels(peers={"cublas": 0.8})], "no clear difference"),  # a single repetition has no interval
    (repeated(against="alone"), "no peer: it was timed alone"), (repeated(), "no peer: none solves this problem"),
    ([*repeated(), *repeated("cublas")], "no peer: none was timed in turn"),
    (repeated(details={"failed_peers": {"cublas": "2 elements are wrong"}}), "no peer: cublas failed"),
])  # fmt: skip
def test_share_of_the_best_library_says_what_is_known(measured, some, cell):
    (line,) = lines(fastest.blocks(measured(some)))
    assert line["of the best library"].split("\n")[-1] == cell


def test_rungs_are_compared_only_within_a_problem(measured):
    shapes = [{}, {"m": 8192}, {"dtype": "fp8"}, {"layout": "nn"}, {"batch": 4}, {"dtype": "fp32"}]
    found = lines(fastest.blocks(measured(*[repeated(rate=40 * TERA, **shape) for shape in shapes])))
    assert [line["problem"].split("\n")[0] for line in found] == [
        "matmul fp32, 4096 × 4096 × 4096, layout nt", "matmul bf16, 4096 × 4096 × 4096, layout nn",
        "matmul bf16, 4096 × 4096 × 4096, layout nt", "matmul bf16, 4096 × 4096 × 4096, layout nt, batch 4",
        "matmul bf16, 8192 × 4096 × 4096, layout nt", "matmul fp8, 4096 × 4096 × 4096, layout nt",
    ]  # fmt: skip
    assert {line["runner-up"] for line in found} == {"no other was measured"}


def linear(repetition: int, **changes) -> dict:
    """A row of the ladder `linear`, which has other axes."""
    row = kernels("naive", repetition, rate=TERA, dtype="fp32", inputs="normal")
    point = {axis: value for axis, value in row["params"].items() if axis not in ("m", "n", "k", "batch", "layout")}
    return row | {"params": point | {"ladder": "linear", "rows": 1024, "pass": "all"} | changes, "id": rows.row_id(changes, repetition)}


def test_problem_names_only_axes_of_its_ladder(measured):
    some = [linear(n, **{"pass": which}) for n in range(3) for which in ("all", "forward")]
    found = lines(fastest.blocks(measured(*some, *ladder())))
    assert {line["problem"].split("\n")[0] for line in found} == {
        "linear fp32, rows 1024", "linear fp32, rows 1024, pass forward", "matmul bf16, 4096 × 4096 × 4096, layout nt",
    }  # fmt: skip


def test_rungs_of_the_cpu_do_not_compete_with_those_of_a_gpu(measured):
    both = lines(fastest.blocks(measured(repeated(), repeated("cpu_packed", rate=50e9))))
    assert [line["fastest rung"] for line in both] == ["tma_store"]
    (alone,) = lines(fastest.blocks(measured(repeated("cpu_packed", rate=50e9), name="cpu")))
    assert alone["fastest rung"] == "cpu_packed" and alone["of the roofline"] == "33 %\nof CPU core FMA f32"


def test_rows_that_do_not_count_give_no_answer(measured):
    assert fastest.blocks(measured(kernels() | {"status": "failed", "cause": "wrong_results", "reason": "1 of 2048"})) == []


# --- ladders


def test_ladder_shows_gains_costs_and_clocks_by_step(measured):
    found = lines(table.blocks(measured(*ladder())))
    assert [line["rung"] for line in found] == [
        "8. warp_tensor", "11. persistent", "13. tma_store", "cublas\nlibrary", "cublaslt\nlibrary",
    ]  # fmt: skip
    first, _, last, library, _ = found
    assert first["what it changes"] == "tensor cores by mma.sync" and first["gain"] == "—"
    assert last["gain"].startswith("1.20 (") and last["gain"].endswith("\nover persistent")
    assert last["resources"] == "168 registers\n224 KiB shared\n0 B spilled\n1 block per SM"
    assert last["moved"] == "633 GB/s\n1.20 × by DRAM\n4.00 × by L2"
    assert last["clock"] == "1500 MHz\n75 % of its peak\npower cap"
    assert (library["gain"], library["of the best library"], library["resources"]) == ("—", "—", "—")


def test_energy_is_that_of_the_rung_alone_if_it_was_measured(measured):
    found = {line["rung"]: line["per operation"] for line in lines(table.blocks(measured(*ladder())))}
    assert found["13. tma_store"].startswith("900 fJ (") and "\n" not in found["13. tma_store"]  # 648 W / 720 T/s
    assert found["11. persistent"] == "—"


def test_gain_over_the_rung_before_does_not_name_it(measured):
    fp32 = {"dtype": "fp32", "layout": "nn"}
    found = lines(table.blocks(measured(repeated("naive", rate=TERA, **fp32), repeated("coalesced", rate=4 * TERA, **fp32))))
    assert re.fullmatch(r"4\.00 \(3\.9\d–4\.0\d\)", found[1]["gain"])


def test_ladder_has_the_condition_with_the_most_rungs(measured):
    hot = {"cache": "hot"}
    some = [repeated("persistent", **hot), repeated("tma_store", **hot), repeated("tma_store", rate=500 * TERA)]
    blocks = table.blocks(measured(*some))
    assert any(isinstance(block, Text) and "cache hot, pace sustained" in block.text for block in blocks)
    assert [line["rung"] for line in lines(blocks)] == ["11. persistent", "13. tma_store"]


def test_positive_inputs_compete_only_if_there_are_no_others(measured):
    only = ladders.ladders(measured(*errors()))
    assert len(only) == 3 and {one.condition for one in only} == {"cache cold, pace sustained, inputs positive"}
    (one,) = ladders.ladders(measured(*errors(), *ladder(), name="both"))
    assert one.problem == "matmul bf16, 4096 × 4096 × 4096, layout nt"


def test_absent_libraries_are_named_with_their_reason(measured):
    gone = kernels_rows.catalogue(cublas=MISSING, cublaslt=MISSING)
    blocks = table.blocks(measured(repeated(), known=gone))
    assert bullets(blocks) == [f"The library {name} is absent: {MISSING}." for name in ("cublas", "cublaslt")]
    (line,) = lines(blocks)
    assert line["of the best library"] == "no peer: cublas, cublaslt are unavailable"


def test_absent_library_of_the_cpu_is_not_one_of_the_gpu(measured):
    blocks = table.blocks(measured(repeated("cpu_packed", rate=50e9)))
    assert bullets(blocks) == ["The library openblas_one_core is absent: OpenBLAS is missing: install libopenblas0-pthread."]
    assert lines(blocks)[0]["of the best library"] == "no peer: openblas_one_core is unavailable"


def test_library_that_failed_is_named(measured):
    failed = {"failed_peers": {"cublaslt": "2 of 2048 elements are wrong"}}
    said = bullets(table.blocks(measured(repeated(peers={"cublas": 1.1}, details=failed))))
    problem = "matmul bf16, 4096 × 4096 × 4096, layout nt"
    assert said == [f"{problem}: cublaslt failed and was not timed: 2 of 2048 elements are wrong."]
    assert bullets(table.blocks(measured(repeated(), name="none"))) == [f"{problem}: cublas, cublaslt were not timed."]
    assert bullets(table.blocks(measured(repeated(peers=PEERS), name="both"))) == []


def test_rung_that_the_catalogue_lacks_is_shown(measured):
    known = kernels_rows.CATALOGUE | {"rungs": []}
    (line,) = lines(table.blocks(measured(repeated(), known=known)))
    assert (line["rung"], line["what it changes"]) == ("13. tma_store", "—")


def test_rows_without_counters_have_no_moved_bytes(measured):
    row = kernels(against="alone")
    del row["figures"]["dram_bytes_per_second"], row["details"]["counters"]
    assert lines(table.blocks(measured([row])))[0]["moved"] == "—"


def test_every_library_is_shown_beside_the_fastest_rung(measured):
    skinny = {"m": 16}
    blocks = libraries.blocks(measured(*ladder(), repeated(peers={"pytorch": 1.5}, **skinny)))
    small, large = lines(blocks)
    assert (small["fastest rung"], small["cublas"], small["pytorch"]) == ("tma_store", "—", "1.50 (1.50–1.50)")
    assert (large["cublas"], large["cublaslt"], large["pytorch"]) == ("1.08 (1.08–1.08)", "1.03 (1.03–1.03)", "—")
    assert libraries.blocks(measured(repeated(against="alone"), name="alone")) == []


# --- conditions, errors


def test_conditions_are_compared_with_the_usual_one(measured):
    found = lines(conditions.blocks(measured(*ladder())))
    assert [line["condition"] for line in found] == [
        "cache cold, pace sustained, inputs normal", "cache hot", "pace burst", "inputs zeros",
    ]  # fmt: skip
    assert {line["rung"] for line in found} == {"tma_store"}  # the only one under several conditions
    assert found[0]["ratio"] == "—" and found[2]["ratio"].startswith("1.10 (")
    assert found[2]["clock"] == "1980 MHz\n75 % of its peak" and found[3]["per operation"].startswith("500 fJ (")


def test_conditions_that_differ_in_two_axes_or_in_turns_are_not_compared(measured):
    alone = {"against": "alone"}
    assert conditions.blocks(measured(repeated(), repeated(cache="hot", **alone))) == []
    assert conditions.blocks(measured(repeated(), repeated(cache="hot", pace="burst"), name="two")) == []
    assert conditions.blocks(measured(repeated(cache="hot"), repeated(pace="burst"), name="none")) == []


def test_error_is_shown_by_depth(measured):
    blocks = error_tables.blocks(measured(*errors(), *ladder()))
    assert blocks[0].text == "Error, matmul fp8, m 1024, n 1024, layout nt, inputs positive"
    found = lines(blocks)
    assert [line["k"] for line in found] == ["512", "8192", "65536"]
    assert [line["warp_tensor"].split("\n")[0] for line in found] == ["0.001", "0.004", "0.016"]
    assert {line["tma_store"] for line in found} == {"0.001\n10 % of the allowed"}
    assert error_tables.blocks(measured(*ladder(), name="one")) == []


# --- the report, the blocks, numbers


def test_report_has_its_sections_in_order(folder):
    page = report(folder(*ladder(), *errors(), catalogue=kernels_rows.CATALOGUE))
    order = ["The answer", "What was measured", "Libraries", "Ladder matmul bf16", "Conditions compared", "Error, matmul fp8", "Every point"]
    places = [page.find(f"## {title}") for title in order]
    assert places == sorted(places) and -1 not in places
    assert "900 fJ" in page[page.index("## Every point") :]


BLOCKS = {
    "fastest_rung": "of the best library", "libraries": "1.08 (", "ladders": "168 registers", "conditions": "pace burst",
    "error_by_depth": "of the allowed",
}  # fmt: skip


def test_blocks_of_a_page_are_written_from_rows(folder, tmp_path, capsys):
    good = folder(*ladder(), *errors(), catalogue=kernels_rows.CATALOGUE, name="good")
    bad = folder(kernels() | {"status": "failed"}, catalogue=kernels_rows.CATALOGUE, name="bad")
    (page := tmp_path / "page.md").write_text("".join(f"<!-- {name}:begin -->\n<!-- {name}:end -->\n" for name in BLOCKS))
    for name, expected in BLOCKS.items():
        assert main(["readme", str(good), str(page), "--block", name]) == 0
        written = page.read_text().partition(f"<!-- {name}:begin -->")[2].partition(f"<!-- {name}:end -->")[0]
        assert expected in written and "NVIDIA H200" in written and "\n## " not in written
        assert main(["readme", str(bad), str(page), "--block", name]) == 2
        assert "allowed: rows of `kernels`" in capsys.readouterr().err


def test_comparison_judges_the_rate_and_the_time():
    judged = [metric.name for metric in catalogue.merged([kernels_rows.CATALOGUE]).experiment("kernels").compared]
    assert judged == ["throughput", "p50", "p99"]


@pytest.mark.parametrize("joules, text", [
    (1.05e-12, "1.05 pJ"), (9e-13, "900 fJ"), (1.3e-9, "1.30 nJ"), (2.5e-3, "2.50 mJ"), (12.0, "12.0 J"), (4e3, "4.00 kJ"),
])  # fmt: skip
def test_small_energies_have_a_prefix(joules, text):
    assert units.of_unit("J", {"J": "si"})(joules) == text


def test_bound_of_memory_names_the_limit():
    copies, density = {"ceiling": "dram_copy_bytes_per_second"}, {"given": "operations_per_byte", "value": 12.5}
    assert bounds.words({"product": [2, copies, density]}) == "DRAM copy"
    assert bounds.words({"product": [2, {"floor": "redis_round_trip_ns"}]}) == "two Redis round trips"


# --- the specs


@pytest.mark.parametrize("name, device", [("kernels", "cuda"), ("kernels_cpu", "cpu")])
def test_rungs_of_a_spec_are_registered_for_its_device(name, device):
    spec = json.loads((ROOT / f"experiments/specs/{name}.json").read_text())
    named = set()
    for part in spec["parts"]:
        rungs = part["axes"]["rung"]
        named |= {rungs} if isinstance(rungs, str) else set(rungs)
        assert part["axes"].get("device", "cuda") == device
    folders = ("cpu", "peers") if device == "cpu" else ("cuda", "hopper")
    sources = [path for folder in folders for path in (ROOT / "kernels").glob(f"*/{folder}/*.c*")]
    known = {word for path in sources for word in re.findall(r'"(\w+)"', path.read_text())}
    assert named and named <= known


# --- what the sources say was measured

MEASURED = re.compile(
    r"(?P<machine>\w+), (?P<problem>.+): (?P<rate>[\d.]+ [GT]/s)(, (?P<gain>[\d.]+) times (?P<before>\w+))?"
    r", (?P<share>[\d.]+) of the best library"
)
PAGES = {"H200": "experiments/kernels/results.md", "Xeon": "experiments/kernels/results_cpu.md"}


def published(page: str, problem: str) -> dict[str, list[str]]:
    """The cells of a published ladder by rung."""
    table = page.partition(f"**Ladder {problem}**")[2].partition("\n**Ladder ")[0]
    lines = [line.strip("|").split(" | ") for line in table.splitlines() if re.match(r"\| \d+\. ", line)]
    return {cells[0].split(". ")[1].strip(): cells for cells in lines}


def said() -> dict[str, str]:
    """What each rung's file says was measured; the text may consist of several literals."""
    texts = {}
    for path in sorted((ROOT / "kernels").glob("*/*/*.c*")):
        found = re.search(r"\.measured =((?:\s*\"[^\"]*\")+)", path.read_text())
        if found:
            texts[str(path.relative_to(ROOT / "kernels"))] = "".join(re.findall(r'"([^"]*)"', found[1]))
    return texts


@pytest.mark.parametrize("file, text", said().items())
def test_measured_figures_in_the_sources_are_the_published_ones(file, text):
    known = MEASURED.fullmatch(text)
    assert known, text
    name = file.rpartition("/")[2].partition(".")[0]
    rung = f"cpu_{name}" if "/cpu/" in file else name
    cells = published((ROOT / PAGES[known["machine"]]).read_text(), known["problem"])[rung]
    gain = f"{known['gain']} (" if known["gain"] else "—"
    assert cells[2].startswith(f"{known['rate']} (") and cells[3].startswith(gain)
    assert cells[5].startswith(f"{known['share']} (")


def test_every_rung_with_a_file_of_its_own_says_what_was_measured():
    sources = [path for path in (ROOT / "kernels").glob("*/*/*.c*") if ".step = " in path.read_text()]
    rungs = {str(path.relative_to(ROOT / "kernels")) for path in sources}
    assert len(rungs) == 25 and rungs == set(said())


def test_share_and_energy_are_stored_in_rows_as_the_catalogue_says():
    known = catalogue.merged([kernels_rows.CATALOGUE]).experiment("kernels")
    row, alone = kernels(peers=PEERS), kernels(against="alone")
    assert row["figures"].keys() | alone["figures"].keys() == known.figures.keys() and row["params"].keys() <= known.axes.keys()
    assert rows.CATALOGUE["schema"] == row["schema"]
