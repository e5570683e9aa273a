"""Runs what takes too long for CI, part by part, and keeps the results of each commit.

tools/dev deep [PART...]   all parts, or these, but no step that has passed at this commit
tools/dev deep --list      names the parts
tools/dev deep --table     prints what has been run at this commit, and runs nothing

A part takes at most 40 minutes on two processors. One that was stopped is resumed at its next step.
What a step prints is kept in build/deep/COMMIT/PART-STEP.log. Uncommitted changes add a hash to
COMMIT; results of other changes do not count.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tree_state import state_of_tree

ROOT = Path(__file__).resolve().parent.parent
STEP_LIMIT_S = 2400
SEEDS_PER_STEP = 10_000
SEED_STEPS = 20
JOB_SEEDS = 2_000_000
ENDS_WITHIN_S = 60


def tests_at(scale):
    """The tests at another scale than that of `tools/dev test`."""
    return f"tools/dev build && MUSTER_TEST_SCALE={scale} meson test -C build/dev"


class Part:
    """steps  name -> command line of a shell, in the root of the project"""

    def __init__(self, what, steps):
        self.what = what
        self.steps = steps


def parts(commit):
    # Each commit has seeds of its own, so that new ones are tried.
    first_seed = int(commit[:6], 16) * SEEDS_PER_STEP * SEED_STEPS
    seeds = {}
    for step in range(SEED_STEPS):
        first = first_seed + step * SEEDS_PER_STEP + 1
        seeds[str(step + 1)] = (
            "tools/dev build tests/sim/simulate && build/dev/tests/sim/simulate --jobs $(nproc) "
            f"--seeds {first}-{first + SEEDS_PER_STEP - 1}")
    seeds["job"] = (
        "tools/dev build tests/sim/simulate && build/dev/tests/sim/simulate --of job "
        f"--jobs $(nproc) --seeds {first_seed + 1}-{first_seed + JOB_SEEDS}")
    doubles = "tests/nccl/doubles"
    build_of_weights = "tools/dev build tools/musterd examples/weight_sync"
    kill_weights = ("/usr/bin/python3 examples/kill_weight_sync.py build/dev/examples/weight_sync "
                    f"build/dev/tools/musterd --seed {int(commit[:6], 16)} --slice-bytes 4000000")
    return {
        "seeds": Part("seeds of the commit: 200,000 of the server, 2,000,000 of jobs", seeds),
        "zoo": Part("every planted bug is found", {
            page.stem: f"tools/dev zoo {page.stem}"
            for page in sorted(ROOT.glob("tests/zoo/*.txt"))}),
        "viewers": Part("what 10 viewers of 10,240 ranks cost the server, and what strangers do", {
            "cost": "tools/dev build tools/musterd tests/http/http_crowd && "
                    "/usr/bin/python3 tests/http/cost.py build/dev",
            "strangers": "tools/dev build tools/musterd tests/http/http_crowd && "
                         "/usr/bin/python3 tests/http/strangers.py build/dev"}),
        "asan": Part("all tests with ASan and UBSan, with all repetitions", {
            "all": "MUSTER_TEST_SCALE=1 .ci/run asan"}),
        "tsan": Part("all tests of what has threads with ThreadSanitizer, with all repetitions", {
            "all": "MUSTER_TEST_SCALE=1 .ci/run tsan"}),
        "failures": Part("every allocation and every socket call fails once", {
            "all": "MUSTER_TEST_SCALE=20 .ci/run failures"}),
        "faults": Part("every fault in every phase four times, with the times that users have, and "
                       "once by TLS", {
            **{str(seed): f"tools/dev faults --times default --parallel 32 --seed {seed}"
               for seed in range(1, 5)},
            "tls": "tools/dev faults --times default --parallel 32 --tls"}),
        "security": Part("a million forged flights and records, a cut at each byte, each "
                         "allocation of OpenSSL", {
            "forged": f"{tests_at(200)} net_tls_forged -t 100",
            "timing": "tools/dev build tests/e2e_tls_tests && MUSTER_TEST_SCALE=100 "
                      "build/dev/tests/e2e_tls_tests -tc='an id*,a namespace without*'",
            "path": f"{tests_at(20)} e2e_path -t 20",
            "others": f"{tests_at(1)} failures_handshake e2e_secrets e2e_tls "
                      "e2e_door e2e_door_of_musterd net_tls_stream unit_auth stress_reloads"}),
        "page": Part("updates of 10,240 ranks in Chromium, each within 50 ms", {
            "speed": "tools/dev page --speed 120"}),
        "hostile": Part("every attack in full size: also the times of others hold", {
            "all": "tools/dev hostile --times"}),
        "fuzz": Part("every fuzzer for 400 s", {
            str(step): "tools/dev fuzz all 100" for step in range(1, 5)}),
        "stress": Part("twenty times the stress, five times what has sockets or processes", {
            "stress": f"{tests_at(20)} --suite stress -t 8",
            "repeated": f"{tests_at(1)} --suite net --suite e2e --suite nccl --suite gloo "
                        "--suite examples --repeat 5 -t 4"}),
        "weights": Part("200 processes of a weight sync are killed on Gloo, 100 on NCCL's double", {
            "gloo": f"{build_of_weights} && {kill_weights} --kills 200",
            "nccl": f"{build_of_weights} {doubles}/libnccl.so.2 {doubles}/libcuda.so.1 && "
                    f"LD_LIBRARY_PATH=build/dev/{doubles} NCCL_SOCKET_IFNAME=lo "
                    f"CUDA_DOUBLE_DEVICES=1 {kill_weights} --kills 100 --device cuda"}),
        "python": Part("the Python tests with 3.11, and with the Python of newer Debian releases", {
            "3.11": f"{tests_at(1)} --suite python && tools/dev test --torch",
            "3.13": "tools/python_root.sh trixie",
            "3.14": "tools/python_root.sh forky"}),
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


def end(process):
    """Ends the step and all that it has started in its process group; `.ci/run` passes it on."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run(state, records, part, step, command):
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
                end(process)
    if state_of_tree() != state:
        sys.exit(f"tools/dev deep: files have changed while {part} {step} ran; nothing is recorded")
    seconds = round(time.monotonic() - began)
    records.write(part, step, {"status": status, "seconds": seconds})
    if status != 0:
        lines = log.read_text(errors="replace").strip().splitlines()
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
        yield (f"| {name:<9} | {passed:>2} of {len(part.steps):>2} "
               f"| {len(done) - passed:>6} | {minutes:>7.1f} | {part.what} |")


def run_parts(chosen, state, all_parts):
    records = Records(state)
    failed = 0
    for name in chosen:
        for step, command in all_parts[name].steps.items():
            record = records.read(name, step)
            if record and record["status"] == 0:
                print(f"{name} {step}: has passed, in {record['seconds']} s")
            elif not run(state, records, name, step, command):
                failed += 1
    print(*table(state, all_parts, records), sep="\n")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(prog="tools/dev deep", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--list", action="store_true", help="names the parts")
    parser.add_argument("--table", action="store_true", help="prints what has been run")
    options = parser.parse_args()
    names = list(parts("000000"))
    unknown = [name for name in options.parts if name not in names]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; see --list")
    if options.list:
        for name, part in parts("000000").items():
            print(f"{name:<10} {part.what}; steps: {len(part.steps)}")
        return 0
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    state = state_of_tree()
    chosen = [] if options.table else options.parts or names
    try:
        return run_parts(chosen, state, parts(state))
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here")
        return 130


if __name__ == "__main__":
    sys.exit(main())
