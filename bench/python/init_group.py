"""What init_process_group("gloo", store=...) takes, by the store that the ranks meet at.

    init_group.py SUBJECT RANKS CALLS

SUBJECT  muster (muster.torch.Store) or tcpstore (torch's own); each with a server in a process of
         its own
Prints, as JSON, the median over the calls of the milliseconds until the last rank has its group,
and of the processor milliseconds of all ranks together; and those until the last has its store. The
ranks are forks of a process that has read torch.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import sys
import time
from datetime import timedelta
from typing import Any

import torch.distributed as dist

import muster
import muster.torch

HOST = "127.0.0.1"
PATIENCE_S = 120
PATIENCE = timedelta(seconds=PATIENCE_S)


def serve(subject: str, ports: Any, is_over: Any) -> None:
    server: Any = None
    if subject == "muster":
        server = muster.Server()
    else:
        server = dist.TCPStore(HOST, 0, None, True, PATIENCE, wait_for_workers=False)
    ports.put(server.port)
    is_over.wait()
    os._exit(0)


def store_at(subject: str, port: int, rank: int, ranks: int) -> Any:
    if subject == "muster":
        return muster.torch.Store(
            f"{HOST}:{port}", namespace="bench", rank=rank, world_size=ranks, timeout=PATIENCE
        )
    return dist.TCPStore(HOST, port, None, False, PATIENCE, wait_for_workers=False)


def work(
    subject: str, port: int, rank: int, ranks: int, calls: int, together: Any, results: Any
) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    together.wait(PATIENCE_S)
    began = time.monotonic()
    store = store_at(subject, port, rank, ranks)
    connected = time.monotonic()
    times = []
    for call in range(calls):
        together.wait(PATIENCE_S)
        started, used = time.monotonic(), time.process_time()
        dist.init_process_group(
            "gloo", store=dist.PrefixStore(f"{call}", store), rank=rank, world_size=ranks,
            timeout=PATIENCE,
        )
        times.append((started, time.monotonic(), time.process_time() - used))
        together.wait(PATIENCE_S)
        dist.destroy_process_group()
    results.put((began, connected, times))
    together.wait(PATIENCE_S)  # nobody goes before all have measured
    os._exit(0)  # what threads of torch there are


def main() -> None:
    subject, ranks, calls = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    context = multiprocessing.get_context("fork")
    together, results = context.Barrier(ranks), context.SimpleQueue()
    ports, is_over = context.SimpleQueue(), context.Event()
    server = context.Process(target=serve, args=(subject, ports, is_over))
    server.start()
    port = ports.get()
    processes = [
        context.Process(
            target=work, args=(subject, port, rank, ranks, calls, together, results)
        )
        for rank in range(ranks)
    ]
    for one in processes:
        one.start()
    found = [results.get() for _ in processes]
    for one in processes:
        one.join()
    is_over.set()
    server.join()

    def until_the_last(call: int) -> float:
        each = [times[call] for _, _, times in found]
        return max(ended for _, ended, _ in each) - min(started for started, _, _ in each)

    print(json.dumps({
        "wall_ms": statistics.median(until_the_last(call) for call in range(calls)) * 1e3,
        "processor_ms": statistics.median(
            sum(times[call][2] for _, _, times in found) for call in range(calls)) * 1e3,
        "connect_ms": (max(one[1] for one in found) - min(one[0] for one in found)) * 1e3,
    }))


if __name__ == "__main__":
    main()
