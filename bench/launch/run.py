"""Measures what a launcher costs, beside torchrun and a bare fork and exec, in turns.

run.py BUILD [--tiny | --quick] [--peers] [--folder FOLDER] [QUESTION...]

`tools/dev bench --launch` runs it.
"""

import functools
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import turns  # pylint: disable=wrong-import-position

RANKS = {"tiny": 4, "quick": 64, "full": 64}
IDLE_S = {"tiny": 0.5, "quick": 10, "full": 60}
PATIENCE_S = 120  # of one launcher
# Debian's torchrun 1.13 does not take its own default, "0", for these two.
OF_TORCHRUN = ["--no_python", "--redirects", "0:1", "--tee", "0:1", "--monitor_interval", "0.1"]


class Job:
    """A launcher with ranks that report through a FIFO."""

    def __init__(self, folder, extent):
        self.ranks, self.idle_s = RANKS[extent], IDLE_S[extent]
        self.fifo = Path(folder, "reports")
        self.hold = Path(folder, "hold")
        for path in (self.fifo, self.hold):
            os.mkfifo(path)
        # Read and written, so that neither end ever closes.
        self.reports = os.open(self.fifo, os.O_RDWR)
        self.holds = os.open(self.hold, os.O_RDWR)
        self.launcher = self.timer = None
        self.rest = b""

    def start(self, command):
        self.launcher = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                         start_new_session=True)
        self.timer = threading.Timer(PATIENCE_S, self.launcher.kill)
        self.timer.start()

    def await_reports(self, count, attempt=0):
        """Raises TimeoutError where the launcher has ended before."""
        came = 0
        while came < count:
            if self.launcher.poll() is not None and not self.has_more():
                raise TimeoutError(f"{came} of {count} ranks have reported, then it ended with "
                                   f"{self.launcher.returncode}")
            if not self.has_more(0.2):
                continue
            *lines, self.rest = (self.rest + os.read(self.reports, 1 << 16)).split(b"\n")
            came += sum(int(line.split()[0]) == attempt for line in lines)

    def has_more(self, patience_s=0.0):
        return bool(select.select([self.reports], [], [], patience_s)[0])

    def end(self):
        """returns  its exit code"""
        self.launcher.wait()
        self.timer.cancel()
        return self.launcher.returncode

    def close(self):
        if self.launcher.poll() is None:
            self.launcher.send_signal(signal.SIGTERM)
        self.end()
        for descriptor in (self.reports, self.holds):
            os.close(descriptor)


def cpu_s():
    """Of all processes that have ended, and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def start(job, command):
    before, began = cpu_s(), time.monotonic()
    job.start(command(job.fifo))
    job.await_reports(job.ranks)
    reported = time.monotonic()
    if job.end() != 0:
        raise TimeoutError(f"it ended with {job.launcher.returncode}")
    ended = time.monotonic()
    return {"reported_ms": (reported - began) * 1e3, "ended_ms": (ended - began) * 1e3,
            "cpu_ms": (cpu_s() - before) * 1e3}


def restart(job, command):
    job.start(command("--max_restarts=1", job.fifo, job.hold))
    job.await_reports(job.ranks)
    time.sleep(0.2)  # all of them wait now
    began = time.monotonic()
    os.write(job.holds, b"!")
    job.await_reports(job.ranks, attempt=1)
    again = time.monotonic()
    if job.end() != 0:
        raise TimeoutError(f"it ended with {job.launcher.returncode}")
    return {"again_ms": (again - began) * 1e3}


def processor_ns(pid):
    """Of all threads that it has now."""
    return sum(int(Path(task, "schedstat").read_text(encoding="ascii").split()[0])
               for task in Path("/proc", str(pid), "task").iterdir())


def children(pid):
    return [int(child) for task in Path("/proc", str(pid), "task").iterdir()
            for child in Path(task, "children").read_text(encoding="ascii").split()]


def idle(job, command):
    job.start(command(job.fifo, job.hold))
    job.await_reports(job.ranks)
    time.sleep(1)
    # The launcher, and of musterrun its guardian, whose children the ranks are.
    own = [job.launcher.pid, *(child for child in children(job.launcher.pid) if children(child))]
    before = sum(processor_ns(pid) for pid in own)
    time.sleep(job.idle_s)
    used_s = (sum(processor_ns(pid) for pid in own) - before) / 1e9
    return {"cpu_s_per_hour": used_s / job.idle_s * 3600}


MEASURES = {"start_ranks": start, "restart_ranks": restart, "idle_ranks": idle}


def subjects(asked, question):
    """Name and command of each, which takes options and the arguments of the child."""
    ranks = str(RANKS[asked.extent])
    child = str(Path(asked.build, "bench", "launched_child"))

    def of_launcher(*launcher):
        def command(*arguments):
            options = [word for word in arguments if str(word).startswith("--")]
            words = [str(word) for word in arguments if word not in options]
            return [*launcher, *options, child, *words]
        return command

    yield "musterrun", of_launcher(str(Path(asked.build, "tools", "musterrun")), "-n", ranks)
    if question == "start_ranks":
        yield "bare", of_launcher(str(Path(asked.build, "bench", "bare_launcher")), ranks)
    if asked.peers:
        yield "torchrun", of_launcher(asked.python, "-m", "torch.distributed.run", *OF_TORCHRUN,
                                      "--nproc_per_node", ranks)


def measure(found, asked, question, subject, command):
    with tempfile.TemporaryDirectory() as folder:
        job = Job(folder, asked.extent)
        try:
            values = MEASURES[question](job, command)
        except TimeoutError as error:
            return found.cannot(question, f"{subject}: {error}")
        finally:
            job.close()
    found.add({"question": question, "parameters": {"ranks": job.ranks}, "subject": subject,
               "values": values})


def main():
    asked = turns.arguments(__doc__, tuple(MEASURES))
    found = turns.Found("musterrun", asked)
    for question in asked.questions or MEASURES:
        found.take_turns(question, [
            functools.partial(measure, found, asked, question, subject, command)
            for subject, command in subjects(asked, question)],
            count=1 if question == "idle_ranks" else None)  # a minute is long
    return found.report()


if __name__ == "__main__":
    sys.exit(main())
