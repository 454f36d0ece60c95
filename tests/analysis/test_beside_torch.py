"""PyTorch's way beside ours: a line a size and use."""

import json

from analysis.__main__ import main


def line(way, size, use, handoff, start, **more):
    told = {"way": way, "bytes": size, "use": use, "handoff_ns": handoff, "to_start_ns": start}
    return told | {"device": "a GPU", "torch": "2.0", "feedrate": "1.0"} | more


def wrote(folder, *lines):
    file = folder / "torch.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    return str(file)


def test_medians_with_the_least_and_the_greatest(tmp_path, capsys):
    some = [line("torch_shared", 1024, "first", 1e3 * us, 1e3) for us in (30, 20, 50)]
    file = wrote(tmp_path, *some, line("store", 1024, "first", 7e3, 2e3), line("store", 64, "cached", 1e3, 500))
    assert main(["torch", file]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "| cached | 64 B | — | — | 1.00 µs | 500 ns |"
    assert lines[3] == "| first | 1 KiB | 30.0 µs (20.0–50.0) | 1.00 µs | 7.00 µs | 2.00 µs |"
    assert lines[-1].endswith("a GPU · PyTorch 2.0 · 1.0")


def test_what_is_none_is_bad_input(tmp_path, capsys):
    for text in ("", "no JSON\n", '{"way": "store"}\n'):
        (tmp_path / "x.jsonl").write_text(text)
        assert main(["torch", str(tmp_path / "x.jsonl")]) == 2
        assert "experiments/handoff/torch_shared.py wrote" in capsys.readouterr().err
    assert main(["torch", str(tmp_path / "none.jsonl")]) == 2
    assert main(["torch", wrote(tmp_path, line("store", 1, "first", 1, 1)), "--check"]) == 2
