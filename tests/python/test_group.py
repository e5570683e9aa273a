"""Groups, from Python."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

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
