"""Runs the tests of others, unchanged, on Muster: for compat.py.

Their constructor of a store or a group is replaced by one of Muster's, in a plug-in: stand_in.py.
Each test passed, failed, or is left out for a reason.
"""

import json
import os
import select
import subprocess
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
LOG = FOLDER.parent.parent / "build" / "compat-others.log"
TEST_LIMIT_S = 120
TORCHS_FILE = "test/distributed/test_store.py"

# What a test asks that Muster does not have, should it fail. Of the name without its class.
LEFT_OUT = {
    "test_address_already_in_use": "about the socket of torch's own server",
    "test_take_over_listen_socket": "Muster's server in a process takes over no socket",
    "test_repr": "about the words of torch's own client",
    "test_client_connect": "about the bytes of torch's own client; `compat` has what they say",
}


class Tally:
    def __init__(self, title):
        self.title = title
        self.counts = {"passed": 0, "failed": 0, "left out": 0}
        self.beside_count = 0
        self.failures = []

    def take(self, test, outcome, why, is_ours):
        """Notes how a test ended, and says so where it did not pass."""
        if outcome == "failed" and test.rpartition(".")[2] in LEFT_OUT:
            outcome, why = "left out", LEFT_OUT[test.rpartition(".")[2]]
        elif not is_ours and outcome != "failed":
            self.beside_count += 1
            return
        elif outcome == "skipped":
            outcome = "left out"
        self.counts[outcome] += 1
        if outcome == "left out":
            print(f"left out: {test}: {why}", flush=True)
        elif outcome == "failed":
            self.failures.append(test)
            print(f"failed: {test}\n{why}", flush=True)

    def tell(self):
        told = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        print(f"{self.title}: {told}; {self.beside_count} make no store", flush=True)


class Told:
    """Lines of JSON of a process, with a limit for each."""

    def __init__(self, process):
        self.process = process
        self.rest = b""

    def next(self, limit_s):
        """None: it has said nothing more."""
        until = time.monotonic() + limit_s
        while b"\n" not in self.rest:
            remaining = max(0.0, until - time.monotonic())
            if not select.select([self.process.stdout], [], [], remaining)[0]:
                return None
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                return None
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)


def torch_tests(python, source, title, package):
    """Runs torch's own tests of stores. A test that does not end is ended, and the others go on.

    returns  whether none has failed
    """
    tally, done = Tally(title), []
    file = Path(source, TORCHS_FILE).resolve()
    while not run_until_stuck(python, file, tally, done, package):
        pass
    tally.tell()
    return not tally.failures


def run_until_stuck(python, file, tally, done, package):
    """returns  whether all tests have been run"""
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1",
                   "PYTHONPATH": os.pathsep.join(map(str, package))}
    with open(LOG, "a", encoding="utf-8") as log:
        process = subprocess.Popen(
            [python, FOLDER / "torch_tests.py", file, *done], stdout=subprocess.PIPE, stderr=log,
            env=environment)
    told, running = Told(process), None
    try:
        while (line := told.next(TEST_LIMIT_S)) is not None:
            if "end" in line:
                return True
            if "begins" in line:
                running = line["begins"]
                continue
            done.append(line["test"])
            tally.take(line["test"], line["outcome"], line["why"], line["is_ours"])
            running = None
    finally:
        process.kill()
        process.communicate()
    if running is None:
        tally.take("the file", "failed", f"cannot be run; see {LOG}", True)
        return True
    done.append(running)
    tally.take(running, "failed", f"not ended within {TEST_LIMIT_S} s, or its process died", True)
    return False


def tests_of_groups(script, python, source, times, package, sees_gpus=False):
    """Runs tests of vLLM's class of groups, vLLM's own or those of its users, each so many times.

    returns  whether none has failed
    """
    command = [python, FOLDER / script, Path(source).resolve(), str(times)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
                   "PYTHONPATH": os.pathsep.join(map(str, package))}
    if not sees_gpus:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    failed_count = None
    with open(LOG, "a", encoding="utf-8") as log, subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, env=environment, text=True) as process:
        for line in process.stdout:
            told = json.loads(line)
            failed_count = (failed_count or 0) + told["failed_count"]
            print(f"{told['test']}: {told['times'] - told['failed_count']} passed, "
                  f"{told['failed_count']} failed [{told['seconds']:.0f} s]", flush=True)
            for why in told["failures"]:
                print(why, flush=True)
    if process.returncode != 0 or failed_count is None:
        print(f"failed: {script} cannot be run; see {LOG}")
        return False
    return failed_count == 0
