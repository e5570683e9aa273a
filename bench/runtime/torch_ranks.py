"""The ranks of a job of torch on this host, each a process: what runtime_ranks measures, by torch.

torch_ranks.py QUESTION [--ranks N] [--bytes N] [--subject NAME] [--rounds N]

QUESTION is synchronize_value (subjects torch_gloo and torch_tcpstore) or all_reduce (torch_gloo).
Prints lines like those of runtime_ranks.
"""

import argparse
import ctypes
import datetime
import json
import mmap
import os
import signal
import socket
import struct
import sys
import time
from multiprocessing import get_context

import torch
import torch.distributed as dist

ROUNDS_MAX = 4096
PATIENCE = datetime.timedelta(seconds=300)
PR_SET_PDEATHSIG = 1
# As runtime_ranks: how often, by default.
RANKS = {"synchronize_value": [8, 64], "all_reduce": [2, 4]}
SIZES = [1 << power for power in range(10, 27, 2)]
VALUES, VALUES_ALONE = 200, 40


class Board:
    """Where ranks meet, and leave their times for rank 0: memory of all of them."""

    PLACE = 3 + ROUNDS_MAX  # numbers: begin, end, processor time, ends of rounds

    def __init__(self, size):
        self.all = get_context("fork").Barrier(size)
        self.memory = mmap.mmap(-1, 8 * size * self.PLACE)

    def write(self, rank, at, values):
        struct.pack_into(f"{len(values)}d", self.memory, 8 * (rank * self.PLACE + at), *values)

    def read(self, rank, at, count):
        return struct.unpack_from(f"{count}d", self.memory, 8 * (rank * self.PLACE + at))


def quantile(samples, share):
    return sorted(samples)[int(share * (len(samples) - 1) + 0.5)] if samples else 0


class Rank:
    def __init__(self, board, rank, size):
        self.board, self.rank, self.size = board, rank, size

    def meet(self):
        self.board.all.wait()

    def places(self, at, count=1):
        return [self.board.read(rank, at, count) for rank in range(self.size)]

    def last_ends(self, count):
        return [max(ends) for ends in zip(*self.places(3, count))]

    def back_to_back(self, count, work):
        self.meet()
        before, begin, ends = time.process_time(), time.monotonic(), []
        for index in range(count):
            work(index)
            ends.append(time.monotonic())
        self.meet()
        self.board.write(self.rank, 0, [begin, ends[-1], time.process_time() - before])
        self.board.write(self.rank, 3, ends)
        self.meet()
        found = None
        if self.rank == 0:
            begin = min(begin for begin, in self.places(0))
            last = [begin, *self.last_ends(count)]
            rounds = [1e6 * (after - at) for at, after in zip(last, last[1:])]
            found = {"round_us": 1e6 * (last[-1] - begin) / count,
                     "p50_us": quantile(rounds, 0.5), "p99_us": quantile(rounds, 0.99),
                     "cpu_us": 1e6 * sum(used for used, in self.places(2)) / count,
                     "operations": count}
        self.meet()
        return found

    def alone(self, count, work):
        begins, ends = [], []
        for index in range(count):
            self.meet()
            if self.rank == 0:
                time.sleep(500e-6 + 200e-6 * self.size)
            begins.append(time.monotonic())
            work(index)
            ends.append(time.monotonic())
        self.board.write(self.rank, 3, ends)
        self.meet()
        found = None
        if self.rank == 0:
            took = [1e6 * (end - begin) for begin, end in zip(begins, self.last_ends(count))]
            found = {"alone_p50_us": quantile(took, 0.5), "alone_p99_us": quantile(took, 0.99)}
        self.meet()
        return found


def run_as_processes(size, part):
    """Forks, so that torch is loaded once. When a rank fails, the others are ended."""
    board = Board(size)
    port = free_port()
    ranks = set()
    for rank in range(size):
        pid = os.fork()
        if pid == 0:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            code = 1
            try:
                part(Rank(board, rank, size), port)
                sys.stdout.flush()
                code = 0
            finally:
                if code:
                    sys.excepthook(*sys.exc_info())
                os._exit(code)
        ranks.add(pid)
    has_failed = False
    while ranks:
        pid, status = os.wait()
        ranks.discard(pid)
        if status and not has_failed:
            has_failed = True
            for other in ranks:
                os.kill(other, signal.SIGKILL)
    if has_failed:
        sys.exit("a rank has failed")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def store_of(rank, port):
    return dist.TCPStore("127.0.0.1", port, rank.size, rank.rank == 0, PATIENCE)


def init_gloo(rank, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=store_of(rank, port), rank=rank.rank,
                            world_size=rank.size, timeout=PATIENCE)


def record(rank, question, parameters, subject, values):
    if rank.rank == 0:
        print(json.dumps({"question": question, "parameters": parameters, "subject": subject,
                          "values": values}), flush=True)


def by_gloo():
    tensor = torch.zeros(1, dtype=torch.int64)

    def synchronize(value):
        tensor[0] = value
        dist.broadcast(tensor, 0)
        return tensor.item()
    return synchronize


def by_tcpstore(rank, store):
    """A key for each value, as vLLM's broadcast_obj and torch's object lists count them."""
    count = 0

    def synchronize(value):
        nonlocal count
        count += 1
        key = f"broadcast_from/0/{count}"
        if rank.rank == 0:
            store.set(key, value.to_bytes(8, "little", signed=True))
            return value
        return int.from_bytes(store.get(key), "little", signed=True)
    return synchronize


def measure_value(asked, rank, subject, synchronize):
    def work(index):
        if synchronize(index if rank.rank == 0 else -1) != index:
            raise RuntimeError("not rank 0's value")
    for _ in range(asked.rounds):
        found = rank.back_to_back(VALUES, work)
        alone = rank.alone(VALUES_ALONE, work)
        if rank.rank == 0:
            record(rank, "synchronize_value", {"ranks": rank.size}, subject, {**found, **alone})


def synchronize_value(asked, rank, port):
    if "torch_gloo" in asked.subject:
        init_gloo(rank, port)
        measure_value(asked, rank, "torch_gloo", by_gloo())
        rank.meet()
    if "torch_tcpstore" in asked.subject:
        store = store_of(rank, port + 1 if "torch_gloo" in asked.subject else port)
        measure_value(asked, rank, "torch_tcpstore", by_tcpstore(rank, store))
        rank.meet()


def all_reduce(asked, rank, port):
    init_gloo(rank, port)
    for size in asked.bytes or SIZES:
        count = min(max((96 << 20) // size, 3), 100)
        tensor = torch.full((size // 4,), float(rank.rank + 1))
        dist.all_reduce(tensor)
        if not torch.all(tensor == rank.size * (rank.size + 1) / 2):
            raise RuntimeError("it has combined wrongly")
        tensor.zero_()
        for _ in range(asked.rounds):
            found = rank.back_to_back(count, lambda _, tensor=tensor: dist.all_reduce(tensor))
            record(rank, "all_reduce", {"ranks": rank.size, "bytes": size}, "torch_gloo", found)
    rank.meet()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("question", choices=RANKS)
    parser.add_argument("--ranks", type=int, action="append")
    parser.add_argument("--bytes", type=int, action="append")
    parser.add_argument("--subject", action="append")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    asked.subject = asked.subject or ["torch_gloo", "torch_tcpstore"]
    part = {"synchronize_value": synchronize_value, "all_reduce": all_reduce}[asked.question]
    for size in asked.ranks or RANKS[asked.question]:
        run_as_processes(size, lambda rank, port: part(asked, rank, port))


if __name__ == "__main__":
    main()
