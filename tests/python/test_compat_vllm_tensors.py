"""muster.compat.vllm with torch: tensors, and groups on its stores. Skipped where torch is not."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import muster
import pytest
from conftest import PATIENCE, in_threads
from muster.compat.vllm import StatelessProcessGroup
from vllm_groups import created, listening

torch = pytest.importorskip("torch", reason="there is no torch (Debian: python3-torch)")
dist = torch.distributed
TIMEOUT = timedelta(seconds=PATIENCE)


def tensors(group: Any) -> None:
    rank, size = group.rank, group.world_size
    mine = torch.arange(6, dtype=torch.float32).reshape(2, 3) + rank
    shown = group.broadcast(mine, src=1)
    assert torch.equal(shown, torch.arange(6).reshape(2, 3) + 1.0)
    assert (shown is mine) == (rank == 1)
    # Objects and tensors between the same two ranks are counted apart.
    group.send_obj("object", (rank + 1) % size)
    group.send(mine, (rank + 1) % size)
    before = (rank - 1) % size
    into = torch.zeros(2, 3)
    assert group.recv(into, before) is into
    assert torch.equal(into, torch.arange(6).reshape(2, 3) + float(before))
    assert group.recv_obj(before) == "object"
    part = torch.arange(10_000.0)[rank:rank + 2]  # of a long storage
    for op, expected in (
        (dist.ReduceOp.SUM, [3.0, 6.0]), (dist.ReduceOp.PRODUCT, [0.0, 6.0]),
        (dist.ReduceOp.MAX, [2.0, 3.0]), (dist.ReduceOp.MIN, [0.0, 1.0]),
    ):
        assert group.all_reduce(part, op).tolist() == expected
    assert group.all_reduce(part.requires_grad_()).tolist() == [3.0, 6.0]
    assert part.tolist() == [rank, rank + 1]
    with pytest.raises(ValueError):
        group.all_reduce(part, dist.ReduceOp.BAND)
    group.barrier()


def test_tensors_of_a_created_group() -> None:
    created(3, tensors)


def test_long_tensors_go_in_parts() -> None:
    def part(group: StatelessProcessGroup) -> None:
        long = torch.full((5 << 20,), float(group.rank + 1))
        assert group.all_reduce(long)[-1] == 3.0
        if group.rank == 0:
            group.send(long, 1)
        else:
            assert group.recv(torch.zeros_like(long), 0)[-1] == 1.0

    created(2, part)


def tcp_stores(world_size: int) -> Callable[[int], Any]:
    ports: list[int] = []
    made = threading.Event()

    def store_of(rank: int) -> Any:
        if rank != 0:
            assert made.wait(PATIENCE)
            return dist.TCPStore("127.0.0.1", ports[0], world_size, False, TIMEOUT, False)
        store = dist.TCPStore("127.0.0.1", 0, world_size, True, TIMEOUT, False)
        ports.append(store.port)
        made.set()
        return store

    return store_of


def stores_of(kind: str, folder: Any, world_size: int) -> Callable[[int], Any]:
    if kind == "tcp":
        return tcp_stores(world_size)
    if kind == "prefix":
        below = tcp_stores(world_size)
        return lambda rank: dist.PrefixStore("ours", below(rank))
    if kind == "file":
        return lambda rank: dist.FileStore(os.fspath(folder / "store"), world_size)
    shared = dist.HashStore()
    return lambda rank: shared


@pytest.mark.parametrize("kind", ["tcp", "prefix", "file", "hash"])
def test_a_group_on_a_store_of_torch(kind: str, tmp_path: Any) -> None:
    store_of = stores_of(kind, tmp_path, 3)

    def part(rank: int) -> None:
        group = StatelessProcessGroup(rank, 3, store_of(rank))
        kept.append(group)
        tensors(group)
        assert group.all_gather_obj({rank}) == [{0}, {1}, {2}]
        for number in range(5):
            group.barrier()
            assert group.broadcast_obj(number if rank == 2 else None, 2) == number
        group.barrier()

    kept: list[Any] = []
    in_threads(3, part)


def test_a_barrier_on_tcpstore_that_fails_names_the_missing_and_the_next_one_works() -> None:
    """Also with PyTorch 1, whose store cannot take a wait back."""
    store_of, early = tcp_stores(2), threading.Event()

    def part(rank: int) -> None:
        group = StatelessProcessGroup(rank=rank, world_size=2, store=store_of(rank), socket=None)
        kept.append(group)
        if rank == 1:
            assert early.wait(PATIENCE)
        with pytest.raises(muster.TimedOut) as raised:
            group.barrier(0.5)
        early.set()
        assert raised.value.rank_numbers == [1]
        group.barrier()
        assert group.all_gather_obj(rank) == [0, 1]

    kept: list[Any] = []
    in_threads(2, part)


def test_a_store_of_torch_that_comes_to_our_port_is_named(process: Callable[..., Any]) -> None:
    """In a process of its own: to connect, PyTorch 1 keeps the interpreter to itself."""
    serving, port = listening()
    unpatched = process("""
        from datetime import timedelta
        from torch.distributed import TCPStore
        print("imported", flush=True)
        try:
            TCPStore("127.0.0.1", int(sys.argv[1]), 2, False, timedelta(seconds=2))
        except RuntimeError as error:
            print("refused")
    """, str(port))
    assert unpatched.stdout.readline() == "imported\n"  # seconds, which are not part of the time
    with pytest.raises(muster.TimedOut, match="TCPStore at 127.0.0.1"):
        StatelessProcessGroup.create(
            "127.0.0.1", port, 0, 2, store_timeout=8, listen_socket=serving
        )
    assert unpatched.communicate(timeout=PATIENCE)[0] == "refused\n"


def test_our_rank_that_comes_to_a_store_of_torch_says_so() -> None:
    store = dist.TCPStore("127.0.0.1", 0, 2, True, TIMEOUT, False)
    with pytest.raises(muster.ProtocolBroken, match="rank 0 uses the class"):
        StatelessProcessGroup.create("127.0.0.1", store.port, 1, 2, store_timeout=30)
    store.set("still", "there")
    assert store.get("still") == b"there"
