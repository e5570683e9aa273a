"""Runs a file of tests by pytest: run.py FILE --package FOLDER --musterd PROGRAM [OF PYTEST...].

Ends as 77, skipped, where there is no pytest, and says so. With --preload LIBRARY, a sanitizer's,
Python loads that first, and allocates by it; leaks, which are Python's, are not looked for.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def without_preload(program: str, folder: str) -> str:
    """A program that has the sanitizer already, and that Python's children may start."""
    script = Path(folder, Path(program).name)
    script.write_text(f"#!/bin/sh\nunset LD_PRELOAD\nexec '{program}' \"$@\"\n")
    script.chmod(0o700)
    return str(script)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--package", required=True, help="the folder that has the package")
    parser.add_argument("--musterd", required=True)
    parser.add_argument("--preload")
    asked, of_pytest = parser.parse_known_args()
    if importlib.util.find_spec("pytest") is None:
        print("skipped: there is no pytest (Debian: python3-pytest)")
        return 77
    paths = [asked.package, os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "MUSTERD": asked.musterd,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", asked.file]
    command += of_pytest
    if not asked.preload:
        os.execve(sys.executable, command, environment)
    with tempfile.TemporaryDirectory() as folder:
        environment |= {
            "ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0".lstrip(":"),
            "LD_PRELOAD": asked.preload,
            "MUSTERD": without_preload(asked.musterd, folder),
            "PYTHONMALLOC": "malloc",
        }
        return subprocess.run(command, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
