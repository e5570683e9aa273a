"""Groups, from Python."""

from __future__ import annotations

import contextlib
import enum
import random
import socket
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import muster
import pytest

Ranks = Callable[..., list[Any]]


def test_objects_go_to_everybody(in_ranks: Ranks) -> None:
    def part(group: muster.StatelessProcessGroup) -> Any:
        assert group.all_gather_obj({"rank": group.rank}) == [{"rank": rank} for rank in range(3)]
        given = [1, None, "ü"] if group.rank == 1 else None
        assert group.broadcast_obj(given, src=1) == [1, None, "ü"]
        gathered = group.gather_obj(group.rank, dst=2)
        assert gathered == ([0, 1, 2] if group.rank == 2 else None)
        assert group.scatter_obj("abc" if group.rank == 0 else None) == "abc"[group.rank]
        assert group.all_reduce_obj(group.rank, lambda a, b: a * 10 + b) == 12
        group.barrier()
        return group.counters.rounds

    assert in_ranks(3, part) == [6, 6, 6]


@pytest.mark.parametrize("codec", [muster.RAW, muster.JSON, muster.MSGPACK, muster.PICKLE])
def test_objects_go_from_rank_to_rank_in_order(in_ranks: Ranks, codec: muster.Codec) -> None:
    if codec is muster.MSGPACK:
        pytest.importorskip("msgpack")
    objects: list[Any] = [b"a\0b", b""] if codec is muster.RAW else ["a", [1, {"k": None}]]

    def part(group: muster.StatelessProcessGroup) -> None:
        other = 1 - group.rank
        for obj in objects:
            group.send_obj(obj, other, codec=codec)
            group.send_obj(obj, other, codec=codec, tag=7)
        assert [group.recv_obj(other, codec=codec) for _ in objects] == objects
        received = [group.recv_numbered_obj(other, codec=codec, tag=7) for _ in objects]
        assert received == list(zip(objects, range(2)))

    in_ranks(2, part)


def test_what_a_codec_refuses_is_said_and_nothing_was_done(in_ranks: Ranks) -> None:
    def part(group: muster.StatelessProcessGroup) -> None:
        with pytest.raises(muster.CodecFailure, match="MSGPACK takes bytes") as raised:
            group.all_gather_obj(b"bytes")
        assert raised.value.happened == "no"
        with pytest.raises(muster.CodecFailure):
            group.send_obj(float("nan"), 0)
        deep: Any = []
        for _ in range(100_000):
            deep = [deep]
        with pytest.raises(muster.CodecFailure):
            group.send_obj(deep, 0)
        group.send_obj(b"{", 1 - group.rank, codec=muster.RAW)
        with pytest.raises(muster.CodecMismatch) as mismatch:
            group.recv_obj(1 - group.rank)
        assert mismatch.value.ranks[0].rank == 1 - group.rank
        assert group.recv_obj(1 - group.rank, codec=muster.RAW) == b"{"  # it was not consumed
        group.barrier()

    in_ranks(2, part)


class Stage(str, enum.Enum):
    PREFILL = "prefill"


class Level(enum.IntEnum):
    LOW = 1


class Place(NamedTuple):
    host: str
    port: int


