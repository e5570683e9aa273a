"""Runs an example of Python against a musterd, twice: run_example.py MUSTERD PACKAGE FILE LINE...

Each LINE has to be in what the example prints. A LINE "needs MODULE" asks for that instead: where
it is missing, this says so and ends as 77, skipped.
"""

import importlib.util
import os
import signal
import subprocess
import sys

PATIENCE_S = 90
NEEDS = "needs "


def main() -> int:
    musterd, package, file, *lines = sys.argv[1:]
    for module in [line.removeprefix(NEEDS) for line in lines if line.startswith(NEEDS)]:
        if importlib.util.find_spec(module) is None:
            print(f"skipped: there is no {module}")
            return 77
    lines = [line for line in lines if not line.startswith(NEEDS)]
    server = subprocess.Popen(
        [musterd, "--listen", "127.0.0.1:0", "--log-level", "warning"],
        stdout=subprocess.PIPE, text=True,
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        return run(file, address, package, lines) or run(file, address, package, lines)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(PATIENCE_S)


def run(file: str, address: str, package: str, lines: list[str]) -> int:
    """The exit code."""
    done = subprocess.run(
        [sys.executable, file, address], capture_output=True, text=True, timeout=PATIENCE_S,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, (package, os.getenv("PYTHONPATH")))),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
    )
    print(done.stdout, done.stderr, sep="\n")
    missing = [line for line in lines if line not in done.stdout]
    for line in missing:
        print(f"missing: {line}")
    return 1 if missing else done.returncode


if __name__ == "__main__":
    sys.exit(main())
