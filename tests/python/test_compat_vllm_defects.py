"""What is wrong with the algorithm of vLLM's class: a test each, which that algorithm fails, and
ours passes, on Muster's server and on a store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import muster
import pytest
from conftest import PATIENCE
from muster.compat.vllm import StatelessProcessGroup
from vllm_groups import Original, created, on_keys

Run = Callable[..., list[Any]]


def the_original(*raises: type[BaseException]) -> Any:
    """The test is to fail there, in this way alone."""
    return pytest.param("original", marks=pytest.mark.xfail(strict=True, raises=raises))


@pytest.fixture
def groups(request: pytest.FixtureRequest, address: str, namespace: str) -> Run:
    """Runs `part(group)` for each rank of a group of a kind."""

    def run(
        world_size: int, part: Callable[[Any], Any], *, timeout: float = PATIENCE,
        expiration: float = 3600.0,
    ) -> list[Any]:
        if request.param == "created":
            return created(world_size, part, timeout=timeout, expiration=expiration)
        kind: Any = Original if request.param == "original" else StatelessProcessGroup
        return on_keys(kind, address, namespace, world_size, part, timeout, expiration)

    return run


OURS = ["created", "on_store"]


@pytest.mark.parametrize("groups", [the_original(AssertionError), *OURS], indirect=True)
def test_two_senders_do_not_take_each_others_place(groups: Run) -> None:
    sent = threading.Barrier(3)

    def part(group: Any) -> list[Any]:
        if group.rank < 2:
            group.send_obj(f"from {group.rank}", 2)
        sent.wait(PATIENCE)
        return [group.recv_obj(source) for source in (0, 1)] if group.rank == 2 else []

    assert groups(3, part)[2] == ["from 0", "from 1"]


@pytest.mark.parametrize("groups", [the_original(AssertionError), *OURS], indirect=True)
def test_a_barrier_ends_at_its_time_out_and_names_the_missing(groups: Run) -> None:
    """The original outlives it by the store's own time-out."""
    over = threading.Event()

    def part(group: Any) -> Any:
        if group.rank == 2:
            assert over.wait(PATIENCE)
            return None
        began = time.monotonic()
        with pytest.raises(RuntimeError) as raised:
            group.barrier(1.0)
        took = time.monotonic() - began
        sent[group.rank].set()
        for one in sent:
            one.wait(PATIENCE)
        over.set()
        return took, getattr(raised.value, "rank_numbers", None)

    sent = [threading.Event(), threading.Event()]
    for took, missing in groups(3, part, timeout=5.0)[:2]:
        assert took < 3.0
        assert missing == [2]


@pytest.mark.parametrize("groups", OURS, indirect=True)
def test_a_barrier_has_one_outcome_for_all_and_the_next_one_is_in_step(groups: Run) -> None:
    early = threading.Event()

    def part(group: Any) -> None:
        if group.rank == 1:
            assert early.wait(PATIENCE)
            with pytest.raises(muster.TimedOut) as raised:
                group.barrier(PATIENCE)
        else:
            with pytest.raises(muster.TimedOut) as raised:
                group.barrier(0.5)
            early.set()
        assert raised.value.rank_numbers == [1]
        group.barrier(PATIENCE)
        assert group.all_gather_obj(group.rank) == [0, 1]

    groups(2, part)


@pytest.mark.parametrize("groups", [the_original(AssertionError), *OURS], indirect=True)
def test_a_slow_receiver_is_told_that_its_object_has_expired(groups: Run) -> None:
    """With the original it waits as long as the store does, and then does not know why."""
    expired = threading.Event()

    def part(group: Any) -> Any:
        if group.rank == 0:
            group.send_obj("old", 1)
            time.sleep(1.0)  # it is to be older than the expiration
            group.send_obj("new", 1)
            expired.set()
            return None
        assert expired.wait(PATIENCE)
        began = time.monotonic()
        try:
            group.recv_obj(0)
            failure: Any = None
        except RuntimeError as error:
            failure = error
        took = time.monotonic() - began
        return took, failure, group.recv_obj(0) if isinstance(failure, muster.Expired) else None

    took, failure, following = groups(2, part, timeout=5.0, expiration=0.5)[1]
    assert took < 3.0
    assert isinstance(failure, muster.Expired) and following == "new"


@pytest.mark.parametrize("groups", [the_original(AssertionError), *OURS], indirect=True)
def test_no_keys_are_left_behind(groups: Run) -> None:
    meet = threading.Barrier(3)

    def part(group: Any) -> tuple[int, int]:
        def counted() -> int:
            meet.wait(PATIENCE)
            count = int(group.store.num_keys())
            meet.wait(PATIENCE)
            return count

        group.barrier(PATIENCE)
        first = counted()
        for number in range(20):
            group.barrier(PATIENCE)
            group.send_obj(number, (group.rank + 1) % 3)
            group.recv_obj((group.rank - 1) % 3)
            group.broadcast_obj(number, 1)
            group.all_gather_obj(number)
        group.barrier(PATIENCE)
        return first, counted()

    for first, last in groups(3, part):
        assert last <= first


@pytest.mark.parametrize("groups", ["on_store"], indirect=True)
def test_a_failed_barrier_leaves_no_keys_when_all_have_seen_it(groups: Run) -> None:
    early, meet = threading.Event(), threading.Barrier(2)

    def part(group: Any) -> int:
        if group.rank == 1:
            assert early.wait(PATIENCE)
        with pytest.raises(muster.TimedOut):
            group.barrier(0.3)
        early.set()
        meet.wait(PATIENCE)
        return int(group.store.num_keys())

    assert groups(2, part) == [2, 2]  # the number of each rank's barriers