class SameText(str):
    """Other keys of the same text."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


class Hiding(dict[str, int]):
    def items(self) -> Any:
        return []


class Unnamed:
    def __reduce__(self) -> Any:
        raise NameError("it has no name")


class FromNowhere:
    def __reduce__(self) -> Any:
        return eval, ("nowhere.to_be_found",)


@pytest.mark.parametrize("codec, obj, kind", [
    (muster.JSON, {1: "a", "1": "b"}, "int"),
    (muster.JSON, {Level.LOW: "a"}, "Level"),
    (muster.JSON, {1.5: "a"}, "float"),
    (muster.JSON, {True: "a", "true": "b"}, "bool"),
    (muster.JSON, {None: "a", "null": "b"}, "NoneType"),
    (muster.JSON, {b"a": "b"}, "bytes"),
    (muster.JSON, {(1, 2): "a"}, "tuple"),
    (muster.JSON, [0, ({"k": [{"k": {3: "deep"}}]},)], "int"),
    (muster.JSON, OrderedDict({"k": OrderedDict({4: "a"})}), "int"),
    (muster.JSON, {SameText("a"): 1, SameText("a"): 2}, "the same str"),
    (muster.JSON, [Hiding(a=1, b=2)], "items"),
    (muster.MSGPACK, {SameText("a"): 1, SameText("a"): 2}, "arrive as one"),
    (muster.MSGPACK, [Hiding(a=1, b=2)], "items"),
    (muster.PICKLE, lambda: 1, "pickle"),
    (muster.PICKLE, Unnamed(), "it has no name"),
    (muster.MSGPACK, {(1, 2): "a"}, "tuple"),
    (muster.MSGPACK, {Place("a", 1): "a"}, "Place"),
    (muster.MSGPACK, [0, ({"k": [{"k": {(): "deep"}}]},)], "tuple"),
])
def test_keys_that_would_arrive_as_others_are_refused(
    in_ranks: Ranks, codec: muster.Codec, obj: Any, kind: str
) -> None:
    if codec is muster.MSGPACK:
        pytest.importorskip("msgpack")

    def part(group: muster.StatelessProcessGroup) -> None:
        calls: list[Callable[[], object]] = [
            lambda: group.send_obj(obj, 0, codec=codec),
            lambda: group.broadcast_obj(obj, codec=codec),
            lambda: group.scatter_obj([obj], codec=codec),
            lambda: group.all_gather_obj(obj, codec=codec),
        ]
        for call in calls:
            with pytest.raises(muster.CodecFailure, match=kind) as raised:
                call()
            assert raised.value.happened == "no"
        assert group.counters == (0, 0, 0)

    in_ranks(1, part)


def test_keys_that_arrive_as_they_are_pass(in_ranks: Ranks) -> None:
    numpy: Any = pytest.importorskip("numpy")
    text = numpy.str_("numpy")
    obj: Any = {Stage.PREFILL: 1, text: [{"": {}}, ({"ü": None},)]}
    obj["itself"] = [obj[text], obj[text]]

    def part(group: muster.StatelessProcessGroup) -> None:
        got = group.broadcast_obj(obj)
        assert list(got) == ["prefill", "numpy", "itself"]
        assert got[Stage.PREFILL] == 1 and got[text] == [{"": {}}, [{"ü": None}]]
        assert {type(key) for key in got} == {str}
        circle: list[Any] = [{}]
        circle[0]["k"] = circle
        with pytest.raises(muster.CodecFailure):
            group.broadcast_obj(circle)

    in_ranks(1, part)


def test_whatever_pickle_raises_is_a_codec_failure(in_ranks: Ranks) -> None:
    def part(group: muster.StatelessProcessGroup) -> None:
        with pytest.raises(muster.CodecFailure, match="nowhere") as raised:
            group.all_gather_obj(FromNowhere(), codec=muster.PICKLE)
        assert isinstance(raised.value.__cause__, NameError)

    in_ranks(1, part)


def test_msgpack_takes_keys_of_other_types(in_ranks: Ranks) -> None:
    msgpack = pytest.importorskip("msgpack")
    obj = {1: "a", "1": "b", b"1": [1.5], None: {True: 0}, msgpack.ExtType(5, b"x"): ""}

    def part(group: muster.StatelessProcessGroup) -> None:
        assert group.broadcast_obj(obj, codec=muster.MSGPACK) == obj

    in_ranks(1, part)


def test_every_rank_gets_what_was_decoded(in_ranks: Ranks) -> None:
    """Classes that a codec does not keep: the root has them as little as the others."""
    given = {"place": Place("a", 1), "level": Level.LOW, "stage": Stage.PREFILL}
    plain = {"place": ["a", 1], "level": 1, "stage": "prefill"}

    def part(group: muster.StatelessProcessGroup) -> None:
        for got in (
            group.broadcast_obj(given),
            group.scatter_obj([given, given]),
            *group.all_gather_obj(given),
            *(group.gather_obj(given) or []),
            group.all_reduce_obj(given, lambda first, _: first),
        ):
            assert got == plain
            assert [type(value) for value in got.values()] == [list, int, str]

    in_ranks(2, part)


def test_codecs_are_named_and_ids_of_musters_refused(in_ranks: Ranks) -> None:
    class Taken:
        id = 3

        def encode(self, obj: Any, /) -> Any:
            raise AssertionError("not called")

        decode = encode

    def part(group: muster.StatelessProcessGroup) -> None:
        with pytest.raises(ValueError, match="its id is 3; those below 256"):
            group.send_obj("x", group.rank, codec=Taken())
        group.send_obj("x", group.rank)
        with pytest.raises(muster.CodecMismatch, match=r"3 \(JSON\).* 9 \(PICKLE\)"):
            group.recv_obj(group.rank, codec=muster.PICKLE)

    in_ranks(1, part)


def test_what_cannot_be_decoded_is_not_consumed(in_ranks: Ranks) -> None:
    class Broken:
        id = 300

        def encode(self, obj: Any, /) -> Any:
            return obj

        def decode(self, data: bytes, /) -> Any:
            raise ValueError("never")

    class Mended(Broken):
        def decode(self, data: bytes, /) -> Any:
            return data

    def part(group: muster.StatelessProcessGroup) -> None:
        group.send_obj(b"x", group.rank, codec=Broken())
        for _ in range(2):
            with pytest.raises(muster.CodecFailure, match="object of rank") as raised:
                group.recv_obj(group.rank, codec=Broken())
            assert raised.value.rank_numbers == [group.rank]
        assert group.recv_obj(group.rank, codec=Mended()) == b"x"

    in_ranks(1, part)


def test_who_is_missing_is_named(in_ranks: Ranks) -> None:
    def part(group: muster.StatelessProcessGroup) -> None:
        if group.rank == 0:
            with pytest.raises(muster.TimedOut) as raised:
                group.barrier(timeout=0.2)
            error = raised.value
            assert error.rank_numbers == [1]
            assert error.ranks[0].joined
            assert error.ranks[0].pid > 0
            assert error.ranks[0].host
            assert error.group == "g"
            assert error.epoch == group.epoch
            assert error.round == 1
            assert error.decided_by_rank == 0
            assert "rank 1" in str(error)
            group.store.set("done", "")
        else:
            group.store.get("done")

    in_ranks(2, part)


def test_a_lost_rank_is_told_and_the_others_regroup(in_ranks: Ranks, namespace: str) -> None:
    def part(group: muster.StatelessProcessGroup) -> Any:
        told: list[muster.MusterError] = []
        heard = threading.Event()

        def handler(error: muster.MusterError) -> None:
            told.append(error)
            heard.set()

        watch = group.watch(handler)
        group.barrier()
        if group.rank == 1:
            group.leave()
            return None
        with pytest.raises((muster.RankLeft, muster.RankLost)) as raised:
            while True:
                group.barrier()
        assert raised.value.rank_numbers == [1]
        assert heard.wait(20)
        assert isinstance(told[0], muster.RankLeft)
        watch.close()
        again = group.regroup()
        assert again.world_size == 2
        assert again.epoch > group.epoch
        with pytest.raises(muster.StaleEpoch):
            group.barrier()
        assert again.all_gather_obj(again.rank) == [0, 1]
        assert [member.state for member in again.members()] == ["live", "live"]
        again.barrier()
        return again.members()[again.rank].previous_rank

    assert in_ranks(3, part) == [0, None, 2]


def test_an_interruption_reaches_who_waits(in_ranks: Ranks) -> None:
    def part(group: muster.StatelessProcessGroup) -> None:
        if group.rank == 0:
            group.interrupt("it restores another group")
        else:
            with pytest.raises(muster.GroupInterrupted, match="restores another group"):
                group.barrier()
        group.barrier()

    in_ranks(2, part)


def test_a_hosted_group_needs_no_server(tmp_path: Any) -> None:
    results: list[Any] = [None, None]

    def work(rank: int) -> None:
        with muster.StatelessProcessGroup.create(
            f"unix:{tmp_path}/socket", 0, rank, 2, store_timeout=20
        ) as group:
            group.send_obj(rank, 1 - rank)
            results[rank] = group.recv_obj(1 - rank)
            group.barrier()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [1, 0]


def test_what_nobody_received_can_be_dropped(in_ranks: Ranks) -> None:
    def part(group: muster.StatelessProcessGroup) -> None:
        group.send_obj(1, 0)
        time.sleep(0.01)
        assert group.expire_data(0.005) == 1
        with pytest.raises(muster.Expired):
            group.recv_obj(0)
        assert group.recover() == (0, False, None, [])

    in_ranks(1, part)


def test_errors_of_options_name_them(store: muster.Store) -> None:
    with pytest.raises(muster.InvalidArgument):
        muster.StatelessProcessGroup(store, "g", 2, 2)
    with pytest.raises(ValueError, match="host_server"):
        muster.StatelessProcessGroup.create(
            "127.0.0.1", 1, 0, 1, host_server="x",  # type: ignore[arg-type]
        )


def test_a_store_of_a_group_outlives_it(store: muster.Store) -> None:
    group = muster.StatelessProcessGroup(store, "g", 0, 1)
    shared = group.store
    assert group.close() == 0
    shared.set("k", "v")
    del group
    assert shared.get("k") == b"v"


def test_a_group_may_be_closed_twice(store: muster.Store) -> None:
    with muster.StatelessProcessGroup(store, "g", 0, 1) as group:
        shown = repr(group)
        assert group.close() == 0
        assert group.close() == 0
        group.cancel()
    assert (group.name, group.rank, group.world_size) == ("g", 0, 1)
    assert repr(group) == shown.replace(">", ", closed>")
    calls: list[Callable[[], object]] = [
        lambda: group.barrier(), lambda: group.all_gather_obj(1), lambda: group.send_obj(1, 0),
        lambda: group.recv_obj(0), lambda: group.members(), lambda: group.leave(),
        lambda: group.regroup(), lambda: group.interrupt("why"), lambda: group.watch(print),
        lambda: group.store, lambda: group.counters,
    ]
    for call in calls:
        with pytest.raises(muster.Closed, match="closed here") as raised:
            call()
        assert (raised.value.group, raised.value.happened) == ("g", "no")


def free_port() -> int:
    """A free port below those that the kernel gives to others that ask for any."""
    while True:
        port = random.randrange(10000, 20000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def test_the_first_program_of_the_guide() -> None:
    program = Path(__file__).parents[2] / "examples/python/two_processes.py"
    port = free_port()
    ranks = [
        subprocess.Popen(
            [sys.executable, program, str(rank), str(port)], stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    try:
        for rank, process in enumerate(ranks):
            printed, _ = process.communicate(timeout=60)
            assert printed.splitlines() == [
                f"rank {rank}: rank {peer} has pid {ranks[peer].pid}" for peer in range(2)
            ]
    finally:
        for process in ranks:
            process.kill()
            process.wait()
