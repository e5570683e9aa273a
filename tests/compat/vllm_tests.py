"""Runs vLLM's tests of its StatelessProcessGroup, unchanged, with Muster's class, for others.py.

    vllm_tests.py SOURCE TIMES [NAME...]

vLLM itself is that of SOURCE, without what is compiled; `muster.compat.vllm.patch` puts our class
in the place of its own. Of the helpers of its tests one is replaced, which asks for GPUs. Each test
runs TIMES times, in a process of its own, whose children are its ranks. How many passed is a line
of JSON for each test.
"""

import atexit
import faulthandler
import json
import os
import random
import select
import signal
import socket
import sys
import time
import traceback
import types
from importlib import import_module
from pathlib import Path

RANKS = 4
LIMIT_S = {"shm_broadcast": 400}
USUAL_LIMIT_S = 60
WORKERS = ("cpu_worker", "broadcast_worker", "allgather_worker")
SCRIPTS = {"same_node": "test_same_node.py", "node_count": "test_node_count.py"}


def in_child(work, limit_s):
    """returns  why it failed; "" if it did not"""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.close(read_end)
        why = ""
        try:
            work()
        except BaseException:
            why = traceback.format_exc()[-2000:]
        os.write(write_end, (why or "ok").encode())
        os._exit(0)
    os.close(write_end)
    if select.select([read_end], [], [], limit_s)[0]:
        said = os.read(read_end, 65536).decode() or "its process died"
    else:
        said = f"not ended within {limit_s} s"
        os.killpg(pid, 9)  # with its ranks
    os.close(read_end)
    os.waitpid(pid, 0)
    return "" if said == "ok" else said


def free_port():
    """One that the system gives to nobody who asks for any."""
    least = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(10000, max(least, 20000))
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def in_ranks(work):
    """As torchrun would start a script: an environment for each rank. All must end well, else the
    others are ended."""
    port, pids = free_port(), []
    for rank in range(RANKS):
        pid = os.fork()
        if pid == 0:
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS),
                              MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            faulthandler.dump_traceback_later(USUAL_LIMIT_S - 5)  # before it is ended
            try:
                work()
                atexit._run_exitfuncs()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        pids.append(pid)
    codes = {}
    while len(codes) < RANKS:
        pid, status = os.wait()
        codes[pids.index(pid)] = os.waitstatus_to_exitcode(status)
        if codes[pids.index(pid)] != 0:
            break
    for rank in set(range(RANKS)) - codes.keys():
        os.kill(pids[rank], signal.SIGKILL)
        os.waitpid(pids[rank], 0)
    assert list(codes.values()) == [0] * RANKS, f"ranks ended as {codes}"


def run_script(file):
    """What it has made is there until the end of the process."""
    exec(compile(file.read_text(), file, "exec"), sys.modules["__main__"].__dict__)


def without_gpus(num_gpus):
    """In place of the helper that skips where there are no GPUs."""
    return lambda test: test


def tests_at(source):
    """The name of each test, and what runs it once."""
    folder = Path(source, "tests", "distributed")
    sys.path.insert(0, str(source))
    sys.modules["tests.utils"] = types.SimpleNamespace(multi_gpu_test=without_gpus)
    workers = import_module("tests.distributed.test_utils")
    shm = import_module("tests.distributed.test_shm_broadcast")
    for module in (workers, shm):
        assert module.StatelessProcessGroup.__module__.startswith("muster."), "vLLM's own class"
    found = {name: lambda name=name: workers.test_stateless_process_group(getattr(workers, name))
             for name in WORKERS}
    for name, file in SCRIPTS.items():
        found[name] = lambda file=file: in_ranks(lambda: run_script(folder / file))
    found["shm_broadcast"] = shm.test_shm_broadcast
    return found


def main():
    source, times, *names = sys.argv[1:]
    output = os.dup(1)
    os.dup2(2, 1)  # what tests print is kept out of the way
    os.environ.update(VLLM_HOST_IP="127.0.0.1", GLOO_SOCKET_IFNAME="lo")
    sys.path.insert(0, str(source))
    import muster.compat.vllm

    muster.compat.vllm.patch()
    for name, test in tests_at(source).items():
        if names and name not in names:
            continue
        failures, began = [], time.monotonic()
        for _ in range(int(times)):
            if why := in_child(test, LIMIT_S.get(name, USUAL_LIMIT_S)):
                failures.append(why)
        told = {"test": f"vLLM's {name}", "times": int(times), "failures": failures[:3],
                "failed_count": len(failures), "seconds": time.monotonic() - began}
        os.write(output, json.dumps(told).encode() + b"\n")


if __name__ == "__main__":
    main()
