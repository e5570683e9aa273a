"""Runs what is long by nature, part by part, and keeps the results of each commit.

deep.py [PART...]   all parts, or these; a step that has passed at this commit is not run again
deep.py --list      names the parts
deep.py --table     prints what has been run at this commit, and runs nothing

A part takes at most 40 minutes on two processors, and its steps can be stopped and gone on with.
What a step prints is kept in build/deep/COMMIT/PART-STEP.log. With changes that are not committed
COMMIT tells of them, too: what was run on other changes counts no more.
"""

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STEP_LIMIT_S = 2400
SEEDS_PER_STEP = 10_000


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def state_of_tree():
    """The commit, and a mark of what is not committed."""
    commit = git("rev-parse", "--short=12", "HEAD").decode().strip()
    changes = git("diff", "HEAD")
    for name in git("ls-files", "--others", "--exclude-standard", "-z").split(b"\0"):
        if name:
            changes += name + (ROOT / os.fsdecode(name)).read_bytes()
    return commit + (f"+{hashlib.sha256(changes).hexdigest()[:8]}" if changes else "")


class Part:
    """steps  name -> command line of a shell, in the root of the project"""

    def __init__(self, what, steps):
        self.what = what
        self.steps = steps


def parts(commit):
    # Each commit has seeds of its own, so that new ones are tried.
    first_seed = int(commit[:6], 16) * SEEDS_PER_STEP * 10
    seeds = {}
    for step in range(10):
        first = first_seed + step * SEEDS_PER_STEP + 1
        seeds[str(step + 1)] = (
            "tools/dev build tests/sim/simulate && build/dev/tests/sim/simulate --jobs $(nproc) "
            f"--seeds {first}-{first + SEEDS_PER_STEP - 1}")
    return {
        "seeds": Part("100,000 seeds of the simulation that no other commit has", seeds),
        "zoo": Part("every planted bug is found by the simulation", {
            "all": "tools/dev build tests/sim/sim_zoo && build/dev/tests/sim/sim_zoo"}),
        "asan": Part("all tests with ASan and UBSan, with all repetitions", {
            "all": "MUSTER_TEST_SCALE=1 .ci/run asan"}),
        "tsan": Part("all tests of what has threads with ThreadSanitizer, with all repetitions", {
            "all": "MUSTER_TEST_SCALE=1 .ci/run tsan"}),
        "failures": Part("every allocation and every socket call fails once", {
            "all": "MUSTER_TEST_SCALE=20 .ci/run failures"}),
        "faults": Part("every fault in every phase four times, with the times that users have", {
            str(seed): "tools/dev faults --times default --parallel 32 --runs 335 "
                       f"--seed {seed}" for seed in range(1, 5)}),
        "fuzz": Part("every fuzzer for 400 s", {
            str(step): "tools/dev fuzz all 100" for step in range(1, 5)}),
        "stress": Part("twenty times the stress, five times what has real sockets or processes", {
            "stress": "MUSTER_TEST_SCALE=20 tools/dev test --suite stress",
            "repeated": "tools/dev test --suite net --suite e2e --suite nccl --suite gloo "
                        "--suite examples --repeat 5"}),
        "includes": Part("every source file compiled by itself, by clang", {
            "all": ".ci/run includes"}),
    }


class Records:
    def __init__(self, state):
        self.folder = ROOT / "build" / "deep" / state

    def path(self, part, step, suffix):
        return self.folder / f"{part}-{step}.{suffix}"

    def read(self, part, step):
        path = self.path(part, step, "json")
        return json.loads(path.read_text()) if path.exists() else None

    def write(self, part, step, record):
        self.path(part, step, "json").write_text(json.dumps(record) + "\n")


def run(records, part, step, command):
    """Whether the step has passed. Whoever ends this program ends the step."""
    records.folder.mkdir(parents=True, exist_ok=True)
    log = records.path(part, step, "log")
    print(f"{part} {step}: {command}", flush=True)
    began = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(["bash", "-c", command], cwd=ROOT, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            status = process.wait(STEP_LIMIT_S)
        except subprocess.TimeoutExpired:
            status = f"no end in {STEP_LIMIT_S} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
    seconds = round(time.monotonic() - began)
    lines = log.read_text(errors="replace").strip().splitlines()
    records.write(part, step, {"status": status, "seconds": seconds})
    if status != 0:
        print(f"FAILED ({status}), see {log.relative_to(ROOT)}:", *lines[-15:], sep="\n  ",
              flush=True)
    return status == 0


def table(state, all_parts, records):
    yield f"at {state}"
    yield f"| {'part':<9} | {'passed':>8} | {'failed':>6} | {'minutes':>7} | what |"
    yield f"|{'-' * 11}|{'-' * 10}|{'-' * 8}|{'-' * 9}|---|"
    for name, part in all_parts.items():
        done = [record for step in part.steps if (record := records.read(name, step))]
        passed = sum(record["status"] == 0 for record in done)
        minutes = sum(record["seconds"] for record in done) / 60
        yield (f"| {name:<9} | {passed:>3} of {len(part.steps):>2}"
               f"| {len(done) - passed:>6} | {minutes:>7.1f} | {part.what} |")


def main():
    state = state_of_tree()
    all_parts = parts(state)
    parser = argparse.ArgumentParser(prog="tools/dev deep", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--list", action="store_true", help="names the parts")
    parser.add_argument("--table", action="store_true", help="prints what has been run")
    options = parser.parse_args()
    unknown = [name for name in options.parts if name not in all_parts]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; see --list")
    if options.list:
        for name, part in all_parts.items():
            print(f"{name:<10} {part.what}; steps: {len(part.steps)}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    records = Records(state)
    failed = 0
    for name in [] if options.table else options.parts or all_parts:
        for step, command in all_parts[name].steps.items():
            record = records.read(name, step)
            if record and record["status"] == 0:
                print(f"{name} {step}: has passed, in {record['seconds']} s")
            elif not run(records, name, step, command):
                failed += 1
    print(*table(state, all_parts, records), sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
