"""The section of the `storage` experiment: the fastest engine by task and block size, the drive's limit, the cost in
CPU, latency under load, the path of the bytes, and what GPUDirect would change."""

from functools import partial

from ..answer import TITLE
from ..document import Block, Heading
from ..load import Results
from ..plots.draw_all import draw_all
from ..report import picture
from ..storage import against_fio, best, checks, cpu, gpudirect, paths, plots, under_load
from . import Section

FIO, COST, LOAD = "Bandwidth and IOPS against fio", "CPU cost", "Latency under load"
PATH, GPUDIRECT = "Path of the bytes", "What GPUDirect would change"
DIRECT = {"yes": "O_DIRECT", "no": "page cache"}
LIFETIME = {"run": "files opened once", "pass": "files opened in each pass"}


def _columns(row: dict) -> dict:
    return {"path": (row.get("details") or {}).get("path") or {}}


def _titled(title: str, blocks: list[Block]) -> list[Block]:
    return [Heading(title), *blocks] if blocks else []


def _body(results: Results, drawings, slim) -> list[Block]:
    pictures = {both[0].name: picture(*both) for both in zip(drawings, slim)}
    return [
        *_titled(FIO, against_fio.blocks(results)),
        *_titled(COST, cpu.blocks(results)),
        *pictures.pop(plots.cpu_cost.NAME, []),
        *_titled(LOAD, under_load.blocks(results)),
        *(block for one in pictures.values() for block in one),
        *_titled(PATH, paths.blocks(results)),
        *_titled(GPUDIRECT, gpudirect.blocks(results)),
    ]


SECTION = Section(
    columns=_columns,
    explains_limits=True,
    contradictions=checks.contradictions,
    compared={"blocks_per_second": ()},  # bytes are blocks times their size, so judging bytes suffices
    value_labels={
        "access": str,
        "operation": str,
        "direct": lambda value: DIRECT.get(value, str(value)),
        "residency": str,
        "lifetime": lambda value: LIFETIME.get(value, str(value)),
        "arrivals": str,
        "rate": "{:g} due per second".format,
    },
    draw=partial(draw_all, plots.ALL),
    headline=plots.by_block.NAME,
    quality=checks.sentences,
    answer=lambda results: _titled(TITLE, best.blocks(results)),
    body=_body,
)
