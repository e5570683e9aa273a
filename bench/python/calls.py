"""Calls of one kind, made one after the other by one process or by several, and what they cost.

    calls.py SUBJECT ADDRESS RUN OPERATION PROCESSES CALLS

SUBJECT    muster, tcpstore (torch's binding) or redis (redis-py)
RUN        a name that no other run has used at this server
OPERATION  get, set, add or barrier
Prints, as JSON, the median over the processes of the wall and processor microseconds of a call.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

VALUE = b"v" * 64
Call = Callable[[], object]


def muster_call(address: str, run: str, operation: str, rank: int, processes: int) -> Call:
    import muster

    store = muster.Store(address, namespace=run)
    key = f"{run}/{rank}"
    if operation == "barrier":
        return muster.StatelessProcessGroup(store, "bench", rank, processes).barrier
    store.set(key, VALUE)
    return {
        "get": lambda: store.get(key),
        "set": lambda: store.set(key, VALUE),
        "add": lambda: store.add(key + "n", 1),
    }[operation]


def tcpstore_call(address: str, run: str, operation: str, rank: int, processes: int) -> Call:
    from datetime import timedelta

    from torch.distributed import TCPStore

    host, _, port = address.rpartition(":")
    store = TCPStore(host, int(port), None, False, timedelta(seconds=60))
    key = f"{run}/{rank}"
    store.set(key, VALUE)
    number = 0

    def barrier() -> None:
        """As torch's own on a store: a counter, and a key that the last one sets."""
        nonlocal number
        number += 1
        if store.add(f"{run}/in{number}", 1) == processes:
            store.set(f"{run}/out{number}", "1")
        store.wait([f"{run}/out{number}"])

    return {
        "get": lambda: store.get(key),
        "set": lambda: store.set(key, VALUE),
        "add": lambda: store.add(key + "n", 1),
        "barrier": barrier,
    }[operation]


def redis_call(address: str, run: str, operation: str, rank: int, processes: int) -> Call:
    import redis

    host, _, port = address.rpartition(":")
    store = redis.Redis(host, int(port))
    key = f"{run}/{rank}"
    store.set(key, VALUE)
    number = 0

    def barrier() -> None:
        """A counter, and a list of which the last one fills an element for each other rank."""
        nonlocal number
        number += 1
        if store.incr(f"{run}/in{number}") == processes:
            if processes > 1:
                store.rpush(f"{run}/out{number}", *[b"1"] * (processes - 1))
        else:
            store.blpop([f"{run}/out{number}"])

    return {
        "get": lambda: store.get(key),
        "set": lambda: store.set(key, VALUE),
        "add": lambda: store.incrby(key + "n", 1),
        "barrier": barrier,
    }[operation]


SUBJECTS = {"muster": muster_call, "tcpstore": tcpstore_call, "redis": redis_call}


def measure(call: Call, calls: int) -> dict[str, float]:
    for _ in range(max(10, calls // 10)):
        call()
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(calls):
        call()
    return {
        "wall_us": (time.perf_counter() - wall) / calls * 1e6,
        "processor_us": (time.process_time() - processor) / calls * 1e6,
    }


def work(arguments: tuple[str, str, str, str, int, int, int], results: Any) -> None:
    subject, address, run, operation, processes, calls, rank = arguments
    call = SUBJECTS[subject](address, run, operation, rank, processes)
    results.put(measure(call, calls))
    call()  # of a barrier: nobody goes before all have measured


def main() -> None:
    subject, address, run, operation = sys.argv[1:5]
    processes, calls = int(sys.argv[5]), int(sys.argv[6])
    if processes == 1:
        print(json.dumps(measure(SUBJECTS[subject](address, run, operation, 0, 1), calls)))
        return
    context = multiprocessing.get_context("fork")
    results: Any = context.Queue()
    ranks = [
        context.Process(
            target=work,
            args=((subject, address, run, operation, processes, calls, rank), results),
        )
        for rank in range(processes)
    ]
    for one in ranks:
        one.start()
    found = [results.get(timeout=300) for _ in ranks]
    for one in ranks:
        one.join()
    print(json.dumps({name: statistics.median(one[name] for one in found) for name in found[0]}))


if __name__ == "__main__":
    main()
