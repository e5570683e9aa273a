"""What a case has: a server with two ports for clients of TCPStore, and clients of torch."""

import datetime
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist

HOST = "127.0.0.1"
PATIENCE_S = 20
TESTS = Path(__file__).resolve().parent.parent
TORCHS_SERVER = TESTS.parent / "bench" / "tcpstore_server.py"
SCRIPT = TESTS / "musterrun" / "torch_script.py"
NAMESPACES = ("one", "two")
VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split("a")[0].split(".")[:2])
if VERSION < (2, 1):
    DIALECT, SET, GET, GREETING = "first", 0, 2, b""
elif VERSION < (2, 2):
    DIALECT, SET, GET, GREETING = "second", 0, 2, b""
else:
    DIALECT, SET, GET, GREETING = "newest", 1, 3, bytes.fromhex("00cef7853c")


class NotThere(Exception):
    """This version of torch lacks what the case is about."""


def expect(found, wanted):
    if found != wanted:
        raise AssertionError(f"{found!r} instead of {wanted!r}")


def expect_timeout(call, *arguments):
    """It fails because its time is up, not later and not for another reason."""
    try:
        found = call(*arguments)
    except RuntimeError as error:
        if "timeout" not in str(error).lower():
            raise
        return
    raise AssertionError(f"{found!r} instead of a time-out")


def seconds(number):
    return datetime.timedelta(seconds=number)


def text(value):
    return struct.pack("<Q", len(value)) + value


def request(number, *texts):
    return bytes([number]) + b"".join(map(text, texts))


class Caller(threading.Thread):
    """A call in a thread of its own."""

    def __init__(self, call, *arguments):
        super().__init__(daemon=True)
        self.call = (call, arguments)
        self.found = None
        self.error = None
        self.start()

    def run(self):
        try:
            self.found = self.call[0](*self.call[1])
        except Exception as error:
            self.error = error

    def result(self):
        self.join(PATIENCE_S)
        if self.is_alive():
            raise AssertionError(f"no answer within {PATIENCE_S} s")
        if self.error is not None:
            raise self.error
        return self.found

    def expect_waits(self):
        """It has not ended; there is nothing that could be awaited."""
        self.join(0.2)
        if not self.is_alive():
            raise AssertionError(f"does not wait: {self.found!r}, {self.error}")


class Musterd:
    def __init__(self, program, folder, flags=()):
        port_file = folder / "ports"
        dialect = [] if DIALECT == "newest" else ["--tcpstore-dialect", DIALECT]
        self.log = folder / "musterd.log"
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [program, "--listen", f"{HOST}:0", "--port-file", port_file, "--log-level",
                 "warning", *dialect, *flags,
                 *(part for name in NAMESPACES for part in ("--tcpstore", f"{HOST}:0={name}"))],
                stdout=log, stderr=subprocess.STDOUT)
        wait_until("musterd listens", lambda: self.ended() or port_file.exists())
        if self.ended():
            raise AssertionError(f"musterd: {self.log.read_text(encoding='utf-8').strip()}")
        self.ports = [int(line) for line in port_file.read_text(encoding="utf-8").split()[1:]]

    def ended(self):
        return self.process.poll() is not None

    def stop(self):
        """As an operator does; a server that is healthy ends with 0."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE_S)
        if code != 0:
            raise AssertionError(f"musterd ended with {code}")


class Torchs:
    """Torch's own server, which shows that a case is right."""

    def __init__(self, *_):
        self.processes = [subprocess.Popen([sys.executable, TORCHS_SERVER], text=True,
                                           stdout=subprocess.PIPE) for _ in NAMESPACES]
        self.ports = [int(process.stdout.readline()) for process in self.processes]

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()


def wait_until(what, holds):
    until = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > until:
            raise AssertionError(f"not within {PATIENCE_S} s: {what}")
        time.sleep(0.01)


class Stage:
    def __init__(self, server, folder):
        self.server = server
        self.ports = server.ports
        self.folder = folder
        self.logs_count = 0

    def store(self, timeout_s=PATIENCE_S, which=0):
        """A new client."""
        store = dist.TCPStore(HOST, self.ports[which], None, False, seconds(PATIENCE_S),
                              wait_for_workers=False)
        store.set_timeout(seconds(timeout_s))
        return store

    def store_that_can(self, *methods):
        for method in methods:
            if not hasattr(dist.TCPStore, method):
                raise NotThere(method)
        return self.store()

    def raw(self):
        """A connection by hand, which speaks as this version of torch does."""
        connection = socket.create_connection((HOST, self.ports[0]), PATIENCE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(GREETING)
        return connection

    def start(self, *arguments, **environment):
        """A program of Python in this environment."""
        self.logs_count += 1
        log = self.folder / f"{self.logs_count}.log"
        with open(log, "w", encoding="utf-8") as output:
            process = subprocess.Popen(
                [sys.executable, *map(str, arguments)], stdout=output, stderr=subprocess.STDOUT,
                env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1",
                     **{name: str(value) for name, value in environment.items()}})
        process.log = log
        return process

    def job(self, size=2, which=0, attempt=0, method="tcp"):
        """The ranks of a job, whose store is not of their own."""
        port = self.ports[which]
        arguments = [f"tcp://{HOST}:{port}"] if method == "tcp" else []
        return [self.start(SCRIPT, *arguments, TORCHELASTIC_USE_AGENT_STORE=True,
                           TORCHELASTIC_RESTART_COUNT=attempt, RANK=rank, WORLD_SIZE=size,
                           MASTER_ADDR=HOST, MASTER_PORT=port) for rank in range(size)]

    def torchrun(self, *options, which=0, run="1"):
        """A launcher that meets others at the server. Without options about the output that of
        PyTorch 1.13 does not run with Python 3.11."""
        return self.start("-m", "torch.distributed.run", "--rdzv_backend=c10d",
                          f"--rdzv_endpoint={HOST}:{self.ports[which]}", "--rdzv_conf=is_host=0",
                          f"--rdzv_id={run}", "--tee=1", "--redirects=1",
                          f"--log_dir={self.folder / 'torchrun'}", *options, SCRIPT)


def ends(*processes):
    """What they have printed together; they have ended well."""
    said = []
    for process in processes:
        code = process.wait()
        if code != 0:
            raise AssertionError(f"a process of the job ended with {code}; see {process.log.name}")
        said.append(process.log.read_text(encoding="utf-8", errors="replace"))
    return "".join(said)


def expect_sums(said, size, attempts=(0,)):
    """What the script prints: each rank has the sum of all, in each attempt."""
    total = size * (size + 1) // 2
    expect(sorted(re.findall(r"rank \d+ of \d+: \d+ in \d+", said)),
           sorted(f"rank {rank} of {size}: {total} in {attempt}"
                  for rank in range(size) for attempt in attempts))
