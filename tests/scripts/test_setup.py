"""Tests of the steps from a clone to a report: package installation, configuration, builds and messages."""

import os
import pty
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from clone import MAIN, SOURCE, TESTS, Clone

ROOT = os.geteuid() == 0
# A command prefix that runs a command without root's right to write everywhere; empty if the user is not root.
USER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if ROOT else ()


@pytest.fixture
def clone():
    # Does not use pytest's temporary folder, because another user cannot enter it.
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        yield Clone(Path(place))


def owned_by_user(clone: Clone) -> None:
    if ROOT:
        for path in (clone.log, clone.folder, *clone.folder.rglob("*")):
            os.chown(path, 65534, 65534)


# ------------------------------------------------------------------------------------------------ the build


def test_build_reports_its_progress(clone):
    ran = clone.run(MAIN, STEPS="12", STEP_SECONDS="0.6", FEEDRATE_PROGRESS="1")
    lines = re.findall(r"^feedrate: building release: (\d+) of 12 steps, \d s(.*)$", ran.stderr, re.M)
    done = [int(number) for number, _ in lines]
    assert len(done) >= 4 and done == sorted(set(done))
    assert not lines[0][1] and re.fullmatch(r", \d s left", lines[-1][1]), "no estimate after too few steps"
    log = (clone.folder / "build/logs/build-release.log").read_text()
    assert [line for line in log.splitlines() if line.endswith("12.o")] == ["[12/12 1.5 s] Building CXX object 12.o"]
    assert "Building CXX" not in ran.stderr


def test_short_build_reports_no_progress(clone):
    assert " steps" not in clone.run(MAIN, STEPS="12").stderr


def test_terminal_shows_build_progress_on_one_line(clone):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [MAIN], cwd=clone.folder, env=clone.environment(STEPS="4", STEP_SECONDS="0.2"), stderr=theirs, stdout=subprocess.DEVNULL
    )
    os.close(theirs)
    said = b""
    try:
        while more := os.read(ours, 4096):
            said += more
    except OSError:  # the end of a terminal
        pass
    assert process.wait(60) == 0, said
    (line,) = [line for line in said.decode().split("\n") if "steps" in line]
    assert line.count("\r\x1b[Kfeedrate: building release: ") >= 4
    assert re.search(r"4 of 4 steps[^\x1b]*\r\x1b\[K", line), "the line must be erased at the end"


def test_failed_build_shows_the_end_of_its_output(clone):
    ran = clone.run(MAIN, STEPS="60", BUILD_ERROR="error: no such thing")
    assert ran.returncode == 1
    said = ran.stderr.splitlines()
    assert "error: no such thing" in said and len(said) < 60 and "build/logs/build-release.log" in said[-1]
    assert "[1/60 1.5 s] Building CXX object 1.o" not in said


def test_main_command_without_a_gpu_builds_only_the_executable_and_no_cuda(clone):
    assert clone.run(MAIN).returncode == 0
    configured, built = clone.told("cmake")
    assert "-DFEEDRATE_TESTS=OFF" in configured and "-DFEEDRATE_CUDA=OFF" in configured
    assert "CMAKE_CUDA_COMPILER" not in configured
    assert built.endswith("--target feedrate")


def test_main_command_with_a_gpu_compiles_for_that_gpu(clone):
    assert clone.run(MAIN, GPU="8.6\n9.0\n9.0").returncode == 0
    configured, built = clone.told("cmake")
    assert "-DFEEDRATE_CUDA=AUTO" in configured and "-DCMAKE_CUDA_ARCHITECTURES=86;90 " in configured
    assert "-DFEEDRATE_TESTS=OFF" in configured and built.endswith("--target feedrate")


def test_old_nvidia_smi_leaves_the_architecture_to_cmake(clone):
    assert clone.run(MAIN, GPU="Field is not valid").returncode == 0
    assert "-DCMAKE_CUDA_ARCHITECTURES=native " in clone.told("cmake")[0]


