"""The report on measured results, from the answer to the details. Parts specific to an experiment come from its
section."""

from pathlib import Path

from . import answer, flags, measurement_quality, points_table, sections, stability, stats, tables
from .document import Block, Bullets, Chapter, Heading, Picture, Table, Text, evidence, to_html, to_markdown
from .figures import Rendered, files, render
from .files import write_all
from .load import STATUSES, Results, load_all, machine_letters

CPU_WARNING = "CPU device: these are not GPU results."


def write_report(directories: list[str], out: str | None, title: str | None) -> Path:
    """Writes report.html, report.md and the PNGs; returns the path of report.html."""
    found = load_all(directories)
    first = next(iter(found.values()))
    target = Path(out) if out else first.directories[0]
    title = title or "Feedrate: " + ", ".join(path.resolve().name for path in first.directories)
    blocks: list[Block] = []
    images: dict[Path, bytes] = {}
    for results in found.values():
        draw = sections.of(results.experiment.name).draw
        drawings, slim = render(draw(results), "", png=True), render(draw(results, True), "slim")
        if len(found) > 1:
            blocks.append(Chapter(f"Experiment {results.experiment.name}", results.experiment.description))
        blocks += _blocks(results, drawings, slim)
        images |= files(drawings, target)
    blocks += evidence(blocks)
    page = target / "report.html"
    pages = {target / "report.md": to_markdown(title, blocks), page: to_html(title, blocks)}
    write_all(images | pages)
    return page


def _blocks(results: Results, drawings: list[Rendered], slim: list[Rendered]) -> list[Block]:
    section = sections.of(results.experiment.name)
    environment, differing = tables.environment(results)
    shapes = list(zip(drawings, slim))
    # The headline figure precedes all tables; without data for it, the body states what is missing.
    first = [both for both in shapes if both[0].name == section.headline and not both[0].missing]
    rest = [both for both in shapes if both not in first]
    return [
        Text(where_line(results), "note"),
        *_warnings(results, differing),
        *pictures(*_unzipped(first)),
        *answer.of(results),
        Heading("What was measured"),
        Bullets(summary(results)),
        *measurement_quality.blocks(results),
        *section.body(results, *_unzipped(rest)),
        *points_table.blocks(results),
        Heading("Limits"),
        *_limits(results),
        Heading("Cells that are not ok"),
        *_not_ok(results),
        Heading("What was run, and where"),
        Text(_run_line(results)),
        tables.axes(results),
        environment,
    ]


def where_line(results: Results) -> str:
    """One line with machine, versions and command."""
    first = results.environments[0]
    letters = machine_letters(results.cells)
    machine = "; ".join(f"@{letter}: {name}" if len(letters) > 1 else name for name, letter in letters.items())
    program, *arguments = first.get("command", "").split(" ")  # the program's folder is not informative
    servers = [one["services"]["redis"] for one in results.environments if "redis" in one.get("services", ())]
    redis = servers[0].get("version") if servers else None
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
    """A warning to show before any number if some rows did not run on a GPU; empty otherwise."""
    if results.devices == ["cpu"]:
        return CPU_WARNING
    return "Rows marked [cpu] ran on the CPU device: they are not GPU results." if "cpu" in results.devices else ""


def with_origin(results: Results, parts: list[str]) -> str:
    """Joins the parts of a page, with the device warning before them and the origin of the numbers after them."""
    warning = device_warning(results)
    return "\n\n".join([*([f"**{warning}**"] if warning else []), *parts, where_line(results)])


def _warnings(results: Results, differing: list[str]) -> list[Text]:
    found = [device_warning(results)] if device_warning(results) else []
    found += sections.of(results.experiment.name).warnings(results)
    if differing:
        found.append("The rows have different environments; these facts differ: " + ", ".join(differing) + ".")
    return [Text(text, "warning") for text in [*found, *results.notes]]


def summary(results: Results) -> list[str]:
    """Sentences on what was measured and how many rows count."""
    statuses = results.cells["status"].value_counts()
    counted = ", ".join(f"{statuses.get(name, 0)} {name}" for name in STATUSES)
    return [
        *sections.of(results.experiment.name).summary(results),
        f"{len(results.cells)} rows: {counted}.",
        *stability.summary(results.experiment, stats.points(results)),
    ]


def _unzipped(shapes: list[tuple[Rendered, Rendered]]) -> tuple[list[Rendered], list[Rendered]]:
    return [broad for broad, _ in shapes], [slim for _, slim in shapes]


def pictures(drawings: list[Rendered], slim: list[Rendered]) -> list[Block]:
    return [block for both in zip(drawings, slim) for block in picture(*both)]


def picture(drawing: Rendered, slim: Rendered) -> list[Block]:
    if drawing.missing:
        return [Heading(drawing.title), Text(drawing.missing, "missing")]
    return [Heading(drawing.title), Picture(drawing.name, drawing.caption, drawing.svg, slim.svg)]


def _limits(results: Results) -> list[Block]:
    if results.limits.empty:
        return [Text("There are no limit rows: the sweep did not measure the machine's limits.", "missing")]
    return [
        Text("Limits of the hardware and of Redis on this machine, measured in the same run.", "note"),
        tables.limits(results),
    ]


def _not_ok(results: Results) -> list[Block]:
    table: Table = tables.not_ok(results)
    if not table.rows:
        return [Text("None: every cell is ok.")]
    but = ["rates that a queue or the generator did not sustain"] if results.cells["open"].any() else []
    if flags.limited(results.cells).any():
        but.append("cells limited by the load generator, which count as lower bounds")
    if flags.having(results.cells, flags.DISTURBED).any():
        but.append("cells marked ¶")
    where = "No figure or headline above uses these cells" + (f", except {', and '.join(but)}." if but else ".")
    return [Text(where, "note"), table]


def _run_line(results: Results) -> str:
    runs = [", ".join(_setting(*one) for one in run.items()) for run in results.runs]
    directories = ", ".join(map(str, results.directories))
    sampling = int(results.cells["sampled_every"].max())
    sampled = f"one message in {sampling} in the fastest cells" if sampling > 1 else "every message"
    settings = "; or ".join(runs) or "unknown"
    return f"Directories: {directories}. Run settings: {settings}. Latency was measured for {sampled}."


def _setting(name: str, value) -> str:
    """A run setting in words."""
    value = ("no", "yes")[value] if isinstance(value, bool) else value
    return f"{name.replace('_', ' ')} {value}"
