"""Runs on GPUs what the tests of communicators run on doubles, measures, and prints one table.

gpu.py BUILD [--quick]   BUILD has tests/nccl/nccl_acceptance and bench/communicators.
                         NCCL_LIBRARY is the path of libnccl.so.2, where the dynamic linker does
                         not find it. --quick: with less to measure.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree

SKIPPED = 77
TIMEOUT_S = 540


def hardware():
    """The GPUs' names, one for each."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    said = subprocess.run([tool, "--query-gpu=name,driver_version", "--format=csv,noheader"],
                          text=True, capture_output=True, check=False, timeout=60)
    return said.stdout.splitlines()


def checks(program, environment):
    """Rows of the test cases, and whether all hold; none where they were skipped."""
    ended = subprocess.run([program, "--reporters=junit"], text=True, capture_output=True,
                           check=False, timeout=TIMEOUT_S, env=environment)
    if ended.returncode == SKIPPED:
        print(ended.stdout + ended.stderr, end="")
        sys.exit(SKIPPED)
    begin = ended.stdout.find("<?xml")
    if begin < 0:
        sys.exit(f"{program} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    cases = list(xml.etree.ElementTree.fromstring(ended.stdout[begin:]).iter("testcase"))
    rows = [(case.get("name"), "holds" if case.find("failure") is None else "DOES NOT HOLD",
             f"{float(case.get('time')):.1f} s") for case in cases]
    if ended.returncode != 0:
        print(ended.stdout[begin:], ended.stderr, sep="\n", file=sys.stderr)
    return rows, bool(cases) and ended.returncode == 0


def measured(program, environment, *arguments):
    """What a benchmark prints, a row for each line."""
    said = subprocess.run([program, *arguments], text=True, capture_output=True, check=True,
                          timeout=TIMEOUT_S, env=environment).stdout
    return [(f"`communicators {' '.join(arguments)}`", " ".join(line.split()), "")
            for line in said.splitlines()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    names = hardware()
    environment = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_NET": "Socket", "NCCL_MAX_CTAS": "2",
                   "NCCL_RAS_ENABLE": "0", "NCCL_NVLS_ENABLE": "0", "NCCL_MNNVL_ENABLE": "0",
                   "MUSTER_BENCH_DEVICES": str(max(1, len(names))), **os.environ}
    if "NCCL_LIBRARY" in os.environ:
        folders = [str(pathlib.Path(os.environ["NCCL_LIBRARY"]).parent),
                   os.environ.get("LD_LIBRARY_PATH", "")]
        environment["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))
    rows, all_hold = checks(arguments.build / "tests/nccl/nccl_acceptance", environment)
    benchmark = arguments.build / "bench/communicators"
    groups = ["3", "2", "2"] if arguments.quick else ["4", "2", "5"]
    bytes_max = "65536" if arguments.quick else str(256 << 20)
    rows += measured(benchmark, environment, "creation", *groups)
    rows += measured(benchmark, environment, "bandwidth", "2", bytes_max)
    print("\n".join(names) or "No nvidia-smi here.")
    print("\n| what | outcome | time |\n|---|---|---:|")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    sys.exit(0 if all_hold else 1)


main()
