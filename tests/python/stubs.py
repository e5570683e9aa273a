"""Test: the stubs name what the extension and the asynchronous classes have, and nothing else.

stubs.py FOLDER   that has the package; prints what mypy's stubtest finds, but for what pybind11 is:
all its classes have a metaclass, and an __init__ that refuses whatever it is given; and buffers
have a method since Python 3.12 alone. Skipped, with 77, where there is no mypy.
"""

import importlib.util
import os
import re
import subprocess
import sys

import async_types

OF_PYBIND11 = re.compile(
    r"metaclass differs|\.__init__ is inconsistent, stub does not have \*args argument|"
    r"\.__buffer__ is not present at runtime")
PATIENCE_S = 100


def main() -> int:
    if async_types.main([]) != 0:
        return 1
    if importlib.util.find_spec("mypy") is None:
        print("skipped: there is no mypy (Debian: python3-mypy)")
        return 77
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--concise", "muster._core"],
        capture_output=True, text=True, timeout=PATIENCE_S,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, (sys.argv[1], os.getenv("PYTHONPATH")))),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
    )
    lines = done.stdout.splitlines()
    found = [line for line in lines if not OF_PYBIND11.search(line)]
    print(*found, done.stderr, sep="\n")
    is_understood = done.returncode == 0 or len(lines) > 0
    return 0 if is_understood and not found else 1


if __name__ == "__main__":
    sys.exit(main())
