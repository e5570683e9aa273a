"""Counts the tests of a Meson build by its testlog.json: prints `PASSED FAILED SKIPPED`.

totals.py TESTLOG   Why a test was skipped, and which failed, goes to stderr.
"""

import json
import sys
from pathlib import Path

PASSED = {"OK", "EXPECTEDFAIL"}


def last_line(test):
    lines = (test.get("stdout") or test.get("stderr") or "").strip().splitlines()
    return lines[-1] if lines else "it does not say why"


def main():
    log = Path(sys.argv[1])
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    for test in map(json.loads, lines):
        if test["result"] in PASSED:
            counts["passed"] += 1
        elif test["result"] == "SKIP":
            counts["skipped"] += 1
            print(f"skipped: {test['name']}: {last_line(test)}", file=sys.stderr)
        else:
            counts["failed"] += 1
            print(f"failed: {test['name']}: {test['result']}", file=sys.stderr)
    print(*counts.values())


if __name__ == "__main__":
    main()
