"""The report: what was measured, told from the answer to the details."""

from pathlib import Path
from types import ModuleType

import pandas as pd

from . import advice, answer, capacity, conduct, costs, open_load, stability, stats, tables, tails, units
from .document import Block, Bullets, Heading, Picture, Table, Text, evidence, to_html, to_markdown
from .figures import inline_svg, pngs
from .files import write_all
from .load import COUNTS, STATUSES, Results, load, machine_letters
from .plots import Drawing, capacities, draw_all, offered

CPU_WARNING = "CPU device: these are not GPU results."


def write_report(directories: list[str], out: str | None, title: str | None) -> Path:
    """Writes report.html, report.md and the PNGs; returns the path of report.html."""
    results = load(directories)
    target = Path(out) if out else results.directories[0]
    drawings, slim = draw_all(results), draw_all(results, narrow=True)
    title = title or "Feedrate: " + ", ".join(path.resolve().name for path in results.directories)
    blocks = _blocks(results, drawings, slim)
    blocks += evidence(blocks)
    page = target / "report.html"
    pages = {target / "report.md": to_markdown(title, blocks), page: to_html(title, blocks)}
    write_all(pngs(drawings, target) | pages)
    return page


def _blocks(results: Results, drawings: list[Drawing], slim: list[Drawing]) -> list[Block]:
    closed = results.closed
    measured = stats.points(closed)
    environment, differing = tables.environment(results)
    pictures = {both[0].name: _picture(*both) for both in zip(drawings, slim)}
    for figure, block in _beside(results):
        pictures.setdefault(figure.NAME, [Heading(figure.TITLE)]).append(block)
    glance = pictures.pop("headline", [])
    return [
        Text(where_line(results), "note"),
        *_warnings(results, differing),
        *answer.blocks(results),
        Heading("What was measured"),
        Bullets(summary(results)),
        *conduct.blocks(results),
        *advice.blocks(results),
        *glance,
        *(_headlines(closed, measured) if len(closed.cells) else []),
        *costs.blocks(results, measured),
        *(block for picture in pictures.values() for block in picture),
        Heading("Floors"),
        *_floors(results),
        Heading("Cells that are not ok"),
        *_not_ok(results),
        Heading("What was run, and where"),
        Text(_run_line(results)),
        tables.axes(results),
        environment,
    ]


def _beside(results: Results) -> list[tuple[ModuleType, Block]]:
    """The tables that belong to figures, and what is said of them."""
    loads, searched = open_load.curves(open_load.points(results)), capacity.answers(results)
    found = [(offered, open_load.saturation(loads))] if len(loads) else []
    if limits := tails.table(results, loads):
        found += [(offered, Text(tails.NOTE, "note")), (offered, limits)]
    return [*found, *([(capacities, capacity.table(searched))] if len(searched) else [])]


def where_line(results: Results) -> str:
    """One line: machine, versions, command."""
    first = results.environments[0]
    letters = machine_letters(results.cells)
    machine = "; ".join(f"@{letter}: {name}" if len(letters) > 1 else name for name, letter in letters.items())
    program, *arguments = first.get("command", "").split(" ")  # the folder it lay in tells nothing
    redis = next((one["redis"].get("version") for one in results.environments if one.get("redis")), None)
    parts = [
        machine,
        f"driver {first['driver_version']}" if first.get("driver_version") else "",
        f"CUDA {first['cuda_runtime']}" if first.get("gpu") and first.get("cuda_runtime") else "",
        f"Redis {redis}" if redis else "",
        f"revision {first.get('revision', 'unknown')}",
        f"“{' '.join([Path(program).name, *arguments])}”",
    ]
    return " · ".join(part for part in parts if part)


def device_warning(results: Results) -> str:
    """What must stand before any number where not every row ran on a GPU; empty where all did."""
    if results.devices == ["cpu"]:
        return CPU_WARNING
    return "Rows marked [cpu] ran on the CPU device: they are not GPU results." if "cpu" in results.devices else ""


