"""`analysis machines`: each queue at its best, with the machine as a random effect."""

import re

import numpy as np
import pytest
import rows
from conftest import main
from scipy import stats

from analysis.feeding import machines
from analysis.load import load


def machine(folder, name: str, speed: float, **where) -> str:
    """Two queues; host_polled is fastest with another transfer on fast machines."""
    best = "mapped" if speed > 1 else "pinned"
    found = [
        row
        for queue, transfer, rate in (
            ("gpu_ring", "none", 1e8 * speed),
            ("host_polled", best, 1e7 * speed),
            ("host_polled", "pageable", 1e6 * speed),
        )
        for row in rows.repeated(queue, (rate,) * 3, transfer=transfer, p50=1e4 / speed, p99=2e4 / speed)
    ]
    return str(folder([rows.rerun(row, where=rows.environment(**where)) for row in found], name=name))


def test_figures_are_geometric_means_with_students_interval_over_machines(folder, capsys):
    speeds = (0.9, 1.0, 1.15)
    folders = [machine(folder, f"m{n}", speed) for n, speed in enumerate(speeds)]
    assert main(["machines", *folders]) == 0
    text = capsys.readouterr().out
    ring, polled = (line for line in text.splitlines() if re.match(r"\| (gpu_ring|host_polled) ", line))
    assert ring.split(" | ")[1] == "3"
    assert "pinned or mapped" in polled and "pageable" not in polled
    (line,) = machines.combined([machines.delivering(load([one])) for one in folders]).query("queue == 'gpu_ring'").to_dict("records")
    logs = np.log(speeds)
    low, high = stats.t.interval(0.95, 2, logs.mean(), logs.std(ddof=1) / np.sqrt(3))
    expected = 1e8 * np.exp([logs.mean(), low, high])
    got = [line[f"messages_per_second{end}"] for end in ("", "_low", "_high")]
    assert got == pytest.approx(expected, rel=0.01)
    assert "Geometric means over 3 machines" in text


def test_one_machine_has_no_interval(folder, capsys):
    assert main(["machines", machine(folder, "only", 1.0)]) == 0
    (ring,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| gpu_ring ")]
    assert "100 M msg/s |" in ring and "(" not in ring


@pytest.mark.parametrize("differing, what", [({"revision": "other"}, "revision"), ({"gpu": "NVIDIA A100"}, "kind of GPU")])
def test_runs_that_do_not_belong_together_are_rejected(folder, capsys, differing, what):
    first, second = machine(folder, "first", 1.0), machine(folder, "second", 1.0, **differing)
    assert main(["machines", first, second]) == 2
    assert f"these runs differ in their {what}; allowed: runs of one {what}" in capsys.readouterr().err


def test_one_gpu_counts_once(folder, capsys):
    runs = [machine(folder, f"m{n}", 1.0, gpu_uuid=f"GPU-{min(n, 1)}") for n in range(3)]
    assert main(["machines", *runs[:2]]) == 0
    capsys.readouterr()
    assert main(["machines", *runs]) == 2
    assert f"DIR '{runs[2]}': is from the same GPU as {runs[1]} (GPU-1); allowed: one run from each" in capsys.readouterr().err


def test_each_machine_needs_a_run_with_rows_that_count(folder, tmp_path, capsys):
    one = machine(folder, "one", 1.0)
    assert main(["machines", one, one]) == 2 and "is given twice" in capsys.readouterr().err
    empty = str(folder([rows.not_ok(rows.params(), "failed", "it hung")], name="empty"))
    assert main(["machines", one, empty, "--out", str(tmp_path / "none")]) == 2
    assert "has no row that counts" in capsys.readouterr().err and not (tmp_path / "none").exists()


def test_figure_shows_every_queue(folder, tmp_path, capsys):
    folders = [machine(folder, f"m{n}", speed) for n, speed in enumerate((0.9, 1.0))]
    assert main(["machines", *folders, "--out", str(tmp_path / "drawn")]) == 0
    assert (tmp_path / "drawn/headline.png").stat().st_size > 1000
    picture = (tmp_path / "drawn/headline.svg").read_text()
    assert "gpu_ring" in picture and "host_polled" in picture
