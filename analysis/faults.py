"""The table of guarantees: the tasks that each queue lost or delivered twice under each fault, from the fault tests."""

from pathlib import Path

from .document import Table, markdown_table
from .files import json_lines

FIELDS = ("queue", "fault", "sent", "lost", "duplicated", "recovery_seconds")
ALLOWED = f"a file that the tests wrote to $FEEDRATE_FAULTS: objects with {', '.join(FIELDS)}"
MADE_BY = ("gpu", "host", "version")  # missing in older lines


def faults_text(file: str) -> str:
    """One row per fault, one column per queue. Cases of the same fault and queue are added up; the longest
    recovery counts."""
    cases = json_lines(Path(file), _case, ALLOWED)
    queues = sorted({case["queue"] for case in cases})
    faults = list(dict.fromkeys(case["fault"] for case in cases))
    found = {(queue, fault): [] for queue in queues for fault in faults}
    for case in cases:
        found[case["queue"], case["fault"]].append(case)
    rows = [[fault, *(_cell(found[queue, fault]) for queue in queues)] for fault in faults]
    sent = sum(case["sent"] for case in cases)
    note = (
        "Each cell shows lost tasks / duplicate results, the number of tasks, and the time in seconds from when the "
        f"last task was sent until the last result. In total: {sent:,} tasks in {len(cases)} cases."
    )
    made_by = dict.fromkeys(case["made by"] for case in cases if case["made by"])
    return "\n\n".join([markdown_table(Table(["fault", *queues], rows)), note, *made_by])


def _cell(cases: list[dict]) -> str:
    if not cases:
        return "—"
    lost, twice, sent = (sum(case[field] for case in cases) for field in ("lost", "duplicated", "sent"))
    seconds = [case["recovery_seconds"] for case in cases if case["recovery_seconds"] is not None]
    return f"{lost} / {twice} of {sent:,}" + (f", {max(seconds):.1f} s" if seconds else "")


def _case(line: dict) -> dict:
    made_by = " · ".join(str(line[field]) for field in MADE_BY if line.get(field))
    return {field: line[field] for field in FIELDS} | {"made by": made_by}
