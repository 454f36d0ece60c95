"""Each queue at its best over several machines, from one run of the same sweep on each.

A machine is one observation: machines differ by more than the repetitions on one of them, so only their spread says how
well a few of them speak for all. The figure is the geometric mean of the machines' medians, and the interval is Student's t
on their logarithms.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from .. import figure_text, flags, stats, student, units
from ..document import Table, markdown_table
from ..errors import BadInput
from ..figures import pngs, standalone
from ..files import write_all
from ..interval import CONFIDENCE
from ..load import Results, load, require_alike, require_once
from ..plots.style import figure_style
from . import choose
from .columns import Column, number, table
from .headline import BYTES, RATE, fastest, named
from .plots import headline as plot
from .plots.styles import Styles

P50, P99 = "p50", "p99"
CAPTION = "Markers are geometric means over the machines, and thin whiskers are their 95 % intervals; higher is better."


def machines_text(folders: Sequence[str]) -> str:
    """The table over the folders' runs as Markdown, with what it rests on."""
    runs = _load(folders)
    measured = [delivering(run) for run in runs]
    lines = combined(measured)
    cells = pd.concat([run.cells for run in runs], ignore_index=True)
    chosen = stats.chosen_sentence(pd.concat([named(some) for some in measured]), shown=False)
    note = " ".join(filter(None, [
        f"Geometric means over {_count(len(runs))}. On each machine, every queue has its own best settings and transfer. The "
        "95 % interval in brackets is that of the mean over machines of this kind (Student's t on the machines' logarithms). "
        "n: machines that measured the queue. Lone: the latency of one message of the smallest size with no other in flight.",
        chosen,
        flags.legend(cells),
        flags.limited_sentence(cells),
        stats.left_out(cells),
    ]))  # fmt: skip
    return f"{markdown_table(_table(lines))}\n\n{note}\n\n{_where(runs)}"


def combined(measured: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """One line per queue, fastest first. `measured`: the points of each machine, from `delivering`."""
    best = [fastest(some) for some in measured]
    lines = []
    for queue in dict.fromkeys(queue for some in best for queue in some):
        found = [some[queue] for some in best if queue in some]
        lone = [one.lone for one in found if one.lone is not None]
        messages = [one.messages for one in found]
        chosen = {RATE: messages, BYTES: [one.data for one in found], P50: lone, P99: lone}
        line = {"queue": queue, "n": len(found), "rank": messages[0]["rank"], "delivery": messages[0]["delivery"]}
        line |= {name: [point[name] for point in messages] for name in ("host_threads", "service_cores")}
        for metric, points in chosen.items():
            line |= _over(points, metric) | {f"{metric}_flags": {flag for point in points for flag in point["flags"]}}
            line[f"{metric}_limited"] = any(point.get("limited", False) for point in points)
            transfers = [point["transfer"] for point in points if point["transfer"] != "none"]
            line[f"{metric}_by"] = " or ".join(dict.fromkeys(transfers))
        lines.append(line)
    return pd.DataFrame(lines).sort_values(RATE, ascending=False)


def machines_figures(folders: Sequence[str], out: str) -> list[Path]:
    """Draws the peak message rates and the lone latencies of the same table; returns the paths."""
    lines = combined([delivering(run) for run in _load(folders)]).assign(transfer="")
    for metric in (RATE, P50, P99):  # one machine has no interval
        lines = lines.fillna({f"{metric}_{end}": lines[metric] for end in ("low", "high")})
    peak, alone = (
        lines.assign(
            variant=lines["queue"], flags=lines[f"{metric}_flags"], limited=lines[f"{metric}_limited"]
        ).dropna(subset=[metric])
        for metric in (RATE, P50)
    )
    with figure_style():
        drawing = plot.compare(peak, alone, Styles(peak), CAPTION)
    contents = pngs([drawing], Path(out)) | {Path(out) / f"{drawing.name}.svg": standalone(drawing)}
    return write_all(contents)


def _over(points: Sequence[pd.Series], metric: str) -> dict[str, float]:
    logs = np.log([point[metric] for point in points])
    value, reach = (np.exp(logs.mean()) if len(logs) else np.nan), np.nan
    if len(logs) > 1:
        reach = student.ppf((1 + CONFIDENCE) / 2, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    return {metric: value, f"{metric}_low": value * np.exp(-reach), f"{metric}_high": value * np.exp(reach)}


def _table(lines: pd.DataFrame) -> Table:
    def figure(line, metric: str, formatter, larger: bool = True) -> str:
        if np.isnan(line[metric]):
            return units.NOTHING
        point = {"flags": line[f"{metric}_flags"], "limited": line[f"{metric}_limited"]}
        value = units.spread(formatter, line[metric], line[f"{metric}_low"], line[f"{metric}_high"])
        return f"{figure_text.bound(point, larger)}{value}{flags.mark(point)}\n{line[f'{metric}_by']}".strip()

    columns = [
        Column("queue", lambda line: line["queue"]),
        number("n", lambda line: units.number(line["n"])),
        number("peak messages", lambda line: figure(line, RATE, units.messages_per_second)),
        number("peak bytes, one way", lambda line: figure(line, BYTES, units.bytes_per_second)),
        number("lone p50", lambda line: figure(line, P50, units.nanoseconds, False)),
        number("host threads", _threads),
        Column("delivery", lambda line: line["delivery"]),
    ]
    return table(columns, [line for _, line in lines.iterrows()])


def _threads(line) -> str:
    least, most = min(line["host_threads"]), max(line["host_threads"])
    threads = units.number(least) if least == most else f"{units.number(least)} to {units.number(most)}"
    server = float(np.mean(line["service_cores"]))
    return threads + (f" + {units.ratio(server)} server cores" if server > 0 else "")


def delivering(results: Results) -> pd.DataFrame:
    """The points of the members that deliver, by queue."""
    measured = choose.main_work(stats.points(results.closed))
    delivering = measured[measured["variant"].isin(results.contest)]
    return delivering.assign(variant=delivering["queue"])  # the best transfer of each queue


def _load(folders: Sequence[str]) -> list[Results]:
    """The runs, one per machine. Raises BadInput if they do not belong together."""
    require_once("DIR", folders)
    runs = [load([folder]) for folder in folders]
    for folder, run in zip(folders, runs):
        if (run.cells["ab_point"] >= 0).any():
            raise BadInput("DIR", folder, "is a side of `feedrate ab`", "a run of `feedrate sweep`")
        if stats.counted(delivering(run)).empty:
            raise BadInput("DIR", folder, "has no row that counts", "rows of feeding")
    require_alike(runs)
    gpus = [run.environments[0].get("gpu_uuid") for run in runs]
    for place, gpu in enumerate(gpus):
        if gpu and gpu in gpus[:place]:
            problem = f"is from the same GPU as {folders[gpus.index(gpu)]} ({gpu})"
            raise BadInput("DIR", folders[place], problem, "one run from each machine")
    return runs


def _where(runs: Sequence[Results]) -> str:
    first = runs[0].environments[0]
    days = sorted({str(time["started"])[:10] for run in runs for time in run.cells["time"] if isinstance(time, dict)})
    machines = f"{first.get('gpu') or first.get('cpu')} × {len(runs)}"
    return " · ".join([machines, *days, f"revision {first.get('revision', 'unknown')}"])


def _count(machines: int) -> str:
    return f"{machines} machine{'s' * (machines != 1)}"
