"""Runs one fuzzer: its corpus first, then new inputs for so many seconds.

run.py PROGRAM [--seconds SECONDS]
run.py PROGRAM --keep   adds to the corpus what has been found, as few inputs as reach the same

The corpus has the committed inputs, see corpus.py, and those that protocol_inputs, a program in the
folder of PROGRAM, generates. They are written to inputs/NAME in that folder. New inputs that reach
something new are kept in found/NAME, and are where the next run begins. One that ends the program
is a finding: it is kept in crashes/NAME, and the command that repeats it is printed. The last line
of a run says how many inputs were executed.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import corpus

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


def generated(program, name):
    generator = program.parent / "protocol_inputs"
    run = subprocess.run([generator, name], stdout=subprocess.PIPE, text=True, check=True)
    return corpus.parse(run.stdout, f"protocol_inputs {name}")


def fuzz(program, name, seconds, found, inputs):
    crashes = folder(program.parent, "crashes", name)
    before = set(crashes.iterdir())
    start = time.monotonic()
    run = execute(program, f"-max_total_time={seconds}", f"-artifact_prefix={crashes}/",
                  "-print_final_stats=1", "-verbosity=0", found, inputs)
    took = time.monotonic() - start
    executed = re.search(r"number_of_executed_units: *(\d+)", run.stdout)
    count = int(executed[1]) if executed else 0
    if run.returncode != 0 or count == 0:
        print(run.stdout[-10000:])
    for crash in sorted(set(crashes.iterdir()) - before):
        print(f"{name}: repeat it with: {shown(program)} {shown(crash)}")
    print(f"{name}: {count} executions in {took:.0f} s, {count / max(took, 1):.0f} per second")
    return run.returncode == 0 and count > 0


def keep(program, name, found, inputs, committed):
    before = set(inputs.iterdir())
    run = execute(program, "-merge=1", "-set_cover_merge=1", "-use_counters=0", "-verbosity=0",
                  inputs, found)
    if run.returncode != 0:
        print(run.stdout[-10000:])
        return False
    new = corpus.read_files(sorted(set(inputs.iterdir()) - before))
    if new:
        committed = corpus.combined(committed, new, "found")
        corpus.write(corpus.path_of(name), committed)
    size = sum(len(data) for data in committed.values())
    print(f"{name}: {len(new)} inputs added; the corpus has {len(committed)} of {size} bytes")
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    name = program.name.removeprefix("fuzz_")
    found = folder(program.parent, "found", name)
    inputs = folder(program.parent, "inputs", name)
    try:
        committed = corpus.read(corpus.path_of(name))
        both = corpus.combined(committed, generated(program, name), "protocol_inputs")
    except corpus.CorpusError as error:
        sys.exit(str(error))
    corpus.write_files(both, inputs)
    if arguments.keep:
        return keep(program, name, found, inputs, committed)
    return fuzz(program, name, arguments.seconds, found, inputs)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
