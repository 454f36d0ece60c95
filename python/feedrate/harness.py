"""The harness for notebooks. Every measurement runs in a child process, so a hanging kernel cannot hang the
notebook."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import Error

if TYPE_CHECKING:
    import pandas

_NEEDS = "pip install 'feedrate[harness]'"


def executable() -> Path:
    """Returns the path of the `feedrate` executable that belongs to this package."""
    import feedrate

    for folder in feedrate.__path__:
        found = Path(folder) / "bin" / "feedrate"
        if found.is_file():
            return found
    raise Error("this installation has no feedrate executable; install the package with `pip install .`")


def run(**options: Any) -> dict[str, Any]:
    """Measures one point.

    Parameters
    ----------
    **options
        Options of ``feedrate run``, with ``_`` instead of ``-``: ``run(queue="gpu_ring", payload=64, seconds=0.5)``.
        True sets a flag.

    Returns
    -------
    dict
        The row: ``status``, ``figures``, ``params`` and the other fields in common/results/row.schema.json.

    Raises
    ------
    ValueError
        The executable rejected an option. The message names the option and the allowed values.
    feedrate.Error
        The measurement produced no row.
    """
    _, rows, failure = _rows("run", "--json", *_words(options))
    cells = [row for row in rows if row.get("kind", "cell") == "cell"]
    if not cells:
        raise failure
    return cells[-1]


def sweep(
    spec: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    progress: bool = True,
    **options: Any,
) -> pandas.DataFrame:
    """Measures many points.

    Parameters
    ----------
    spec : str, path or dict
        The name of a spec (``"quick"``), the path of a spec file, or the spec itself.
    out : path, optional
        Folder for the rows, which are written during the sweep. The default is a new temporary folder.
    resume : path, optional
        Folder of an earlier sweep, whose missing points are measured. Use it instead of `spec`.
    progress : bool
        Shows a progress bar (tqdm).
    **options
        Options of ``feedrate sweep``, with ``_`` instead of ``-``.

    Returns
    -------
    pandas.DataFrame
        The cells, as `load` returns them; ``.attrs["folder"]`` is the folder of the rows.

    Raises
    ------
    KeyboardInterrupt
        The sweep was interrupted. The rows measured so far are saved, and `resume` continues the sweep.
    """
    if (spec is None) == (resume is None):
        raise ValueError("sweep: give either a spec or a folder to resume")
    with contextlib.ExitStack() as stack:
        if resume is not None:
            folder, words = Path(resume), ["--resume", str(resume)]
        else:
            if isinstance(spec, Mapping):
                file = stack.enter_context(tempfile.NamedTemporaryFile("w", suffix=".json"))
                json.dump(spec, file)
                file.flush()
                spec = file.name
            folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="feedrate-"))
            words = [str(spec), "--out", str(folder)]
        _run_with_bar([str(executable()), "sweep", *words, *_words(options)], folder, progress)
    frame = load(folder)
    frame.attrs["folder"] = str(folder)
    return frame


def _run_with_bar(words: list[str], folder: Path, progress: bool) -> None:
    bar = None
    output: list[str] = []
    with _child(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        assert child.stdout is not None
        try:
            for line in child.stdout:
                output = [*output[-20:], line]
                step = re.match(r"\[(\d+)/(\d+)\] ?(.*)", line)
                if step is None or not progress:
                    continue
                if bar is None:
                    bar = _analysis_needs("tqdm.auto").tqdm(unit="cell", file=sys.stdout)
                bar.total = int(step[2])
                bar.n = int(step[1])
                bar.set_description_str(step[3][:60], refresh=True)
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)
            child.wait()
            raise KeyboardInterrupt(f"to continue: feedrate.sweep(resume={str(folder)!r})") from None
        finally:
            if bar is not None:
                bar.close()
        child.wait()
    if child.returncode not in (0, 1) or not any(folder.glob("rows.jsonl*")):  # exit code 1: a cell failed; its row gives the reason
        raise _failure(child.returncode, "".join(output))


def load(folder: str | os.PathLike[str], *, experiment: str = "feeding") -> pandas.DataFrame:
    """Loads the cells in a results folder, one row per repetition, with axes, figures and status.

    Figures are in SI units, except times, which are in nanoseconds.
    """
    analysis = _analysis_needs("feedrate.analysis.load")
    with _analysis_errors():
        frame: pandas.DataFrame = analysis.load([str(folder)], "folder", experiment).cells
    return frame


def compare(a: str | os.PathLike[str], b: str | os.PathLike[str], *options: str) -> str:
    """Returns the changes from `a` to `b` per point, as ``python -m feedrate.analysis compare`` prints them."""
    return _command("compare", str(a), str(b), *options)


def report(folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Path:
    """Writes the report of a results folder and returns the path of its page."""
    target = Path(out) if out is not None else Path(folder) / "report"
    _command("report", str(folder), "--out", str(target))
    return target / "report.html"


def limits(device: str = "auto") -> list[dict[str, Any]]:
    """Measures the limits of this machine: name, value, unit, scope, method and status of each limit."""
    code, rows, failure = _rows("limits", "--json", "--device", device)
    if code != 0:
        raise failure
    return [row["limit"] | {"status": row["status"]} for row in rows if row.get("kind") == "limit"]


floors = limits  # earlier name


@contextlib.contextmanager
def _child(words: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Starts a child process, which is stopped at the end of the block at the latest."""
    # The specs are part of the package.
    specs = Path(words[0]).parent.parent / "specs"
    environment = dict(os.environ) | ({"FEEDRATE_SPECS": str(specs)} if specs.is_dir() else {})
    child = subprocess.Popen(
        words, env=environment, start_new_session=True, encoding="utf-8", errors="backslashreplace", **options
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def _rows(*words: str) -> tuple[int, list[dict[str, Any]], Exception]:
    """Runs a command. Returns its exit code, its rows, and the exception to raise if the rows do not suffice."""
    with _child([str(executable()), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        printed, messages = child.communicate()
    rows = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return child.returncode, rows, _failure(child.returncode, messages or printed)


def _words(options: Mapping[str, Any]) -> list[str]:
    words = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            words += [option, ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)]
    return words


def _failure(code: int, output: str) -> Exception:
    text = output.strip() or f"feedrate exited with code {code}"
    return ValueError(text) if code == 2 else Error(text)


def _analysis_needs(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise Error(f"the module {error.name} is missing; install it with {_NEEDS}") from None


@contextlib.contextmanager
def _analysis_errors() -> Iterator[None]:
    bad = _analysis_needs("feedrate.analysis.errors").BadInput
    try:
        yield
    except bad as error:
        raise ValueError(str(error)) from None


def _command(*words: str) -> str:
    main = _analysis_needs("feedrate.analysis.__main__").main
    printed, complaint = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complaint):
        try:
            code = main(list(words))
        except SystemExit as error:
            code = error.code
    if code not in (0, 1) or not (printed.getvalue() or code == 0):
        raise ValueError(complaint.getvalue().strip())
    if code == 1 and complaint.getvalue().startswith("error"):
        raise Error(complaint.getvalue().strip())
    return printed.getvalue()
