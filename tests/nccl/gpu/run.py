"""Runs the processes of a part, to their end or to its deadline, and says what they found."""

import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from found import SKIPPED, library_path

LOOKS_EVERY_S = 0.02
STARTS_AND_ENDS_S = 60  # beside the seconds of a part
REPEATS_PART = 0.7  # of the time that is left: the rest is for that
OTHERS_END_WITHIN_S = 20  # when a rank has failed
KILLED_WITHIN_S = 3
LOG_LINES = 8
TIME_IS_UP = "the time of the verb was up"

# Several ranks on one device: each is a host of its own for NCCL, so they talk by sockets.
SHARED_DEVICE = {"NCCL_MAX_CTAS": "2", "NCCL_MNNVL_ENABLE": "0", "NCCL_NET": "Socket",
                 "NCCL_NVLS_ENABLE": "0"}
ALWAYS = {"NCCL_DEBUG": "WARN", "NCCL_RAS_ENABLE": "0", "NCCL_SOCKET_IFNAME": "lo"}


class Child:
    """A process, and what it prints. Whoever ends it does so by its id."""

    def __init__(self, command, environment, folder, name):
        self.output = folder / f"{name}.out"
        self.errors = folder / f"{name}.err"
        with self.output.open("wb") as output, self.errors.open("wb") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=errors, env=environment)

    def lines(self):
        return self.output.read_text(errors="replace").splitlines()

    def log(self):
        """What it printed beside its findings, the last lines."""
        own = ("figure|", "fails|", "short|")
        lines = [line for line in self.lines() if not line.startswith(own)]
        lines += self.errors.read_text(errors="replace").splitlines()
        return [line for line in lines if line.strip()][-LOG_LINES:]

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)

    def end(self):
        self.kill()
        try:
            self.process.wait(KILLED_WITHIN_S)
        except subprocess.TimeoutExpired:
            print(f"process {self.process.pid} was killed and has not ended", flush=True)


class Place:
    """Where the programs are, on which machine they run, and until when."""

    def __init__(self, programs, machine, is_small, until):
        self.programs = programs
        self.machine = machine
        self.is_small = is_small
        self.until = until

    def left_s(self):
        return self.until - time.monotonic()

    def environment(self, ranks, rank=None, further=None, devices=0):
        """For ranks on so many devices; 0: on all that there are."""
        environment = {**ALWAYS, **os.environ, **(further or {})}
        environment.pop("NCCL_COMM_ID", None)
        if ranks > (devices or len(self.machine.devices)):
            environment = {**SHARED_DEVICE, **environment}
            if rank is not None:
                environment["NCCL_HOSTID"] = f"rank {rank}"
        named = filter(None, (self.machine.nccl_path, self.machine.cuda_path))
        environment["LD_LIBRARY_PATH"] = library_path(
            self.programs, *(os.path.dirname(path) for path in named))
        return environment


