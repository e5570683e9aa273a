"""Runs an example of musterrun as its text says: one attempt fails, and the next one goes on.

run_launched_job.py PROGRAM MUSTERRUN
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

PATIENCE_S = 60
STEPS = 4


def command_in_text(program, musterrun):
    text = (Path(__file__).parent / "launched_job.cpp").read_text(encoding="utf-8")
    command = re.search(r"^//     (musterrun .*)$", text, re.MULTILINE)[1].split()
    paths = {"musterrun": musterrun, "launched_job": program}
    return [paths.get(word, word) for word in command]


def check(command):
    """Of each rank, the lines of both attempts; only rank 0 is shown unless more is asked for."""
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run([command[0], "--tee", "1", *command[1:]], cwd=folder, text=True,
                               timeout=PATIENCE_S, check=False, capture_output=True)
        saved = (Path(folder) / "checkpoint").read_text(encoding="utf-8")
    count = int(command[command.index("-n") + 1])
    total = STEPS * sum(range(1, count + 1))
    expected = [line for rank in range(count) for line in (
        f"rank {rank} begins behind step 0", f"rank {rank} begins behind step 2",
        f"rank {rank} of {count} ends with {total}")]
    lines = [line.split("]: ")[1] for line in ended.stdout.splitlines()]
    if ended.returncode != 0 or sorted(lines) != sorted(expected):
        sys.exit(f"it ended with {ended.returncode}: {ended.stdout}{ended.stderr}")
    if saved != f"{STEPS} {total}\n":
        sys.exit(f"the file has {saved!r}")
    for told in ("rank 1 ", "exited with 3", "1 of 1 restarts used"):
        if told not in ended.stderr:
            sys.exit(f"musterrun does not say {told!r}: {ended.stderr}")


def main():
    program, musterrun = (str(Path(each).resolve()) for each in sys.argv[1:])
    check(command_in_text(program, musterrun))


main()
