"""torch.distributed on a store of Muster's: a process group, and who is missing.

    musterd --listen 127.0.0.1:29400 &
    python3 torch_store.py 127.0.0.1:29400
"""

import multiprocessing
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

from muster.torch import Store


def rank_of_two(address: str, rank: int) -> None:
    store = Store(address, namespace="torch_store", rank=rank, world_size=2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    total = torch.ones(1) * (rank + 1)
    dist.all_reduce(total)
    print(f"rank {rank}: {int(total)}")
    dist.destroy_process_group()

    # A store of a job in which one rank is missing: the time-out is torch's, and says which one.
    if rank == 0:
        other = Store(address, namespace="another job", rank=0, world_size=2)
        try:
            other.wait(["weights"], timedelta(seconds=0.5))
        except RuntimeError as error:  # DistStoreError, where torch has it
            print(f"rank 0: {error}")


def main() -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=rank_of_two, args=(sys.argv[1], rank)) for rank in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    sys.exit(max(process.exitcode or 0 for process in ranks))


if __name__ == "__main__":
    main()
