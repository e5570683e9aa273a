"""muster.compat.vllm with torch: tensors, and groups on its stores. Skipped where torch is not."""

from __future__ import annotations

import os
import pickle
import threading
import types
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import muster
import pytest
from conftest import PATIENCE, in_threads
from muster.compat._errors import as_runtime_error
from muster.compat._keys import KeyStore
from muster.compat.vllm import StatelessProcessGroup
from vllm_groups import created, listening

torch = pytest.importorskip("torch", reason="there is no torch (Debian: python3-torch)")
dist = torch.distributed

import muster.torch  # noqa: E402
from muster.compat._torch_store import GroupStore  # noqa: E402
from muster.torch._errors import NetworkError, StoreError  # noqa: E402

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


def test_the_store_of_a_created_group_is_one_of_torchs() -> None:
    def part(group: StatelessProcessGroup) -> None:
        store, session = group.store, group.store.session
        assert isinstance(store, dist.Store) and isinstance(store, muster.torch.Store)
        assert session.address == f"{store.host}:{store.port}" and store.timeout == TIMEOUT
        prefix = dist.PrefixStore("p", store)  # by which native code reaches it
        prefix.set(f"{group.rank}", "there")
        prefix.wait(["0", "1"])
        assert [prefix.get("0"), prefix.get("1")] == [b"there", b"there"] and prefix.add("n", 1) > 0
        # The keys are those of ranks without torch, and of C++.
        assert session.get("p/0") == KeyStore(session, PATIENCE).get("p/1") == b"there"
        assert "p/0" in store.list_keys() and store.compare_set("c", "", "d") == b"d"
        group.barrier()
        store.set_timeout(timedelta(milliseconds=100))
        with pytest.raises(muster.TimedOut):
            store.get("missing")
        with pytest.raises(Exception, match="missing"):
            prefix.get("missing")
        group.barrier()

    created(2, part)


def test_a_created_group_and_its_store_of_torchs_leave_with_their_object(
    process: Callable[..., Any]
) -> None:
    serving, port = listening()
    one = process("""
        import torch.distributed as dist
        from muster.compat.vllm import StatelessProcessGroup
        group = StatelessProcessGroup.create("127.0.0.1", int(sys.argv[1]), 1, 2)
        prefix = dist.PrefixStore("p", group.store)
        prefix.set("a", "1")
        del prefix, group
        print("gone", flush=True)
        sys.stdin.read()
    """, str(port))
    group = StatelessProcessGroup.create(
        "127.0.0.1", port, 0, 2, store_timeout=PATIENCE, listen_socket=serving
    )
    assert one.stdout.readline() == "gone\n"
    assert group.store.get("p/a") == b"1"
    with pytest.raises(muster.RankLeft):
        group.barrier()
    group.store = None
    one.communicate(timeout=PATIENCE)


def test_calls_of_the_store_have_the_whole_time_however_late_the_group_has_formed() -> None:
    def call(*_: Any, timeout: timedelta) -> None:
        given.append(timeout)

    session: Any = types.SimpleNamespace(set=call, queue_length=call)
    given: list[timedelta] = []
    store = GroupStore(session, 40.0, "127.0.0.1", 1)
    store.set("a", "1")
    store.queue_len("q")
    assert given == [timedelta(seconds=40)] * 2


def test_errors_are_torchs_too() -> None:
    def part(group: StatelessProcessGroup) -> None:
        with pytest.raises(StoreError) as raised:
            group.barrier(timeout=0.2) if group.rank == 0 else group.recv_obj(0)
        assert isinstance(raised.value, muster.MusterError)
        again = pickle.loads(pickle.dumps(raised.value))
        assert isinstance(again, StoreError) and type(again).__name__ == type(raised.value).__name__

    created(2, part, timeout=1.0)
    refused = as_runtime_error(muster.Unavailable("no server", code="unavailable"))
    assert isinstance(refused, NetworkError) and isinstance(refused, muster.Unavailable)


def test_a_tensor_that_requires_a_gradient_does_so_elsewhere() -> None:
    def part(group: StatelessProcessGroup) -> None:
        weights = torch.full((2,), 1.0 + group.rank, requires_grad=group.rank == 0)
        shown = group.broadcast(weights, src=0)
        assert shown.requires_grad and shown.is_leaf and shown.tolist() == [1.0, 1.0]
        assert not group.broadcast(torch.ones(2), src=1).requires_grad
        assert not group.all_reduce(weights).requires_grad

    created(2, part)


@pytest.mark.parametrize("wrong", [-1, 2])
def test_a_rank_that_is_not_there_is_a_key_error(wrong: int) -> None:
    for store in (None, dist.HashStore()):
        calls: list[tuple[Any, ...]] = [
            ("send_obj", 1, wrong), ("recv_obj", wrong), ("broadcast_obj", 1, wrong),
            ("send", torch.ones(1), wrong), ("recv", torch.ones(1), wrong),
            ("broadcast", torch.ones(1), wrong),
        ]
        group = StatelessProcessGroup(0, 2, store)
        for name, *arguments in calls:
            with pytest.raises(KeyError, match="ranks are 0 to 1"):
                getattr(group, name)(*arguments)
