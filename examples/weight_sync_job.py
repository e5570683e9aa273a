"""The processes of one run of weight_sync: musterd, the trainer, and the servers of each slice.

They are killed and started again, by name: "musterd", "trainer", "server-1-0" (server 1, slice 0).
All die with this program.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
PATIENCE_S = 60
SLICES = range(2)
BEGAN = time.monotonic()


def tell(what):
    print(f"{time.monotonic() - BEGAN:8.3f} {what}", file=sys.stderr, flush=True)


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """A process whose lines of output are kept, each with the time at which it came. Its errors are
    passed on, with that time and its name."""

    def __init__(self, name, command, environment=None):
        self.name = name
        self.began = time.monotonic()
        self.lines = []
        self.read_count = 0
        self.came = threading.Condition()
        self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        preexec_fn=die_with_parent,
                                        env={**os.environ, **(environment or {})})
        threading.Thread(target=self.read, daemon=True).start()
        threading.Thread(target=self.read_errors, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with self.came:
                self.lines.append((time.monotonic(), line.rstrip("\n")))
                self.came.notify_all()

    def read_errors(self):
        for line in self.process.stderr:
            tell(f"{self.name}: {line.rstrip()}")

    def new_lines(self):
        """Those that nobody has asked for yet."""
        with self.came:
            lines = self.lines[self.read_count:]
            self.read_count = len(self.lines)
        return lines

    def expect(self, beginning):
        """The next line that begins so, and those that came before it."""
        end = time.monotonic() + PATIENCE_S
        before = []
        with self.came:
            while True:
                for _, line in self.lines[self.read_count:]:
                    self.read_count += 1
                    if line.startswith(beginning):
                        return line, before
                    before.append(line)
                if not self.came.wait(end - time.monotonic()):
                    sys.exit(f"{self.name} does not say {beginning!r}, but {before[-10:]}")

    def say(self, line):
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has just been killed

    def kill(self):
        self.process.kill()
        self.process.wait()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass


class Job:
    """server_count  servers, each with a process for each slice
    arguments     of the trainer and the servers, such as ["--device", "cuda"]"""

    def __init__(self, weight_sync, musterd, server_count, arguments, grace_s=2):
        self.weight_sync = weight_sync
        self.musterd = [musterd, "--log-level", "error", "--grace", f"{grace_s}s"]
        self.arguments = arguments
        self.server_names = [f"server-{server}-{index}" for server in range(1, server_count + 1)
                             for index in SLICES]
        self.running = {}
        self.address = "127.0.0.1:0"
        self.start("musterd")

    def start(self, name, environment=None):
        if name == "musterd":
            process = Process(name, [*self.musterd, "--listen", self.address])
            beginning = "musterd listening on "
            self.address = process.expect(beginning)[0].removeprefix(beginning)
        else:
            role = ["trainer", self.address, "--slices", str(len(SLICES))]
            if name != "trainer":
                role = ["server", self.address, "--slice", name.split("-")[2]]
            # Whoever shares a GPU needs another host's name each, for NCCL.
            environment = {"NCCL_HOSTID": name, **(environment or {})}
            process = Process(name, [self.weight_sync, *role, *self.arguments], environment)
        self.running[name] = process
        return process

    def kill(self, name):
        self.running.pop(name).kill()

    def end(self):
        """The trainer's input ends; all end in order, and musterd is stopped."""
        self.running["trainer"].process.stdin.close()
        for name, process in self.running.items():
            if name == "musterd":
                continue
            code = process.process.wait(timeout=PATIENCE_S)
            if code != 0:
                sys.exit(f"{name} ended with {code}")
        self.running["musterd"].process.terminate()
        self.running["musterd"].process.wait(timeout=PATIENCE_S)

    def stop(self):
        for name in list(self.running):
            self.kill(name)
