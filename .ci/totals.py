"""Counts the tests of a Meson build by its testlog.json: prints `PASSED FAILED SKIPPED`.

totals.py TESTLOG FAILURES   Prints the reasons of skipped tests to stderr. Appends the names of
                             failed tests and their last lines to the file FAILURES.
"""

import json
import sys
from pathlib import Path

PASSED = {"OK", "EXPECTEDFAIL"}


LINES_OF_A_FAILURE = 20


def last_lines(test, count):
    lines = [
        line
        for stream in ("stdout", "stderr")
        for line in (test.get(stream) or "").strip().splitlines()[-count:]
    ]
    return lines or ["it does not say why"]


def main():
    log = Path(sys.argv[1])
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    for test in map(json.loads, lines):
        if test["result"] in PASSED:
            counts["passed"] += 1
        elif test["result"] == "SKIP":
            counts["skipped"] += 1
            print(f"skipped: {test['name']}: {last_lines(test, 1)[0]}", file=sys.stderr)
        else:
            counts["failed"] += 1
            with Path(sys.argv[2]).open("a", encoding="utf-8") as failures:
                print(f"failed: {test['name']}: {test['result']}", file=failures)
                print(*last_lines(test, LINES_OF_A_FAILURE), sep="\n", file=failures)
    print(*counts.values())


if __name__ == "__main__":
    main()
