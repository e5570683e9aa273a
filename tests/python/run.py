"""Runs a file of tests by pytest: run.py FILE --package FOLDER --musterd PROGRAM [OF PYTEST...].

Exits with 77, which Meson counts as skipped, if there is no pytest or if every test of the file was
skipped; the last line is the reason. Otherwise the exit status is pytest's: a file without tests
fails, and so does one that cannot be imported. With --preload LIBRARY, a sanitizer's,
Python loads that first, and allocates by it; leaks, which are Python's, are not looked for.
"""

import argparse
import ast
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

SKIPPED = 77
NOTHING_COLLECTED = 5  # of pytest, also where the file skipped itself

def without_preload(program: str, folder: str) -> str:
    """A program that has the sanitizer already, and that Python's children may start."""
    script = Path(folder, Path(program).name)
    script.write_text(f"#!/bin/sh\nunset LD_PRELOAD\nexec '{program}' \"$@\"\n")
    script.chmod(0o700)
    return str(script)


def reason_of(skipped: ElementTree.Element) -> str:
    if "type" in skipped.keys():
        return skipped.get("message") or ""
    # The file skipped itself as it was imported: a tuple of path, line and reason.
    return str(ast.literal_eval(skipped.text or "")[2]).removeprefix("Skipped: ")


def reasons_if_all_skipped(report: Path) -> list[str]:
    """Reads the report of pytest; empty if a test ran, failed, or was not even found."""
    reasons = []
    for case in ElementTree.parse(report).iter("testcase"):
        skipped = case.find("skipped")
        if skipped is None or len(case) != 1 or skipped.get("type") == "pytest.xfail":
            return []
        reasons.append(reason_of(skipped))
    return sorted(set(reasons))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--package", required=True, help="the folder that has the package")
    parser.add_argument("--musterd", required=True)
    parser.add_argument("--preload")
    asked, of_pytest = parser.parse_known_args()
    if importlib.util.find_spec("pytest") is None:
        print("skipped: there is no pytest (Debian: python3-pytest)")
        return SKIPPED
    paths = [asked.package, os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "MUSTERD": asked.musterd,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", asked.file]
    command += of_pytest
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command.append(f"--junitxml={report}")
        if asked.preload:
            environment |= {
                "ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0".lstrip(":"),
                "LD_PRELOAD": asked.preload,
                "MUSTERD": without_preload(asked.musterd, folder),
                "PYTHONMALLOC": "malloc",
            }
        status = subprocess.run(command, env=environment).returncode
        reasons = reasons_if_all_skipped(report) if status in (0, NOTHING_COLLECTED) else []
    if not reasons:
        return status
    print("skipped:", "; ".join(reasons))
    return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
