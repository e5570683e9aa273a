"""A job that goes on when a rank is killed, and takes a new one in.

    python3 elastic.py ADDRESS

Three ranks work in rounds. Rank 1 is killed; the others learn it at once, regroup without it, and
go on. A replacement waits as a candidate, and the next regroup takes it in.
"""

import multiprocessing
import os
import signal
import sys

import muster

STEPS = 6


def worker(address: str, run: str, rank: int, is_replacement: bool) -> None:
    with muster.Store(address, namespace="elastic", run=run) as store:
        group = muster.StatelessProcessGroup(
            store, "job", rank, 4 if is_replacement else 3, standby=is_replacement, timeout=60
        )
        step = 0
        while True:
            try:
                # The ranks agree on the step: who is new learns it from the others.
                step = group.all_reduce_obj(step, max)
                if step >= STEPS:
                    break
                if step == 2 and rank == 1 and not is_replacement:
                    os.kill(os.getpid(), signal.SIGKILL)
                group.barrier()
                step += 1
                if step == 4 and group.world_size == 2:
                    # All three are wanted again: waits until the replacement is there.
                    if group.rank == 0:
                        store.set("wanted", "")
                    group = group.regroup(new_size=3)
                    print(f"rank {group.rank}: {group.world_size} ranks again", flush=True)
            except muster.RankLost as lost:
                gone = ", ".join(str(number) for number in lost.rank_numbers)
                print(f"rank {group.rank}: rank {gone} is lost ({lost.cause}) at step {step}",
                      flush=True)
                group = group.regroup()
        print(f"rank {group.rank}: done, epoch {group.epoch}", flush=True)
        group.barrier()


def main() -> None:
    # The keys of a run are removed when its last process has left: an earlier run's are not seen.
    address, run = sys.argv[1], str(os.getpid())
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=worker, args=(address, run, rank, False)) for rank in range(3)]
    for process in ranks:
        process.start()
    with muster.Store(address, namespace="elastic", run=run) as store:
        store.get("wanted", timeout=60)
    replacement = context.Process(target=worker, args=(address, run, 2, True))
    replacement.start()
    for process in [*ranks, replacement]:
        process.join()
    codes = [process.exitcode for process in [*ranks, replacement]]
    sys.exit(0 if codes == [0, -signal.SIGKILL, 0, 0] else 1)


if __name__ == "__main__":
    main()
