"""Calls of a group of processes: vLLM's class, of which this is the algorithm on torch's TCPStore,
and the one of muster.compat.vllm in its place.

    vllm.py SUBJECT CALL PROCESSES CALLS

SUBJECT    muster or tcpstore; in both rank 0 hosts the server
CALL       barrier, all_gather_obj, or send_recv: an object to the next rank, one from the last one
Prints, as JSON, the median over the processes of the wall and processor microseconds of a call, and
the processor microseconds of the server.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import statistics
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

PATIENCE_S = 300
OBJECT = {"host": "node-17", "port": 29500, "devices": [0, 1, 2, 3]}


def threads() -> set[int]:
    return {int(name) for name in os.listdir("/proc/self/task")}


def used_us(of: set[int]) -> float:
    """Processor time of threads."""
    total = 0
    for thread in of:
        with open(f"/proc/self/task/{thread}/schedstat", encoding="ascii") as stat:
            total += int(stat.read().split()[0])
    return total / 1e3


def muster_group(serving: socket.socket, rank: int, size: int) -> Any:
    from muster.compat.vllm import StatelessProcessGroup

    port = serving.getsockname()[1]
    if rank != 0:
        serving.close()
    return StatelessProcessGroup.create(
        "127.0.0.1", port, rank, size, store_timeout=PATIENCE_S,
        listen_socket=serving if rank == 0 else None,
    )


def original_group(port: Any, rank: int, size: int) -> Any:
    sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "compare"))
    from stateless_group import StatelessGroup
    from torch.distributed import TCPStore

    patience = timedelta(seconds=PATIENCE_S)
    if rank == 0:
        store = TCPStore("127.0.0.1", 0, size, True, patience, False)
        port.value = store.port
    else:
        while port.value == 0:
            time.sleep(0.01)
        store = TCPStore("127.0.0.1", port.value, size, False, patience, False)
    group = StatelessGroup(store, rank, size)
    group.meet(PATIENCE_S)
    group.send_obj, group.recv_obj = group.send, group.receive
    group.all_gather_obj = group.all_gather
    return group


def call_of(group: Any, call: str) -> Callable[[], object]:
    after = (group.rank + 1) % group.world_size
    before = (group.rank - 1) % group.world_size

    def send_recv() -> None:
        group.send_obj(OBJECT, after)
        group.recv_obj(before)

    return {
        "barrier": lambda: group.barrier(PATIENCE_S),
        "all_gather_obj": lambda: group.all_gather_obj(OBJECT),
        "send_recv": send_recv,
    }[call]


def work(
    subject: str, place: Any, call: str, rank: int, size: int, calls: int, together: Any,
    results: Any,
) -> None:
    before = threads()
    group = (muster_group if subject == "muster" else original_group)(place, rank, size)
    # The server's thread is the first one of Muster's, and the only one of TCPStore.
    server = {min(threads() - before)} if rank == 0 else set()
    one = call_of(group, call)
    for _ in range(max(3, calls // 10)):
        one()
    together.wait(PATIENCE_S)
    served, wall, processor = used_us(server), time.perf_counter(), time.process_time()
    for _ in range(calls):
        one()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    together.wait(PATIENCE_S)
    found = {"wall_us": wall / calls * 1e6, "processor_us": processor / calls * 1e6}
    if rank == 0:
        found["server_us"] = (used_us(server) - served) / calls
        found["processor_us"] -= found["server_us"]
    results.put(found)
    together.wait(PATIENCE_S)  # nobody goes before all have measured
    os._exit(0)


def main() -> None:
    subject, call = sys.argv[1:3]
    size, calls = int(sys.argv[3]), int(sys.argv[4])
    context = multiprocessing.get_context("fork")
    together, results = context.Barrier(size), context.SimpleQueue()
    serving = socket.create_server(("127.0.0.1", 0), backlog=4 * size)
    place = serving if subject == "muster" else context.Value("i", 0)
    if subject != "muster":
        import torch.distributed  # noqa: F401  # once, for all
    ranks = [
        context.Process(
            target=work, args=(subject, place, call, rank, size, calls, together, results)
        )
        for rank in range(size)
    ]
    for one in ranks:
        one.start()
    serving.close()
    found = [results.get() for _ in ranks]
    for one in ranks:
        one.join()
    names = ("wall_us", "processor_us", "server_us")
    print(json.dumps({
        name: statistics.median(one[name] for one in found if name in one) for name in names
    }))


if __name__ == "__main__":
    main()