def told(results: Results, parts: list[str]) -> str:
    """A text's parts, between what must stand before any number and where the numbers come from."""
    warning = device_warning(results)
    return "\n\n".join([*([f"**{warning}**"] if warning else []), *parts, where_line(results)])


def _warnings(results: Results, differing: list[str]) -> list[Text]:
    found = [device_warning(results)] if device_warning(results) else []
    totals = {name: int(results.cells[name].sum()) for name in COUNTS}
    wrong = [f"{units.number(totals[name])} {name}" for name in ("lost", "duplicated", "corrupted") if totals[name]]
    if wrong:
        found.append(
            f"Wrong answers: {', '.join(wrong)} messages. Their cells have no throughput and are listed below."
        )
    if differing:
        found.append("The rows do not share one environment; these facts differ: " + ", ".join(differing) + ".")
    return [Text(text, "warning") for text in [*found, *results.notes]]


def summary(results: Results) -> list[str]:
    """What was measured, and how much of it counts."""
    totals = {name: int(results.cells[name].sum()) for name in COUNTS}
    statuses = results.cells["status"].value_counts()
    said = [
        f"Verified {units.number(totals['received'])} of {units.number(totals['sent'])} messages sent: "
        + ", ".join(f"{units.number(totals[name])} {name}" for name in COUNTS[2:])
        + ".",
        f"{len(results.cells)} rows: " + ", ".join(f"{statuses.get(name, 0)} {name}" for name in STATUSES) + ".",
    ]
    return said + stability.summary(stats.points(results))


def _headlines(results: Results, measured: pd.DataFrame) -> list[Block]:
    works = list(results.cells["work"].unique())
    main = stats.main_work(measured) if len(measured) else works[0]
    blocks: list[Block] = []
    for work in sorted(works, key=lambda work: (work != main, work)):
        blocks += [Heading(f"Headline: {work}"), tables.headline(results, measured, work)]
    return [*blocks, Text(headline_note(results, measured), "note")]


def headline_note(results: Results, measured: pd.DataFrame) -> str:
    """How to read the headline table."""
    note = (
        "Medians over repetitions, in brackets least to greatest. Lone: one message in flight, one producer, smallest "
        "payload. “Of floor”: measured over what the named part of the hardware or Redis alone allows. “× floor”: lone "
        "p50 over the least possible. Bytes are payload bytes one way. Threads, SMs and delivery are those of the "
        "peak of messages."
    )
    if measured.empty or stats.lone(measured).empty:
        note += " The sweep has no lone-message cell: add window 1 with producers 1."
    return note


def _picture(drawing: Drawing, slim: Drawing) -> list[Block]:
    if drawing.figure is None:
        return [Heading(drawing.title), Text(drawing.missing, "missing")]
    shapes = inline_svg(drawing), inline_svg(slim, "slim")
    return [Heading(drawing.title), Picture(drawing.name, drawing.caption, *shapes)]


def _floors(results: Results) -> list[Block]:
    if results.floors.empty:
        return [Text("No floor rows: the sweep did not measure the machine's floors.", "missing")]
    return [
        Text("What physics and Redis allow on this machine, measured in the same run.", "note"),
        tables.floors(results),
    ]


def _not_ok(results: Results) -> list[Block]:
    table: Table = tables.not_ok(results)
    if not table.rows:
        return [Text("None: every cell is ok.")]
    where = "These are in no figure and no headline above"
    where += (
        ", but for the rates that a queue or the generator did not keep up with."
        if results.cells["open"].any()
        else "."
    )
    return [Text(where, "note"), table]


def _run_line(results: Results) -> str:
    runs = [", ".join(_setting(*one) for one in run.items()) for run in results.runs]
    directories = ", ".join(map(str, results.directories))
    sampling = int(results.cells["sampled_every"].max())
    sampled = f"of one message in {sampling} at the fastest cells" if sampling > 1 else "of every message"
    return f"Directories: {directories}. Run settings: {'; or '.join(runs) or 'unknown'}. Latency was taken {sampled}."


def _setting(name: str, value) -> str:
    """A run's setting in words."""
    said = ("no", "yes")[value] if isinstance(value, bool) else value
    return f"{name.replace('_', ' ')} {said}"
