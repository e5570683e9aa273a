"""What the tests of musterrun share: a launcher as a process, and the search for what it left."""

import os
import re
import signal
import subprocess
import tempfile
import time
import unittest
import uuid
from pathlib import Path

PROGRAMS = {}  # name -> path, as Meson gives them
KILL_TIMEOUT_S = 60
OUTER = re.compile(
    "MUSTER(?!_TEST_|_PLANTED)|PET_|RANK$|WORLD_SIZE$|LOCAL_|NODE_RANK|MASTER_|CUDA_")

# As from a terminal, also if these tests run under nohup or behind a shell's "&".
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


def parents():
    """Of all processes: pid -> the parent's."""
    found = {}
    for folder in os.listdir("/proc"):
        if folder.isdigit():
            try:
                stat = Path("/proc", folder, "stat").read_text(encoding="utf-8", errors="replace")
                found[int(folder)] = int(stat.rsplit(")", 1)[1].split()[1])
            except OSError:
                continue  # it has ended
    return found


def children_of(pid):
    return [child for child, parent in parents().items() if parent == pid]


class JobCase(unittest.TestCase):
    """A test whose launchers carry a mark, by which all of their processes are found."""

    def setUp(self):
        self.mark = f"MUSTERRUN_TEST={uuid.uuid4().hex}"
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="musterrun-test-")))
        self.own = self.folder / "tmp"
        self.own.mkdir()
        self.launchers = []
        self.is_swept_later = False  # what a launcher and its guardian left that died together

    def tearDown(self):
        for launcher in self.launchers:
            if launcher.poll() is None:
                launcher.kill()
            launcher.wait()
            for pipe in (launcher.stdin, launcher.stdout, launcher.stderr):
                if pipe is not None:
                    pipe.close()
        left = self.await_nothing_left(10)
        for pid, command in left:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(left, [], "processes are left")
        if self.is_swept_later:
            self.run_job("-n", 1, "true")
        self.assertEqual(list(self.own.iterdir()), [], "temporary files are left")

    def environment(self, **more):
        """Without what an outer launcher or a person has set."""
        base = {name: value for name, value in os.environ.items()
                if not OUTER.match(name)}
        name, value = self.mark.split("=")
        return {**base, name: value, "TMPDIR": str(self.own), "LOCAL_WORLD_SIZE": "2", **more}

    def start(self, *arguments, env=None, **options):
        launcher = subprocess.Popen(
            [PROGRAMS["musterrun"], *map(str, arguments)],
            env=self.environment(**(env or {})), text=True,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
               **options})
        self.launchers.append(launcher)
        return launcher

    def run_job(self, *arguments, env=None, **options):
        """returns  exit code, standard output, standard error"""
        launcher = self.start(*arguments, env=env, **options)
        out, err = launcher.communicate(timeout=KILL_TIMEOUT_S)
        return launcher.returncode, out, err

    def sh(self, script, *options, **more):
        """Runs a script of the shell as each of two ranks."""
        return self.run_job(*options, "sh", "-c", script, **more)

    def processes(self):
        """Those with the mark, with their command lines."""
        found = []
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit() or int(folder.name) == os.getpid():
                continue
            try:
                if self.mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found.append((int(folder.name), command))
            except (OSError, UnicodeDecodeError):
                continue  # it has ended
        return found

    def await_nothing_left(self, timeout_s):
        """returns  what is left when the time is over"""
        end = time.monotonic() + timeout_s
        while (left := self.processes()) and time.monotonic() < end:
            time.sleep(0.02)
        return left

    def await_file(self, name, timeout_s=KILL_TIMEOUT_S):
        """A file that a rank writes when it is where the test wants it."""
        end = time.monotonic() + timeout_s
        path = self.folder / name
        while not path.exists():
            self.assertLess(time.monotonic(), end, f"no {name} was written")
            time.sleep(0.01)
        return path

    def await_files(self, *names):
        for name in names:
            self.await_file(name)
