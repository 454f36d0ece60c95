"""Prints the data that tests/run_tests.sh needs from ctest's JUnit file, one item per line:

    count PASSED FAILED SKIPPED
    fail NAME
    said TEXT               the end of a failed test's output, and the command that reruns the test
    skip NUMBER REASON
    time TEXT               seconds per suite, and the slowest tests

    python tests/read_results.py JUNIT-FILE PRESET
"""

import collections
import re
import sys
import xml.etree.ElementTree as xml

LINES, TESTS = 30, 10  # lines shown per failed test, and number of such tests: a broken machine must not fill the log
SUITES, SLOWEST = 25, 10


def suite_of(name: str) -> str:
    """`Queues/WorkerTest.Serves/redis_list  # GetParam() = …` belongs to WorkerTest."""
    return name.split("#")[0].split(".")[0].split("/")[-1].strip()


def main(junit: str, preset: str) -> None:
    passed, failed, reasons = 0, [], collections.Counter()
    suites, tests, times = collections.Counter(), collections.Counter(), []
    for case in xml.parse(junit).getroot().iter("testcase"):
        skipped = case.find("skipped")
        message = skipped.get("message", "") if skipped is not None else ""
        name, seconds = case.get("name").split("  #")[0], float(case.get("time") or 0)
        suites[suite_of(name)] += seconds
        tests[suite_of(name)] += 1
        times.append((seconds, name))
        if case.get("status") == "run":
            passed += 1
        elif case.get("status") == "disabled" or message.startswith("SKIP_"):
            # GoogleTest prints "file:line: Skipped" and the reason on the next line.
            said = re.search(r": Skipped\n+(.+)", case.findtext("system-out") or "")
            reasons[said[1].strip() if said else message or "disabled"] += 1
        else:  # "not run" for any other reason, such as a missing executable, is also a failure
            said = (case.findtext("system-out") or "").rstrip().splitlines()
            failed.append((f"{name} {message}".strip(), name, said[-LINES:]))
    print("count", passed, len(failed), sum(reasons.values()))
    for title, _, _ in failed:
        print("fail", title)
    for title, name, said in failed[:TESTS]:
        print("said", f"-- the end of the output of {title}:")
        for line in said:
            print("said |", line)
        print("said", f"-- next, run it alone: ctest --preset {preset} --output-on-failure -R '^{re.escape(name)}'")
    for reason, number in reasons.most_common():
        print("skip", number, reason)
    print("time", f"{sum(suites.values()):.0f} s in {len(times)} tests; by suite:")
    for suite, seconds in suites.most_common(SUITES):
        print("time", f"| {seconds:7.1f} s {tests[suite]:4d} {suite}")
    print("time", "the slowest tests:")
    for seconds, name in sorted(times, reverse=True)[:SLOWEST]:
        print("time", f"| {seconds:7.1f} s {name}")


main(*sys.argv[1:])