class Ranks:
    """The processes of a part, once: a server, and its ranks."""

    def __init__(self, place, part, seconds):
        self.place = place
        self.part = part
        self.seconds = seconds
        self.folder = Path(tempfile.mkdtemp(prefix="muster-gpu-"))
        self.children = []
        self.server = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        processes = [*self.children, *filter(None, [self.server])]
        for child in processes:
            child.kill()
        for child in processes:
            child.end()
        shutil.rmtree(self.folder)

    def start(self):
        program = self.place.programs / "nccl_gpu"
        ranks = self.part.ranks
        self.server = Child([program, "server"], self.place.environment(1), self.folder, "server")
        while not self.server.lines() and self.server.process.poll() is None:
            if self.place.left_s() <= 0:
                return
            time.sleep(LOOKS_EVERY_S)
        devices = self.part.on_devices or len(self.place.machine.devices)
        address = "".join(self.server.lines()[:1])
        settings = {**self.part.settings, **(self.part.small if self.place.is_small else {}),
                    "server": address, "mode": self.part.mode, "ranks": ranks,
                    "seconds": self.seconds, "nccl": self.place.machine.nccl_path,
                    "cuda": self.place.machine.cuda_path,
                    "ranks_of_device": -(-ranks // devices)}
        for rank in range(ranks):
            own = {**settings, "rank": rank, "device": rank % devices}
            command = [program, self.part.function,
                       *(f"{name}={value}" for name, value in own.items())]
            environment = self.place.environment(ranks, rank, self.part.environment, devices)
            self.children.append(Child(command, environment, self.folder, f"rank{rank}"))

    def wait(self):
        """Until all have ended, or there is no more time; True: they have."""
        until = min(self.place.until, time.monotonic() + self.seconds + STARTS_AND_ENDS_S)
        while time.monotonic() < until:
            codes = [child.process.poll() for child in self.children]
            if None not in codes:
                return True
            if any(code not in (None, 0) and rank not in self.part.dies
                   for rank, code in enumerate(codes)):
                until = min(until, time.monotonic() + OTHERS_END_WITHIN_S)
            time.sleep(LOOKS_EVERY_S)
        return False

    def found(self):
        """What fails, what was not run, the figures (the largest of all ranks), and whether time
        was up before all was done."""
        fails, not_run, figures, is_short, hung = [], [], {}, False, []
        for rank, child in enumerate(self.children):
            code = child.process.poll()
            for line in child.lines():
                kind, _, text = line.partition("|")
                if kind == "fails":
                    fails.append(f"rank {rank}: {text}")
                elif kind == "not_run":
                    not_run.append(text)
                elif kind == "short":
                    is_short = True
                elif kind == "figure":
                    name, value, unit = text.split("|")
                    known = figures.get(name, (float("-inf"), unit))
                    figures[name] = (max(known[0], float(value)), unit)
            wanted = -signal.SIGKILL if rank in self.part.dies else 0
            if code is None:
                hung.append(f"rank {rank}: it had not ended in time")
            elif code != wanted and code != SKIPPED and not fails:
                fails.append(f"rank {rank}: it ended with {code}")
        if hung and self.place.left_s() <= 0:
            not_run.append(TIME_IS_UP)
        elif not not_run:
            fails += hung
        return fails, not_run, figures, is_short


def run_once(place, part, seconds):
    with Ranks(place, part, seconds) as ranks:
        ranks.start()
        ranks.wait()
        fails, not_run, figures, is_short = ranks.found()
        if not ranks.children:
            not_run.append(TIME_IS_UP)
        children = [ranks.server, *ranks.children] if fails or TIME_IS_UP in not_run else []
        log = [line for child in children for line in child.log()]
        return fails, not_run, figures, is_short, log


def in_all(figures_of_runs):
    """The figures of several runs, as one."""
    if len(figures_of_runs) == 1:
        return {name: [value, unit] for name, (value, unit) in figures_of_runs[0].items()}
    all_of = {"times": [len(figures_of_runs), ""]}
    for name in dict.fromkeys(name for figures in figures_of_runs for name in figures):
        values = [figures[name][0] for figures in figures_of_runs if name in figures]
        unit = next(figures[name][1] for figures in figures_of_runs if name in figures)
        seen = "" if len(values) == len(figures_of_runs) else f", in {len(values)} of them"
        all_of[f"{name}{seen}, median"] = [statistics.median(values), unit]
        all_of[f"{name}, longest"] = [max(values), unit]
    return all_of


def run_part(place, part):
    """A row of the results."""
    row = {"key": part.key, "check": part.check, "outcome": "not_run", "why": "", "figures": {},
           "is_short": False, "log": []}
    if len(place.machine.devices) < part.devices:
        row["why"] = f"there is {len(place.machine.devices)} GPU"
        return row
    repeat = part.small.get("repeat", part.repeat) if place.is_small else part.repeat
    began = time.monotonic()
    runs = []
    while len(runs) < repeat:
        seconds = int(min(part.seconds, place.left_s() * REPEATS_PART))
        if seconds <= 0 or time.monotonic() > began + part.seconds:
            break
        fails, not_run, figures, is_short, log = run_once(place, part, seconds)
        if not fails and not_run == [TIME_IS_UP] and runs:
            break
        runs.append(figures)
        row["is_short"] |= is_short
        row["outcome"] = "fails" if fails else "not_run" if not_run else "holds"
        if fails or not_run:
            after = f" (after {len(runs) - 1} times that were right)" if len(runs) > 1 else ""
            row.update(log=log, why="; ".join(dict.fromkeys(fails or not_run)) + after)
            break
    row["is_short"] |= row["outcome"] == "holds" and len(runs) < repeat
    if runs:
        row["figures"] = in_all(runs)
    else:
        row["why"] = TIME_IS_UP
    row["seconds"] = round(time.monotonic() - began, 1)
    return row