def test_commands_share_a_build_folder_whose_configuration_only_grows(clone):
    def configured(*command: str, **variables: str) -> list[str]:
        assert clone.run(*command, **variables).returncode == 0
        return [line for line in clone.told("cmake") if line.startswith("--preset release")]

    long = (TESTS, "--long")
    assert len(configured(MAIN)) == 1
    (tests,) = configured(*long)
    assert "-DFEEDRATE_TESTS=ON" in tests and "-DFEEDRATE_CUDA=AUTO" in tests and "--fresh" not in tests
    assert "-DCMAKE_CUDA_ARCHITECTURES=90 " in tests, "one architecture is enough to show that device code compiles"
    for command in ([MAIN], long, [MAIN]):
        assert configured(*command) == []
    (gpu,) = configured(MAIN, GPU="8.0")
    assert "-DCMAKE_CUDA_ARCHITECTURES=80 " in gpu and "-DFEEDRATE_TESTS=ON" in gpu and "--fresh" not in gpu
    assert configured(*long) == [], "the configuration stays when a GPU is removed"


def test_short_tests_use_their_own_build_folder_with_device_code(clone):
    assert clone.run(TESTS, "--quick").returncode == 0
    (tests,) = [line for line in clone.told("cmake") if line.startswith("--preset")]
    assert tests.startswith("--preset tests ") and "-DFEEDRATE_TESTS=ON" in tests
    assert "-DFEEDRATE_CUDA=AUTO" in tests and "-DCMAKE_CUDA_ARCHITECTURES=90 " in tests


def test_bundle_uses_its_own_build_folder_with_tests_and_every_architecture(clone):
    ran = clone.run(MAIN, "--bundle", GPU="8.0", BUNDLE=".")
    assert ran.stdout == f"{clone.folder}/build/bundle/feedrate-bundle.tar.xz\n" and ran.returncode == 0
    assert "40 MiB; CUDA architectures: 80-real 90" in ran.stderr
    configured, built = clone.told("cmake")
    assert configured.startswith("--preset bundle ") and "-DFEEDRATE_TESTS=ON" in configured
    assert "ARCHITECTURES" not in configured and "FEEDRATE_CUDA=AUTO" in configured
    assert built.endswith("--target bundle")
    assert clone.told("feedrate") == []


def test_bundle_option_excludes_other_arguments(clone):
    for words in (["--bundle", "--seconds", "1"], ["quick", "--bundle"]):
        ran = clone.run(MAIN, *words)
        assert ran.returncode == 2 and "--bundle" in ran.stderr and clone.told("cmake") == []


def test_files_that_check_feature_macros_include_the_features_header():
    for folder in ("common", "kernels", "variants", "experiments", "tests"):
        for file in (SOURCE / folder).rglob("*.[chu]*"):
            text = file.read_text() if file.suffix in (".cpp", ".hpp", ".cu", ".cuh") else ""
            if re.search(r"^\s*#.*\bFEEDRATE_(WITH_CUDA|NVTX|CUPTI)\b", text, re.M):
                assert '#include "features.hpp"' in text, file


# ------------------------------------------------------------------------------------------------ packages


def test_packages_are_listed_with_their_size(clone):
    ran = clone.run(MAIN, HEADERS="", APT_FAILS="")
    assert "feedrate: apt-get, including dependencies: 95.3 MB to download, 412 MB on disk" in ran.stderr.splitlines()
    assert re.search(r"installing Debian packages: [^:]*libhiredis-dev", ran.stderr)


def test_only_the_test_command_installs_test_packages(clone):
    for command, asked in ((MAIN, False), (TESTS, True)):
        said = clone.run(command, HEADERS="").stderr
        for package in ("libgtest-dev", "libgmock-dev", "libbenchmark-dev"):
            assert (package in said) == asked


def test_valijson_is_unpacked_without_its_dependencies(clone):
    headers = "hiredis/hiredis.h liburing.h csv.h nlohmann/json.hpp CLI/CLI.hpp spdlog/spdlog.h fmt/format.h zlib.h lzma.h"
    assert clone.run(MAIN, HEADERS=headers).returncode == 0
    assert clone.told("apt-get") == ["download libvalijson-dev"]
    assert (clone.folder / ".deps/usr/include/valijson/validator.hpp").exists()
    assert [file.name for file in (clone.folder / ".deps").iterdir()] == ["usr"]
    assert clone.run(MAIN, HEADERS=headers).returncode == 0
    assert clone.told("apt-get") == [], "it is fetched only once"


