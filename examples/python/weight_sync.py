"""A trainer gives new weights to the servers, version by version, while they serve.

    python3 weight_sync.py ADDRESS

One trainer and two servers are in one group. The tensors' names, shapes and types go as JSON, their
bytes as they are. A server that is slow holds nobody up: what it has not taken waits at the server.
"""

import array
import multiprocessing
import sys
from typing import Any

import muster

VERSIONS = 3
SERVERS = 2
SHAPES = {"embedding": [256, 16], "head": [16, 4]}


def trainer(address: str) -> None:
    with muster.Store(address, namespace="weights") as store:
        group = muster.StatelessProcessGroup(store, "sync", 0, 1 + SERVERS)
        for version in range(1, VERSIONS + 1):
            weights = {name: weight_of(shape, version) for name, shape in SHAPES.items()}
            group.broadcast_obj({"version": version, "shapes": SHAPES})
            for tensor in weights.values():
                group.broadcast_obj(tensor, codec=muster.RAW)  # no copy on the way to the library
            sums = group.gather_obj(None)
            assert sums is not None
            expected = sum(sum(tensor) for tensor in weights.values())
            assert sums[1:] == [expected] * SERVERS
            print(f"trainer: version {version} is everywhere, sum {expected:g}", flush=True)
        group.barrier()


def server(address: str, rank: int) -> None:
    with muster.Store(address, namespace="weights") as store:
        group = muster.StatelessProcessGroup(store, "sync", rank, 1 + SERVERS)
        for _ in range(VERSIONS):
            header: dict[str, Any] = group.broadcast_obj()
            weights = {}
            for name in header["shapes"]:
                tensor = array.array("d")
                tensor.frombytes(group.broadcast_obj(codec=muster.RAW))
                weights[name] = tensor
            group.gather_obj(sum(sum(tensor) for tensor in weights.values()))
        group.barrier()


def weight_of(shape: list[int], version: int) -> "array.array[float]":
    count = shape[0] * shape[1]
    return array.array("d", (version * index / count for index in range(count)))


def main() -> None:
    address = sys.argv[1]
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=trainer, args=(address,))]
    processes += [
        context.Process(target=server, args=(address, rank)) for rank in range(1, 1 + SERVERS)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    sys.exit(max(process.exitcode or 0 for process in processes))


if __name__ == "__main__":
    main()
