"""muster.compat.vllm: the class, without torch and without vLLM."""

from __future__ import annotations

import copy
import dataclasses
import gc
import inspect
import pickle
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import muster
import pytest
from conftest import PATIENCE, in_threads
from muster.compat._keys import KeyStore
from muster.compat.vllm import StatelessProcessGroup
from vllm_groups import created, held, listening, on_keys

MIB = 1 << 20


class Thing:
    """What only pickle takes."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing) and other.value == self.value


def exchange(group: Any) -> None:
    me, size = group.rank, group.world_size
    after, before = (me + 1) % size, (me - 1) % size
    group.send_obj(Thing(me), after)
    group.send_obj({me, b"\0"}, after)
    assert group.recv_obj(before) == Thing(before)
    assert group.recv_obj(before) == {before, b"\0"}
    secret = {"secret": [1, None]}
    assert group.broadcast_obj(secret if me == 1 else None, src=1) == secret
    assert group.all_gather_obj(Thing(me)) == [Thing(rank) for rank in range(size)]
    group.barrier()


def test_objects_go_between_ranks_of_a_created_group() -> None:
    def part(group: StatelessProcessGroup) -> None:
        assert (group.rank, group.world_size) == (group._hosted.rank, 3)  # type: ignore[union-attr]
        exchange(group)
        assert group.send_dst_counter[(group.rank + 1) % 3] == 2
        assert group.recv_src_counter[(group.rank - 1) % 3] == 2
        assert group.broadcast_send_counter == (1 if group.rank == 1 else 0)
        group.expire_data()
        assert not group.entries

    created(3, part)


def test_objects_go_between_ranks_on_a_store(address: str, namespace: str) -> None:
    on_keys(
        StatelessProcessGroup, address, namespace, 3, exchange, timeout=PATIENCE, expiration=3600.0
    )


def test_one_rank_alone(address: str, namespace: str) -> None:
    def part(group: Any) -> None:
        assert group.broadcast_obj("a", 0) == "a"
        assert group.all_gather_obj("a") == ["a"]
        group.barrier(timeout=5.0)

    created(1, part)
    on_keys(StatelessProcessGroup, address, namespace, 1, part, PATIENCE, 3600.0)


def test_objects_that_are_too_long_for_the_server_go_in_parts() -> None:
    def long(rank: int) -> bytes:
        return bytes([rank]) * (17 * MIB + rank)

    def part(group: StatelessProcessGroup) -> None:
        other = 1 - group.rank
        if group.rank == 0:
            group.send_obj(long(0), 1)
            group.send_obj("behind", 1)
        else:
            assert group.recv_obj(0) == long(0)
            assert group.recv_obj(0) == "behind"
        assert group.broadcast_obj(long(1) if group.rank == 1 else None, src=1) == long(1)
        gathered = group.all_gather_obj(long(1) if group.rank == 1 else "short")
        assert gathered == ["short", long(1)]
        assert group.all_gather_obj(other) == [1, 0]

    created(2, part)


@pytest.mark.parametrize("name", ["store", "socket"])
def test_none_ends_the_server_and_frees_the_port(name: str) -> None:
    serving, port = listening()
    group = StatelessProcessGroup.create("127.0.0.1", port, 0, 1, listen_socket=serving)
    with pytest.raises(OSError):
        socket.create_server(("127.0.0.1", port)).close()
    setattr(group, name, None)
    socket.create_server(("127.0.0.1", port)).close()
    group.store = group.socket = None  # again
    with pytest.raises(muster.Closed):
        group.broadcast_obj(1, 0)
    with pytest.raises(RuntimeError):
        group.barrier()
    again = StatelessProcessGroup.create("127.0.0.1", port, 0, 1)
    again.barrier()


def test_a_group_that_is_gone_has_freed_its_port() -> None:
    for _ in range(3):
        serving, port = listening()
        group = StatelessProcessGroup.create("127.0.0.1", port, 0, 1, listen_socket=serving)
        group.barrier()
        del group
        gc.collect()
        socket.create_server(("127.0.0.1", port)).close()


def test_a_server_whose_object_is_gone_stays_until_the_others_have_gone() -> None:
    serving, port = listening()
    gone, fetched = threading.Event(), threading.Event()

    def work(rank: int) -> Any:
        group = StatelessProcessGroup.create(
            "127.0.0.1", port, rank, 2, listen_socket=serving if rank == 0 else None
        )
        if rank == 0:
            group.broadcast_obj("late", 0)
            group.send_obj("later", 1)
            del group
            gc.collect()
            gone.set()
            assert fetched.wait(PATIENCE)
            return None
        assert gone.wait(PATIENCE)
        got = group.broadcast_obj(None, 0), group.recv_obj(0)
        with pytest.raises(muster.RankLeft):
            group.barrier()
        fetched.set()
        kept.append(group)
        return got

    kept: list[StatelessProcessGroup] = []
    assert in_threads(2, work)[1] == ("late", "later")
    # Rank 0 may serve there again, whoever has not gone.
    again = StatelessProcessGroup.create("127.0.0.1", port, 0, 1)
    again.store = None
    with pytest.raises(RuntimeError):
        kept[0].store.get("anything")


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_the_end_of_the_process_of_rank_0_waits_for_the_others(
    method: str, process: Callable[..., Any]
) -> None:
    """Of a child of multiprocessing, too, which ends in its own way."""
    holding, port = held()
    one = process("""
        import multiprocessing
        from muster.compat.vllm import StatelessProcessGroup
        def work(method, port):
            if method == "fork":
                global group  # else it is gone with the function
            group = StatelessProcessGroup.create("127.0.0.1", port, 0, 2)
            group.broadcast_obj("late", 0)
            print("given", flush=True)
        method, port = sys.argv[1], int(sys.argv[2])
        if method == "fork":
            child = multiprocessing.get_context("fork").Process(target=work, args=(method, port))
            child.start()
            child.join()
            sys.exit(child.exitcode)
        work(method, port)
    """, method, str(port))
    group = StatelessProcessGroup.create("127.0.0.1", port, 1, 2, store_timeout=PATIENCE)
    assert one.stdout.readline() == "given\n"
    time.sleep(0.5)  # the process would have ended by now
    assert one.poll() is None
    assert group.broadcast_obj(None, 0) == "late"
    group.store = None
    assert one.wait(PATIENCE) == 0
    holding.close()


def test_the_keys_of_a_created_group_are_those_of_its_server() -> None:
    def part(group: StatelessProcessGroup) -> None:
        if group.rank == 0:
            group.store.set("a", b"1")
        assert group.store.get("a") == b"1"
        assert group.store.add("n", 2) >= 2
        group.barrier()
        assert group.store.num_keys() == 2
        group.barrier()
        assert group.store.compare_set("c", "", "d") == b"d"
        assert group.store.compare_set("none", "x", "y") == b"x"
        assert group.store.compare_set("a", "x", "y") == b"1"
        group.barrier()
        if group.rank == 0:
            address = group.store.session.address
            with muster.Store(address) as others:
                assert others.get("a") == b"1"
            assert group.store.delete_key("a")
            assert not group.store.check(["a"])

    created(2, part)


class Meddler:
    """A store from which an empty key goes once, just before it is compared with as empty."""

    def __init__(self, store: muster.Store) -> None:
        self.store, self.has_meddled = store, False

    def compare_set(
        self, key: str, expected: bytes | None, desired: bytes, *, timeout: Any
    ) -> muster.Compared:
        if expected is not None and not self.has_meddled:
            self.has_meddled = self.store.remove(key)
        return self.store.compare_set(key, expected, desired, timeout=timeout)


def test_an_empty_key_that_goes_in_between_is_compared_anew(address: str, namespace: str) -> None:
    with muster.Store(address, namespace=namespace) as store:
        store.set("k", "")
        meddler: Any = Meddler(store)
        assert KeyStore(meddler, PATIENCE).compare_set("k", "", "d") == b"d"
        assert meddler.has_meddled
        assert store.get("k", timeout=0) == b"d"


def test_whoever_does_not_come_is_named_when_the_group_forms() -> None:
    serving, port = listening()
    with pytest.raises(muster.TimedOut) as raised:
        StatelessProcessGroup.create(
            "127.0.0.1", port, 0, 3, store_timeout=1, listen_socket=serving
        )
    assert isinstance(raised.value, RuntimeError)
    assert raised.value.rank_numbers == [1, 2]
    again = pickle.loads(pickle.dumps(raised.value))
    assert isinstance(again, RuntimeError) and isinstance(again, muster.TimedOut)
    assert again.rank_numbers == [1, 2] and str(again) == str(raised.value)


def test_an_address_that_others_reach_is_refused_without_a_key() -> None:
    serving, port = listening()
    serving.close()
    with pytest.raises(muster.PermissionDenied, match="0.0.0.0"):
        StatelessProcessGroup.create("0.0.0.0", port, 0, 1, store_timeout=5)


def test_a_rank_that_leaves_is_named_by_the_next_collective() -> None:
    def part(group: StatelessProcessGroup) -> None:
        if group.rank == 1:
            group.send_obj("last", 0)
            group.store = None
            return
        assert group.recv_obj(1) == "last"
        with pytest.raises(muster.RankLeft) as raised:
            group.barrier(timeout=PATIENCE)
        assert raised.value.rank_numbers == [1]

    created(2, part)


# The class as such.


def test_the_signature_is_that_of_the_original() -> None:
    names = list(inspect.signature(StatelessProcessGroup).parameters)
    assert names == [
        "rank", "world_size", "store", "data_expiration_seconds", "send_dst_counter",
        "recv_src_counter", "broadcast_send_counter", "broadcast_recv_src_counter", "entries",
        "socket",
    ]
    assert [field.name for field in dataclasses.fields(StatelessProcessGroup)] == names
    assert list(inspect.signature(StatelessProcessGroup.create).parameters) == [
        "host", "port", "rank", "world_size", "data_expiration_seconds", "store_timeout",
        "listen_socket", "timeout_seconds",
    ]
    given: dict[str, list[str]] = {
        "send_obj": ["obj", "dst"], "recv_obj": ["src"], "broadcast_obj": ["obj", "src"],
        "all_gather_obj": ["obj"], "broadcast": ["tensor", "src"], "send": ["tensor", "dst"],
        "recv": ["tensor", "src"], "all_reduce": ["tensor", "op"], "barrier": ["timeout"],
        "expire_data": [],
    }
    for name, parameters in given.items():
        method = getattr(StatelessProcessGroup, name)
        assert list(inspect.signature(method).parameters) == ["self", *parameters]


def test_older_ways_to_construct_it_work() -> None:
    marker = socket.socket()
    group = StatelessProcessGroup(0, 2, None, marker, 60)
    assert (group.socket, group.data_expiration_seconds) == (marker, 60)
    marker.close()
    group = StatelessProcessGroup(0, 2, None, None)
    assert (group.socket, group.data_expiration_seconds) == (None, 3600)
    group = StatelessProcessGroup(rank=1, world_size=2, store=None, socket=None)
    assert group.send_dst_counter == group.recv_src_counter == {0: 0, 1: 0}
    with pytest.raises(muster.Closed):
        group.send_obj(1, 0)
    for rank in (-1, 2):
        with pytest.raises(ValueError):
            StatelessProcessGroup(rank, 2, None)


def test_a_group_is_not_pickled_or_copied() -> None:
    group = StatelessProcessGroup(0, 2, None)
    ways: list[Any] = [pickle.dumps, copy.copy, copy.deepcopy]
    for way in ways:
        with pytest.raises(TypeError, match="a StatelessProcessGroup cannot be .*: it is one"):
            way(group)


def test_subclasses_may_do_without_the_constructor() -> None:
    class Bare(StatelessProcessGroup):
        def __init__(self, rank: int) -> None:
            self.rank = rank
            self.world_size = 2

        def broadcast_obj(self, obj: Any, src: int) -> Any:
            return obj, src

    bare = Bare(1)
    assert bare.broadcast_obj("a", 0) == ("a", 0)
    assert isinstance(bare, StatelessProcessGroup)
    assert hash(bare) and bare != Bare(1)


def test_subclasses_may_use_the_store(address: str, namespace: str) -> None:
    class Custom(StatelessProcessGroup):
        def barrier(self, timeout: float = 30.0) -> None:
            self.store.set(f"mine/{self.rank}", pickle.dumps("ready"))
            for rank in range(self.world_size):
                assert pickle.loads(self.store.get(f"mine/{rank}")) == "ready"

        def broadcast_obj(self, obj: Any, src: int) -> Any:
            return super().broadcast_obj((obj, "wrapped"), src)

    def part(group: Any) -> None:
        group.barrier()
        assert group.all_gather_obj(group.rank)[1 - group.rank] == (1 - group.rank, "wrapped")

    on_keys(Custom, address, namespace, 2, part, PATIENCE, 3600.0)


def test_create_may_be_replaced(
    address: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create(
        host: str, port: int, rank: int, world_size: int, data_expiration_seconds: int = 3600
    ) -> StatelessProcessGroup:
        store = muster.Store(f"{host}:{port}", namespace=namespace)
        return StatelessProcessGroup(
            rank=rank, world_size=world_size, store=KeyStore(store, PATIENCE), socket=None,
            data_expiration_seconds=data_expiration_seconds,
        )

    monkeypatch.setattr(StatelessProcessGroup, "create", staticmethod(create))
    host, _, port = address.rpartition(":")

    def work(rank: int) -> list[Any]:
        group = StatelessProcessGroup.create(host, int(port), rank, 2)
        group.barrier()
        return group.all_gather_obj(rank)

    assert in_threads(2, work) == [[0, 1], [0, 1]]