def test_failure_to_fetch_valijson_is_reported(clone):
    headers = "hiredis/hiredis.h liburing.h csv.h nlohmann/json.hpp CLI/CLI.hpp spdlog/spdlog.h fmt/format.h zlib.h lzma.h"
    ran = clone.run(MAIN, HEADERS=headers, APT_FAILS="no such package")
    assert ran.returncode == 2 and clone.told("cmake") == []
    assert "libvalijson-dev could not be fetched" in ran.stderr.splitlines()[-1] and ".deps/usr/include" in ran.stderr


def test_bundle_is_suggested_to_users_without_root(clone):
    owned_by_user(clone)
    ran = clone.run(MAIN, prefix=USER, HEADERS="")
    assert ran.returncode == 2 and clone.told("cmake") == []
    assert "as root run: apt-get update && apt-get install -y --no-install-recommends libhiredis-dev" in ran.stderr
    assert "experiments/run_experiment.sh --bundle" in ran.stderr


def test_two_sets_of_python_packages_do_not_undo_each_other(clone):
    def installed(command: str) -> list[str]:
        ran = clone.run(command)
        assert ran.returncode == 0
        return [
            line.split(f"{clone.folder}/", 1)[1] for line in clone.told("python") if line.startswith("-m pip install")
        ]

    assert installed(MAIN) == ["requirements.txt"]
    assert installed(TESTS) == ["tests/requirements.txt"]
    assert installed(MAIN) == installed(TESTS) == []
    (clone.folder / "tests/requirements.txt").write_text("pytest>=8,<9\n")
    assert installed(MAIN) == []
    assert installed(TESTS) == ["tests/requirements.txt"]
    (clone.folder / "requirements.txt").write_text("numpy>=2,<3\n")
    assert installed(TESTS) == ["requirements.txt", "tests/requirements.txt"]
    assert installed(MAIN) == []


def test_pip_step_reports_packages_and_download_size(clone):
    said = clone.run(MAIN).stderr
    assert "feedrate: installing Python packages from PyPI into .venv: jinja2 matplotlib numpy pandas scipy" in said.splitlines()
    assert re.search(r"^feedrate: installed in \d+ s, 17 MB downloaded$", said, re.M)


# ------------------------------------------------------------------------------------------------ the end of a sweep


def test_last_lines_name_the_folder_and_the_report(clone):
    ran = clone.run(MAIN, "--out", "rows")
    assert ran.stdout == "rows/report.html\n" and ran.stderr.splitlines()[-1] == "feedrate: results: rows"


def test_last_line_after_an_interruption_is_the_sweeps_own(clone):
    ran = clone.run(MAIN, "--out", "rows", SWEEP_EXIT="130", SWEEP_SAYS="to resume: …")
    assert ran.returncode == 130 and ran.stdout == "rows/report.html\n"
    assert ran.stderr.splitlines()[-1] == "to resume: …"
    assert (clone.log / "resume-with").read_text() == f"{MAIN}\n"


def test_search_tries_alone_make_no_report(clone):
    tried = '{"kind":"cell","search":{"rung":0}}'
    ran = clone.run(MAIN, "--out", "rows", SWEEP_EXIT="130", SWEEP_SAYS="to resume: …", SWEEP_ROW=tried)
    assert ran.returncode == 130 and ran.stdout == ""
    assert "nothing to report yet" in ran.stderr and "error" not in ran.stderr


def test_long_file_makes_a_report(clone):
    """A command that stops reading at the first cell must not make the command that writes to it fail."""
    ran = clone.run(MAIN, "--out", "rows", SWEEP_ROW='{"kind":"cell","status":"ok"}', SWEEP_ROWS="20000")
    assert ran.stdout == "rows/report.html\n" and "nothing to report" not in ran.stderr


def test_rejected_command_line_makes_no_report(clone):
    ran = clone.run(MAIN, "--out", "rows", SWEEP_EXIT="2")
    assert ran.returncode == 2 and ran.stdout == "" and "results:" not in ran.stderr


# ------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize("spec", [["nosuch"], ["--out"], ["--resume", "nosuch"]])
def test_bad_command_line_fails_before_anything_is_installed(clone, spec):
    ran = clone.run(MAIN, *spec, HEADERS="")
    assert ran.returncode == 2 and len(ran.stderr.splitlines()) == 1
    assert clone.told("apt-get") == clone.told("cmake") == [] and not (clone.folder / ".venv").exists()


