"""Two minutes with Muster: keys, a group, objects, and who is missing.

    musterd --listen 127.0.0.1:29400 &
    python3 quickstart.py 127.0.0.1:29400
"""

import multiprocessing
import os
import sys

import muster


def rank_of_two(address: str, run: str, rank: int) -> None:
    # A run's keys are removed when its last process has left.
    with muster.Store(address, namespace="quickstart", run=run) as store:
        # Keys and values, as in any store; a get waits until the key is there.
        if rank == 0:
            store.set("model", "llama", ttl=60)
        print(f"rank {rank}: model {store.get('model', timeout=10).decode()}")

        # A group: every rank gets what all ranks have given.
        group = muster.StatelessProcessGroup(store, "tp0", rank, world_size=2)
        everybody = group.all_gather_obj({"rank": rank, "port": 8000 + rank})
        print(f"rank {rank}: ports {[peer['port'] for peer in everybody]}")

        # Objects from one rank to another, in order.
        group.send_obj(["hello from", rank], 1 - rank)
        print(f"rank {rank}: {group.recv_obj(1 - rank)}")

        # A barrier that a rank does not come to says which one, and who that is.
        if rank == 0:
            try:
                group.barrier(timeout=0.5)
            except muster.TimedOut as error:
                missing = error.ranks[0]
                print(f"rank 0: missing is rank {missing.rank}, pid {missing.pid}")
            store.set("told", "")
        store.get("told", timeout=10)


def main() -> None:
    address, run = sys.argv[1], str(os.getpid())
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=rank_of_two, args=(address, run, rank)) for rank in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    sys.exit(max(process.exitcode or 0 for process in ranks))


if __name__ == "__main__":
    main()
