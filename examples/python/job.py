"""The processes of a job meet, work in turn, agree, and combine tensors.

    musterrun -n 2 python3 job.py

With the address of a server it starts its two ranks itself: python3 job.py 127.0.0.1:29400. Alone
it is a job of one process.
"""

import array
import multiprocessing
import os
import sys
import tempfile

from muster.runtime import Runtime, all_reduce_tensor, all_reduce_value


def work(folder: str) -> None:
    with Runtime() as job:  # of this process's environment
        job.init()  # says who is missing, or which variable is wrong
        model = os.path.join(folder, "model")
        with job.local_rank_zero_first() as turn:
            if not os.path.exists(model):  # once on each node
                turn.progress("downloading")
                with open(model, "w") as file:
                    file.write("muster-7b")
        config = job.on_rank_zero(lambda progress: {"layers": 32})
        longest = all_reduce_value(job, job.rank + 1, "max")
        gradients = array.array("f", [job.rank, 1.0])  # or a tensor of NumPy's, torch's, JAX's
        all_reduce_tensor(job, gradients, "average")
        print(
            f"rank {job.rank} of {job.world_size}: {config['layers']} layers, {longest}, "
            f"gradients {gradients.tolist()}"
        )


def rank_of_two(address: str, rank: int, folder: str) -> None:
    os.environ |= {
        "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2",
        "MUSTER_STORE": address,
    }
    work(folder)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) < 2:
            return work(os.environ.get("MODEL_FOLDER", folder))
        context = multiprocessing.get_context("spawn")
        ranks = [
            context.Process(target=rank_of_two, args=(sys.argv[1], rank, folder))
            for rank in range(2)
        ]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
        sys.exit(max(process.exitcode or 0 for process in ranks))


if __name__ == "__main__":
    main()