@pytest.mark.parametrize("command", [MAIN, TESTS, "experiments/setup.sh"])
def test_read_only_clone_is_reported_in_one_line(clone, command):
    clone.folder.chmod(0o555)
    ran = clone.run(command, prefix=USER)
    assert ran.returncode == 2, ran.stderr
    line = ran.stderr.splitlines()[-1]
    assert re.match(rf"feedrate: cannot write {clone.folder}/build: this user may not write there; ", line)
    assert clone.told("cmake") == [] and "Permission denied" not in ran.stderr


def test_unwritable_results_folder_is_reported_before_the_build(clone):
    owned_by_user(clone)
    ran = clone.run(MAIN, "--out", "/proc/rows", prefix=USER)
    assert ran.returncode == 2 and clone.told("cmake") == []
    (line,) = ran.stderr.splitlines()
    assert line.startswith("feedrate: cannot write /proc/rows: ") and "--out" in line


def test_file_in_place_of_a_folder_is_reported(clone):
    (clone.folder / "build").write_text("")
    ran = clone.run(MAIN)
    assert ran.returncode == 2 and "build: a file is in the way" in ran.stderr


FULL = "OSError: [Errno 28] No space left on device"


def test_full_disk_is_reported_in_one_line_at_every_step(clone):
    for variables in ({"HEADERS": "", "APT_FAILS": "You don't have enough free space in /var/cache/apt/archives/."},
                      {"BUILD_ERROR": "fatal error: error writing to /tmp/x.s: No space left on device"},
                      {"REPORT_ERROR": FULL}):  # fmt: skip
        ran = clone.run(MAIN, prefix=(), **variables)
        step = "|".join(("apt", "build-release", "report"))
        line = ran.stderr.splitlines()[-1]
        assert ran.returncode == 1 and "Traceback" not in ran.stderr and ran.stdout == ""
        assert re.match(rf"feedrate: failed: ({step}): no space left on the disk at /", line), ran.stderr
        log = Path(line.split("full log: ")[1])
        assert log.exists() and next(iter(variables.values()), "") in log.read_text() or "HEADERS" in variables


# ------------------------------------------------------------------------------------------------ an unpacked bundle


@pytest.fixture
def bundle(clone) -> Clone:
    shutil.copy(SOURCE / "cmake/bundle_run.sh", clone.folder / "run")
    (clone.folder / "run").chmod(0o755)
    (clone.folder / "bin").mkdir()
    shutil.copy(clone.fakes / "feedrate", clone.folder / "bin/feedrate")
    return clone


def test_bundle_does_not_mistake_a_rejected_variable_for_an_old_library(bundle):
    program = bundle.folder / "bin/feedrate"
    program.write_text('#!/bin/sh\n[ -z "$FEEDRATE_UNKNOWN" ] || exit 2\necho bin "$@"\n')
    other = bundle.folder / "redis/feedrate"
    other.parent.mkdir()
    other.write_text('#!/bin/sh\necho loader "$@"\n')
    other.chmod(0o755)
    assert bundle.run("./run", "feedrate", "list").stdout == "bin list\n"
    assert bundle.run("./run", "feedrate", "list", FEEDRATE_UNKNOWN="1").returncode == 2
    program.write_text("#!/bin/sh\nexit 1\n")
    assert bundle.run("./run", "feedrate", "list").stdout == "loader list\n"


def test_bundle_names_the_python_packages_missing_for_a_report(bundle):
    ran = bundle.run("./run", "sweep", "--out", "rows", NEEDS="matplotlib scipy")
    assert ran.returncode == 0 and ran.stdout == ""
    assert ran.stderr.splitlines()[-1] == (
        "feedrate: no report: python3 here lacks matplotlib, scipy (pip install --user matplotlib scipy); the rows are in rows"
    )
    ran = bundle.run("./run", "report", "rows", NEEDS="matplotlib scipy")
    assert ran.returncode == 1 and "lacks matplotlib, scipy" in ran.stderr


def test_bundle_makes_a_report_if_python_has_the_packages(bundle):
    ran = bundle.run("./run", "sweep", "--out", "rows")
    assert ran.stdout == "rows/report.html\n" and ran.returncode == 0
    assert bundle.told("python") == ["-m analysis needs", "-m analysis report rows"]
    assert (bundle.log / "resume-with").read_text() == "./run sweep\n"


