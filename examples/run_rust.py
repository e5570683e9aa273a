"""Builds the example in Rust by plain rustc, and runs it as its text says.

run_rust.py SOURCE LIBRARY MUSTERD   RUSTC, or the first rustc that is found, is the compiler; where
                                     there is none, it says so and is skipped
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
PATIENCE_S = 60


def run_ranks(program, address, environment):
    ranks = [subprocess.Popen([program, address, str(rank), "2"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=environment)
             for rank in range(2)]
    try:
        return [(*rank.communicate(timeout=PATIENCE_S), rank.returncode) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()


def run_beside(musterd, program, environment):
    with subprocess.Popen([musterd, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE,
                          text=True) as server:
        try:
            for line in server.stderr:
                if found := re.search(r"127\.0\.0\.1:\d+", line):
                    return run_ranks(program, found[0], environment)
            sys.exit("musterd does not say where it listens")
        finally:
            server.kill()


def main():
    source, library, musterd = sys.argv[1:]
    rustc = os.environ.get("RUSTC") or shutil.which("rustc")
    if rustc is None:
        print("skipped: there is no rustc (Debian: rustc)")
        sys.exit(SKIPPED)
    folder = Path(library).parent
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    with tempfile.TemporaryDirectory() as built:
        program = Path(built, "quickstart")
        subprocess.run([rustc, "--edition=2021", "-D", "warnings", source, "-o", program,
                        "-L", folder, "-l", "muster-c"], check=True, timeout=PATIENCE_S * 3)
        for rank, (output, errors, status) in enumerate(run_beside(musterd, program, environment)):
            expected = f"rank {rank} of 2: model=muster-7b, with rank 0, rank 1\n"
            if status != 0 or output != expected or '"code":"not_found"' not in errors:
                sys.exit(f"rank {rank} ended with {status}: {output!r}, {errors!r}")


main()
