"""One rank on torch's TCPStore, or its server: takes the commands that fault_worker takes.

A command is a line of JSON on the standard input; each runs on a thread of its own, but for one
with `in_main`, which runs where Python handles signals. Reported are lines of JSON: when a call
begins and how it ended, with the monotonic time.

    tcpstore_worker.py                         reads commands until its input ends
    tcpstore_worker.py PORT RANKS WHAT COUNT   forks so many ranks, which do so many of WHAT in a
                                               row: `barrier` or `all_gather`; prints how long each
                                               took at rank 0
"""

import ctypes
import datetime
import json
import os
import signal
import sys
import threading
import time

from stateless_group import StatelessGroup
from torch.distributed import TCPStore

HOST = "127.0.0.1"
PR_SET_PDEATHSIG = 1
WARM_UP = 2  # rounds that are not counted


def client(port, timeout_s):
    return TCPStore(HOST, port, None, False, datetime.timedelta(seconds=timeout_s),
                    wait_for_workers=False)


class Worker:
    def __init__(self):
        self.lock = threading.Lock()
        self.store = None
        self.group = None

    def say(self, **line):
        with self.lock:
            print(json.dumps({**line, "t_us": time.monotonic_ns() // 1000}), flush=True)

    def serve(self, command):
        self.store = TCPStore(HOST, command.get("port", 0), None, True,
                              datetime.timedelta(milliseconds=command["timeout_ms"]),
                              wait_for_workers=False)
        return {"port": self.store.port}

    def connect(self, command):
        port = int(command["address"].rsplit(":", 1)[1])
        self.store = client(port, command["store_timeout_ms"] / 1000)
        return {"process": ""}

    def join(self, command):
        self.group = StatelessGroup(self.store, command["rank"], command["size"],
                                    command.get("expiration_ms", 3_600_000) / 1000)
        self.group.meet(command["timeout_ms"] / 1000)

    def barrier(self, command):
        self.group.barrier(command["timeout_ms"] / 1000)

    def barriers(self, command):
        return {"took_us": timed(command["count"],
                                 lambda: self.group.barrier(command["timeout_ms"] / 1000))}

    def all_gather(self, command):
        return {"values": self.group.all_gather(command["value"])}

    def send(self, command):
        self.group.send(command["value"], command["destination"])

    def recv(self, command):
        return {"value": self.group.receive(command["source"])}

    def set(self, command):
        self.store.set(command["key"], b"x" * command.get("value_bytes", 1))

    def set_hex(self, command):
        self.store.set(command["key"], bytes.fromhex(command["value"]))

    def get(self, command):
        return {"value": self.store.get(command["key"]).decode(errors="replace")[:64]}

    def add(self, command):
        return {"number": self.store.add(command["key"], 1)}

    def adds(self, command):
        return {"took_us": timed(command["count"], lambda: self.store.add(command["key"], 1))}

    def fork(self, command):
        """Both go on with the client that the child inherits: what was wrong with their reads."""
        for name in ("parent", "child"):
            self.store.set(name, name)
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            die_with_parent()
            os.write(write_end, json.dumps(self.reads("child", command["count"])).encode())
            os._exit(0)
        os.close(write_end)
        of_parent = self.reads("parent", command["count"])
        os.waitpid(child, 0)
        return {"reads": [of_parent, json.loads(os.read(read_end, 4096) or "{}")]}

    def reads(self, name, count):
        """How many values were right and how many another's, and the error that ended it."""
        counts = {"right": 0, "wrong": 0}
        for _ in range(count):
            try:
                counts["right" if self.store.get(name) == name.encode() else "wrong"] += 1
            except Exception as error:
                return {**counts, "error": str(error)}
        return counts

    def keys_count(self, _):
        return {"number": self.store.num_keys()}

    def run(self, command):
        self.say(id=command["id"], event="begin")
        try:
            line = {"code": "ok", **(getattr(self, command["call"])(command) or {})}
        except Exception as error:
            line = {"code": "error", "message": str(error)}
        self.say(id=command["id"], event="end", **line)

    def obey(self):
        self.say(event="started", pid=os.getpid())
        for line in sys.stdin:
            command = json.loads(line)
            if command.get("in_main"):
                self.run(command)
            else:
                threading.Thread(target=self.run, args=(command,), daemon=True).start()
        os._exit(0)  # some calls may still wait


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def timed(count, call):
    took_us = []
    for _ in range(count):
        began = time.monotonic_ns()
        call()
        took_us.append((time.monotonic_ns() - began) // 1000)
    return took_us


def rank_of_many(port, rank, ranks, what, count):
    group = StatelessGroup(client(port, 60.0), rank, ranks)
    group.meet(60.0)
    call = {"barrier": lambda: group.barrier(60.0),
            "all_gather": lambda: group.all_gather("value")}[what]
    took_us = timed(WARM_UP + count, call)
    if rank == 0:
        print(json.dumps(took_us[WARM_UP:]), flush=True)


def many_ranks(port, ranks, what, count):
    """Each is a process, which dies with this one."""
    children = []
    for rank in range(ranks):
        child = os.fork()
        if child == 0:
            die_with_parent()
            rank_of_many(port, rank, ranks, what, count)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        many_ranks(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    else:
        Worker().obey()
