"""What a cancelled take or pop does with a value that is on its way."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import muster
import pytest
from muster import aio


async def begun(call: Awaitable[bytes]) -> asyncio.Task[bytes]:
    """A task that awaits the call, which is under way."""
    task = asyncio.ensure_future(call)
    await asyncio.sleep(0)
    return task


async def end_of(task: asyncio.Task[bytes]) -> Any:
    """The exception of a task that was cancelled."""
    task.cancel()
    try:
        await task
    except asyncio.CancelledError as cancelled:
        return cancelled
    raise AssertionError("it was not cancelled")


def test_a_value_that_has_come_is_given_back(
    store: muster.Store, address: str, namespace: str
) -> None:
    """The store of this thread looks on: the task does not run in the meantime."""

    async def main() -> None:
        async with await aio.Store.connect(address, namespace=namespace) as taking:
            store.set("k", "old", ttl=60)
            task = await begun(taking.take("k"))
            while store.exists("k"):
                pass
            cancelled = await end_of(task)
            assert isinstance(cancelled.error, muster.Cancelled)
            assert cancelled.error.happened == "no"
            assert store.get("k") == b"old"
            ttl = next(iter(store.keys("k"))).ttl
            assert ttl is not None and ttl < 60

            store.queue_push("q", "1")
            store.queue_push("q", "2")
            first, second = await begun(taking.queue_pop("q")), await begun(taking.queue_pop("q"))
            while store.queue_length("q"):
                pass
            second.cancel()
            await asyncio.gather(end_of(first), end_of(second))
            assert store.queue_pop("q", timeout=0) == b"1"
            assert store.queue_pop("q", timeout=0) == b"2"

    asyncio.run(main())


def test_a_newer_value_stays_and_the_cancelled_call_has_the_old(
    store: muster.Store, address: str, namespace: str
) -> None:
    async def main() -> None:
        async with await aio.Store.connect(address, namespace=namespace) as taking:
            store.set("k", "old")
            task = await begun(taking.take("k"))
            while store.exists("k"):
                pass
            store.append("k", "new")
            cancelled = await end_of(task)
            assert cancelled.error is None and cancelled.value == b"old"
            assert store.get("k") == b"new"

    asyncio.run(main())


async def by_cancelling(call: Awaitable[bytes], ticks: int) -> bytes:
    task = asyncio.ensure_future(call)
    await asyncio.sleep(ticks * 0.0001)
    task.cancel()
    return await task


async def by_wait_for(call: Awaitable[bytes], ticks: int) -> bytes:
    return await asyncio.wait_for(call, ticks * 0.0001)


async def by_timeout(call: Awaitable[bytes], ticks: int) -> bytes:
    async with asyncio.timeout(ticks * 0.0001):
        return await call


async def by_group(call: Awaitable[bytes], ticks: int) -> bytes:
    """Another task of the group fails."""

    async def calls() -> bytes:
        return await call

    async def fails() -> None:
        await asyncio.sleep(ticks * 0.0001)
        raise ValueError

    async with asyncio.TaskGroup() as group:
        task = group.create_task(calls())
        group.create_task(fails())
    return task.result()


Way = Callable[[Awaitable[bytes], int], Awaitable[bytes]]


@pytest.mark.parametrize("way", [by_cancelling, by_wait_for, by_timeout, by_group])
def test_no_item_is_lost_or_doubled_by_cancellations(
    store: muster.Store, address: str, namespace: str, way: Way
) -> None:
    """And each consumer that is alone gets them in their order."""
    chance = random.Random(7)

    async def consume(taking: aio.Store, queue: str, count: int, got: list[bytes]) -> None:
        while len(got) < count:
            # A group's task may have its value when the group fails: that is the program's, then.
            received: list[bytes] = []

            async def pop(received: list[bytes] = received) -> bytes:
                received.append(await taking.queue_pop(queue))
                return received[0]

            try:
                await way(pop(), int(chance.expovariate(1 / 60)))
            except (asyncio.CancelledError, TimeoutError, BaseExceptionGroup):
                pass
            got.extend(received)

    async def main() -> None:
        async with await aio.Store.connect(address, namespace=namespace) as taking:
            for number in range(200):
                store.queue_push("alone", str(number))
                store.queue_push("shared", str(number))
            alone: list[bytes] = []
            shared: list[bytes] = []
            consumers = [consume(taking, "alone", 200, alone)]
            consumers += [consume(taking, "shared", 200, shared) for _ in range(8)]
            await asyncio.wait_for(asyncio.gather(*consumers), 60)
            assert alone == [str(number).encode() for number in range(200)]
            assert sorted(shared, key=int) == alone
            assert store.queue_length("alone") == store.queue_length("shared") == 0

    asyncio.run(main())


def test_ctrl_c_gives_back_what_has_come(process: Callable[..., Any]) -> None:
    """The signal comes just before the item: the call has it when it is interrupted."""
    one = process("""
        import os, signal, threading
        store = muster.Store(address, namespace="ctrl_c")
        other = muster.Store(address, namespace="ctrl_c")
        def interrupt():
            while int(other.status()["waits_count"]) == 0:
                pass
            os.kill(os.getpid(), signal.SIGINT)
            other.queue_push("q", "kept")
        missing = []
        for number in range(30):
            thread = threading.Thread(target=interrupt)
            thread.start()
            try:
                store.queue_pop("q", timeout=20)
                missing.append("not interrupted")
            except KeyboardInterrupt as interrupted:
                if interrupted.error is None:
                    missing.append("it has the value")
            thread.join()
            if store.queue_pop("q", timeout=0) != b"kept":
                missing.append("lost")
        print(missing, flush=True)
    """)
    out, complaints = one.communicate(timeout=60)
    assert out.strip() == "[]", complaints
