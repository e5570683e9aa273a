"""How many instructions the parts of the server take that have no sockets: the same on every run,
also where other programs disturb the times. Needs valgrind.

instructions.py REPEAT [WORD]   prints a table; with a word only the work whose name has it
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

FEW = 1000
MANY = 3000


def instructions(repeat, name, times):
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind",
                   f"--callgrind-out-file={Path(folder, 'out')}", repeat, name, str(times)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    repeat, word = sys.argv[1], "".join(sys.argv[2:])
    listed = subprocess.run([repeat], check=True, capture_output=True, text=True)
    print("| work | instructions |\n|---|---:|")
    for name in listed.stdout.splitlines():
        if word in name:
            more = instructions(repeat, name, MANY) - instructions(repeat, name, FEW)
            print(f"| {name} | {more / (MANY - FEW):,.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
