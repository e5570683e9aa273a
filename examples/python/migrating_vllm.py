"""A program for vLLM's StatelessProcessGroup: kept as it is, and moved.

    python3 migrating_vllm.py ADDRESS

Three ranks, each a process. Rank 0 hosts the server of the group, so ADDRESS is not used.
"""

import multiprocessing
import socket
import sys
import types

import muster

RANKS = 3


def stand_in_for_vllm() -> None:
    """So that this runs without vLLM: its module, with a class of that shape."""
    from muster.compat.vllm import StatelessProcessGroup

    names = ("vllm", "vllm.distributed", "vllm.distributed.utils")
    for name in names:
        sys.modules.setdefault(name, types.ModuleType(name))
    utils = sys.modules[names[-1]]
    original = type("StatelessProcessGroup", (StatelessProcessGroup,), {})
    utils.__dict__.setdefault("StatelessProcessGroup", original)


def patch() -> None:
    import muster.compat.vllm

    muster.compat.vllm.patch()  # for all who have imported vLLM's class, or will


def kept(port: int, rank: int) -> None:
    from vllm.distributed.utils import StatelessProcessGroup  # type: ignore[import]

    group = StatelessProcessGroup.create("127.0.0.1", port, rank, RANKS)
    if rank != 2:
        group.send_obj({f"from {rank}"}, dst=2)
    else:
        assert [group.recv_obj(src=src) for src in (0, 1)] == [{"from 0"}, {"from 1"}]
    assert group.broadcast_obj("secret" if rank == 2 else None, src=2) == "secret"
    assert group.all_gather_obj(rank) == [0, 1, 2]
    group.barrier(timeout=30.0)
    group.store = None  # as trainers do, to free the port
    print(f"kept: rank {rank}", flush=True)


def moved(port: int, rank: int) -> None:
    """The same with Muster's own class: nothing is pickled, and every call has a timeout."""
    group = muster.StatelessProcessGroup.create("127.0.0.1", port, rank, RANKS)
    if rank != 2:
        group.send_obj(f"from {rank}", 2)
    else:
        assert [group.recv_obj(src, timeout=30) for src in (0, 1)] == ["from 0", "from 1"]
    assert group.broadcast_obj({"model": "llama"} if rank == 0 else None, src=0, timeout=30)
    assert group.all_gather_obj(rank) == [0, 1, 2]
    try:
        group.barrier(timeout=30)
    except muster.TimedOut as late:
        print("missing:", late.rank_numbers)
    group.close()  # where the server is, it waits for the others
    print(f"moved: rank {rank}", flush=True)


def work(rank: int, ports: list[int]) -> None:
    stand_in_for_vllm()
    patch()
    kept(ports[0], rank)
    moved(ports[1], rank)


def held_port() -> socket.socket:
    """A port that nobody else gets; rank 0 listens there."""
    holding = socket.socket()
    holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holding.bind(("127.0.0.1", 0))
    return holding


def main() -> None:
    context = multiprocessing.get_context("spawn")
    holding = [held_port(), held_port()]
    ports = [one.getsockname()[1] for one in holding]
    processes = [context.Process(target=work, args=(rank, ports)) for rank in range(RANKS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    for one in holding:
        one.close()
    sys.exit(max(process.exitcode or 0 for process in processes))


if __name__ == "__main__":
    main()