def test_bundle_cannot_make_a_bundle(bundle):
    ran = bundle.run("./run", "sweep", "--bundle")
    assert ran.returncode == 2 and "needs a clone" in ran.stderr


@pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake")
def test_bundle_contains_the_licence_and_the_pages(tmp_path):
    source, build = tmp_path / "source", tmp_path / "build"
    pages = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "variants/feeding/queues/gpu_ring.md", "experiments/page.md"]
    for page in [*pages, "cmake/bundle_run.sh", "experiments/setup.sh", "tests/x", "build/other.md", "requirements.txt"]:
        (source / page).parent.mkdir(parents=True, exist_ok=True)
        (source / page).write_text(page)
    (build / "bin").mkdir(parents=True)
    shutil.copy("/bin/true", build / "bin/feedrate")
    small = tmp_path / "small"  # compressing the real Redis and its libraries takes 10 s
    small.mkdir()
    shutil.copy("/bin/true", small / "redis-server")
    (build / "CMakeCache.txt").write_text("CMAKE_CUDA_ARCHITECTURES:STRING=80-real;90\n")
    made = subprocess.run(
        ["cmake", f"-DSOURCE={source}", f"-DBUILD={build}", "-DPYTHON=python3", "-P", str(SOURCE / "cmake/bundle.cmake")],
        capture_output=True, text=True, timeout=120, env=os.environ | {"PATH": f"{small}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert "CUDA architectures: 80-real 90" in made.stdout
    archive = build / "feedrate-bundle.tar.xz"
    names = subprocess.run(["tar", "tf", archive], capture_output=True, text=True, check=True).stdout.split()
    assert {f"feedrate-bundle/{page}" for page in pages} <= set(names)
    assert "feedrate-bundle/build/other.md" not in names


# ------------------------------------------------------------------------------------------------ the tests' own command


def test_short_run_omits_long_tests_and_long_run_uses_the_release_build(clone):
    def ran(*words: str) -> tuple[list[str], list[str]]:
        assert clone.run(TESTS, *words).returncode == 0
        presets = [line.split()[1] for line in clone.told("cmake") if line.startswith("--preset")]
        return sorted(presets), clone.told("ctest")

    presets, runs = ran("--quick")
    assert presets == ["tests"] and len(runs) == 1 and "-LE ^(gpu|long)$" in runs[0] and "long=" in runs[0]
    presets, runs = ran("--long")
    assert presets == ["release", "tsan"] and all("-LE ^gpu$" in run and "long=1" in run for run in runs)
    both = clone.run(TESTS, "--quick", "--long")
    assert both.returncode == 2 and "--quick, --long and --coverage are mutually exclusive" in both.stderr


def test_failed_test_shows_its_output_and_next_step_at_the_end_of_the_log(clone):
    """The end of a log names the failing test within a suite that ctest runs as one test."""
    said = "\n".join([*(f"line {n}" for n in range(1000)), "  &lt;indented&gt;", "FAILED test_it.py::test_this", ""])
    ran = clone.run(TESTS, "--quick", CTEST_EXIT="8", CASES=(
        f"<testcase name='suite' time='2.5' status='fail'><failure message='Failed'/><system-out>{said}</system-out></testcase>"
        "<testcase name='A/Silent.One/x  # GetParam() = 1' time='1' status='fail'/>"
        "<testcase name='Silent.Good' time='1' status='run'><system-out>not shown</system-out></testcase>"
    ))  # fmt: skip
    assert ran.returncode == 1
    end = ran.stdout.partition("== summary")[2].splitlines()
    assert "FAILED cpu, redis, cli, python: suite" in end and end[-1] == "1 passed, 2 failed, 0 skipped"
    begin = end.index("-- the end of the output of suite:")
    assert end[begin + 1] == "| line 972", "the last 30 lines"
    assert end[begin + 29 : begin + 31] == ["|   <indented>", "| FAILED test_it.py::test_this"]
    again = "-- next, run it alone: ctest --preset tests --output-on-failure -R '^{}'"
    assert end[begin + 31] == again.format("suite") and again.format("A/Silent\\.One/x") in end
    assert "not shown" not in ran.stdout
    assert "|     2.0 s    2 Silent" in end and "|     2.5 s suite" in end, "durations by suite, and the slowest tests"
