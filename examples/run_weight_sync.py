"""Runs weight_sync with two servers of two slices; kills servers, the trainer and musterd, and
starts each again.

On NCCL's double one server's NCCL fails within a broadcast before that.

run_weight_sync.py WEIGHT_SYNC MUSTERD [ARGUMENT...]   The arguments go to the trainer and the
                                                       servers, such as `--device cuda`.
"""

import sys
import time

from weight_sync_job import SLICES, Job

STEPS_MAX = 100


class Run:
    def __init__(self, job):
        self.job = job
        self.version = 0

    @property
    def trainer(self):
        return self.job.running["trainer"]

    def servers(self):
        return [process for name, process in self.job.running.items()
                if name.startswith("server")]

    def begin_step(self):
        self.trainer.say("\n")

    def end_step(self):
        """On how many servers each slice is."""
        counts = []
        for index in SLICES:
            line, _ = self.trainer.expect("version ")
            version, said_index, count = (int(line.split()[at].rstrip(":")) for at in (1, 3, 5))
            if said_index != index or (index > 0 and version != self.version):
                sys.exit(f"slice {index} of version {self.version} was to come, not: {line}")
            if version <= self.version and index == 0:
                sys.exit(f"a version after {self.version} was to come, not: {line}")
            self.version = version
            counts.append(count)
        return counts

    def step_until(self, count):
        """Until all servers that live have the version: that many of each slice.

        returns  what each has said before it had it"""
        for _ in range(STEPS_MAX):
            self.begin_step()
            if self.end_step() == [count] * len(SLICES):
                break
            time.sleep(0.1)
        else:
            sys.exit(f"the slices do not come to {count} servers")
        return [process.expect(f"serves version {self.version},")[1] for process in self.servers()]

    def server_dies(self, delay_s):
        """Between two versions, or at this moment of one."""
        if delay_s is not None:
            self.begin_step()
            time.sleep(delay_s)
        for index in SLICES:
            self.job.kill(f"server-1-{index}")
        if delay_s is not None:
            self.end_step()
        self.step_until(1)
        for index in SLICES:
            self.job.start(f"server-1-{index}")
        self.step_until(2)

    def trainer_dies(self, delay_s):
        self.begin_step()
        time.sleep(delay_s)
        self.job.kill("trainer")
        self.job.start("trainer").expect("ready")
        self.step_until(2)

    def musterd_dies(self, delay_s):
        self.begin_step()
        time.sleep(delay_s)
        self.job.kill("musterd")
        self.job.start("musterd")
        self.end_step()
        self.step_until(2)

    def musterd_dies_between_versions(self):
        """The same processes meet again. Each waits 2 s for that, so a slow machine has some
        attempts."""
        for _ in range(5):
            self.job.kill("musterd")
            self.job.start("musterd")
            if all("keeps its communicator" in said for said in self.step_until(2)):
                return
        sys.exit("nobody keeps the communicator")


def run(job):
    # Its NCCL has an error once, while its sixth broadcast travels. Only NCCL's double reads it.
    faults = {"NCCL_DOUBLE_FAULTS": "collective:async=3+5*1"}
    for name in job.server_names:
        job.start(name, faults if name.startswith("server-1") else None)
    job.start("trainer").expect("ready")
    here = Run(job)
    here.step_until(2)
    here.server_dies(None)
    here.server_dies(0.03)
    here.trainer_dies(0.03)
    here.musterd_dies(0.02)
    here.musterd_dies_between_versions()
    here.server_dies(0)
    here.trainer_dies(0)
    # Whoever is back before its death is known waits for no more than that.
    job.kill("server-2-1")
    job.start("server-2-1")
    here.step_until(2)
    job.end()
    print(f"{here.version} versions, as promised")


def main():
    weight_sync, musterd, *arguments = sys.argv[1:]
    job = Job(weight_sync, musterd, 2, arguments)
    try:
        run(job)
    finally:
        job.stop()


main()
