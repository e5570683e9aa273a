"""Runs one fuzzer: its corpus first, then new inputs for so many seconds.

run.py PROGRAM [--seconds SECONDS]
run.py PROGRAM --keep   adds to the corpus what has been found, as few inputs as reach the same

New inputs that reach something new are kept beside the program, in found/NAME, and are where the
next run begins. One that ends the program is a finding: it is kept in crashes/NAME, and the command
that repeats it is printed. The last line of a run says how many inputs were executed.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

INPUT_LIMITS = [
    "-max_len=1024",
    "-timeout=10",
    "-rss_limit_mb=2048",
    "-malloc_limit_mb=512",
]


def folder(*parts):
    path = Path(*parts)
    path.mkdir(parents=True, exist_ok=True)
    return path


def shown(path):
    return os.path.relpath(path, Path(__file__).resolve().parents[2])


def execute(program, *arguments):
    return subprocess.run([program, *INPUT_LIMITS, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)


def fuzz(program, name, seconds, found, corpus):
    crashes = folder(program.parent, "crashes", name)
    before = set(crashes.iterdir())
    start = time.monotonic()
    run = execute(program, f"-max_total_time={seconds}", f"-artifact_prefix={crashes}/",
                  "-print_final_stats=1", "-verbosity=0", found, corpus)
    took = time.monotonic() - start
    executed = re.search(r"number_of_executed_units: *(\d+)", run.stdout)
    count = int(executed[1]) if executed else 0
    if run.returncode != 0 or count == 0:
        print(run.stdout[-10000:])
    for crash in sorted(set(crashes.iterdir()) - before):
        print(f"{name}: repeat it with: {shown(program)} {shown(crash)}")
    print(f"{name}: {count} executions in {took:.0f} s, {count / max(took, 1):.0f} per second")
    return run.returncode == 0 and count > 0


def keep(program, name, found, corpus):
    run = execute(program, "-merge=1", "-set_cover_merge=1", "-use_counters=0", "-verbosity=0",
                  corpus, found)
    if run.returncode != 0:
        print(run.stdout[-10000:])
    inputs = list(corpus.iterdir())
    size = sum(path.stat().st_size for path in inputs)
    print(f"{name}: the corpus has {len(inputs)} inputs of {size} bytes")
    return run.returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    name = program.name.removeprefix("fuzz_")
    found = folder(program.parent, "found", name)
    corpus = folder(Path(__file__).resolve().parent, "corpus", name)
    if arguments.keep:
        return keep(program, name, found, corpus)
    return fuzz(program, name, arguments.seconds, found, corpus)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
