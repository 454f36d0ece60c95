"""The table of what queues lost under faults."""

import json
from pathlib import Path

import pytest

from analysis import commands
from analysis.faults import faults_text


def case(queue="redis_list", fault="worker killed", **fields):
    return {"queue": queue, "fault": fault, "sent": 1000, "lost": 0, "duplicated": 0, "failed": 0, "recovery_seconds": 0.0} | fields


def written(tmp_path, cases):
    file = tmp_path / "faults.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in cases))
    return str(file)


def test_cases_of_one_queue_and_fault_add_up(tmp_path):
    cases = [
        case(lost=3),
        case(lost=4, recovery_seconds=1.25),
        case("redis_reliable", duplicated=2),
        case("redis_reliable", "connections cut", duplicated=5, recovery_seconds=0.7),
    ]
    lines = faults_text(written(tmp_path, cases)).splitlines()
    assert lines[0] == "| fault | redis_list | redis_reliable |"
    assert "| worker killed | 7 / 0 of 2,000, 1.2 s | 0 / 2 of 1,000, 0.0 s |" in lines
    assert "| connections cut | — | 0 / 5 of 1,000, 0.7 s |" in lines
    assert "4,000 tasks in 4 cases" in lines[-1]


def test_what_made_the_cases_is_said_once_where_they_name_it(tmp_path):
    version = "feedrate 0.1.0 (revision 0123456789ab, GNU 12.2.0 Release, CUDA 13.0.88)"
    cpu, gpu = ({"host": "here", "gpu": name, "version": version} for name in (None, "NVIDIA H100 80GB HBM3"))
    lines = faults_text(written(tmp_path, [case(), case(**cpu), case(**gpu), case(**gpu)])).splitlines()
    assert lines[-4:] == ["", f"here · {version}", "", f"NVIDIA H100 80GB HBM3 · here · {version}"]
    assert "4,000 tasks in 4 cases" in lines[-5]


def test_the_block_of_a_page_is_written_and_checked(tmp_path):
    file, page = written(tmp_path, [case(lost=3)]), tmp_path / "page.md"
    page.write_text("before\n<!-- faults:begin -->\n<!-- faults:end -->\nafter\n")
    words = ["faults", file, "--readme", str(page)]
    assert commands.run([*words, "--check"]) == 1
    assert commands.run(words) == 0
    assert "3 / 0 of 1,000" in page.read_text()
    assert commands.run([*words, "--check"]) == 0


@pytest.mark.parametrize("text", ["", "{}", "nonsense", '{"queue": 1}'])
def test_what_is_no_case_is_refused_by_its_line(tmp_path, text, capsys):
    file = tmp_path / "faults.jsonl"
    file.write_text(text)
    assert commands.run(["faults", str(file)]) == 2
    assert str(file) in capsys.readouterr().err


def test_what_delivers_at_least_once_lost_nothing():
    file = Path(__file__).resolve().parents[2] / "results/reference/delivery/faults.jsonl"
    for case in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
        if case["fault"] == "failover, tasks that only the master had":
            assert case["lost"] == case["sent"], case  # no queue can promise these
        elif case["queue"] in ("redis_reliable", "redis_priority", "redis_stream"):
            assert case["lost"] == 0, case
        else:
            assert case["duplicated"] == 0, case
