"""Runs weight_sync with two servers of two slices, kills one, and starts it again.

On NCCL's double one server's NCCL fails within a broadcast before that.

run_weight_sync.py WEIGHT_SYNC [ARGUMENT...]   The arguments go to each process, such as
                                               `--device cuda`.
"""

import os
import queue
import subprocess
import sys
import threading
import time

SLICES = range(2)
PATIENCE_S = 60
STEPS_MAX = 100


class Process:
    """One process of the job; its lines of output come into a queue."""

    def __init__(self, name, arguments, environment=None):
        # Whoever shares a GPU needs another host's name each, for NCCL.
        environment = {**os.environ, "NCCL_HOSTID": name, **(environment or {})}
        self.name = name
        self.process = subprocess.Popen([*arguments, *sys.argv[2:]], text=True, env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))

    def expect(self, *beginnings):
        """The first line that begins so."""
        end = time.monotonic() + PATIENCE_S
        seen = []
        while True:
            try:
                line = self.lines.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                sys.exit(f"{self.name} does not say {beginnings}, but {seen}")
            seen.append(line)
            if line.startswith(beginnings):
                return line


class Job:
    def __init__(self):
        program = sys.argv[1]
        self.program = program
        self.trainer = Process("trainer", [program, "trainer"])
        self.address = self.trainer.expect("address").split()[1]
        self.servers = {}
        self.version = 0

    def start(self, rank, environment=None):
        self.servers[rank] = [
            Process(f"server-{rank}-{index}", [self.program, "server", self.address, "--rank",
                                               str(rank), "--slice", str(index)], environment)
            for index in SLICES]

    def kill(self, rank):
        for part in self.servers.pop(rank):
            part.process.kill()
            part.process.wait()

    def begin_step(self):
        self.version += 1
        self.trainer.process.stdin.write("\n")
        self.trainer.process.stdin.flush()

    def end_step(self):
        """On how many servers each slice is."""
        return [int(self.trainer.expect(f"version {self.version}: slice {index} on").split()[-2])
                for index in SLICES]

    def step_until(self, count):
        for _ in range(STEPS_MAX):
            self.begin_step()
            if self.end_step() == [count] * len(SLICES):
                return
            time.sleep(0.1)
        sys.exit(f"the slices do not come to {count} servers")

    def all_serve(self):
        for parts in self.servers.values():
            for part in parts:
                part.expect(f"serves version {self.version},")

    def end(self):
        self.trainer.process.stdin.close()
        parts = [self.trainer] + [part for parts in self.servers.values() for part in parts]
        for part in parts:
            if part.process.wait(timeout=PATIENCE_S) != 0:
                sys.exit(f"{part.name} ended with {part.process.returncode}")

    def stop(self):
        for part in [self.trainer] + [part for parts in self.servers.values() for part in parts]:
            part.process.kill()


def run(job):
    # Its NCCL has an error once, while its sixth broadcast travels. Only NCCL's double reads it.
    job.start(1, {"NCCL_DOUBLE_FAULTS": "collective:async=3+5*1"})
    job.start(2)
    job.trainer.expect("ready")
    job.begin_step()
    if job.end_step() != [2, 2]:
        sys.exit("the first version did not come to all")
    job.all_serve()
    # Between two versions, and at several moments of one.
    for delay_s in (None, 0, 0.01, 0.03):
        if delay_s is not None:
            job.begin_step()
            time.sleep(delay_s)
        job.kill(1)
        if delay_s is not None:
            job.end_step()
        job.step_until(1)
        job.all_serve()
        job.start(1)
        job.step_until(2)
        job.all_serve()
    job.end()
    print(f"{job.version} versions, as promised")


def main():
    job = Job()
    try:
        run(job)
    finally:
        job.stop()


main()
