"""What becomes of a value that is on its way to a call that was cancelled, or whose loop was closed
or whose interpreter has ended."""

from __future__ import annotations

import asyncio
import os
import random
import select
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import muster
import pytest
from muster import aio
from muster.aio import _calls


async def begun(call: Awaitable[Any]) -> asyncio.Task[Any]:
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


MOMENTS = ["before the answer", "before the loop sees it", "before the task runs"]


def closed_loop(
    begin: Callable[[], Coroutine[Any, Any, Any]], answer: Callable[[], object], moment: str
) -> list[Any]:
    """What ``begin`` gives, in a loop that is closed at a moment of the call that it has begun."""
    loop = asyncio.new_event_loop()
    begun = loop.run_until_complete(begin())
    if moment == "before the answer":
        loop.close()
        answer()
    else:
        answer()
        readable = select.select([_calls._loops[loop]._completions.descriptor()], [], [], 60)
        assert readable[0], "the call has not ended"
        if moment == "before the task runs":
            loop.call_soon(loop.stop)
            loop.run_forever()
        loop.close()
    return [*begun, loop]  # none of them is collected


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("name", ["queue_pop", "take"])
def test_a_value_is_given_back_when_the_loop_is_closed(
    store: muster.Store, address: str, namespace: str, name: str, moment: str
) -> None:
    async def begin() -> tuple[Any, ...]:
        taking = await aio.Store.connect(address, namespace=namespace)
        return taking, await begun(getattr(taking, name)("k"))

    def answer() -> None:
        store.queue_push("k", "1")
        store.set("k", "value", ttl=60)

    kept = closed_loop(begin, answer, moment)
    assert store.queue_pop("k", timeout=10) == b"1"
    assert store.get("k", timeout=10) == b"value"
    assert not kept[1].done()


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_object_stays_when_the_loop_of_its_receive_is_closed(
    address: str, namespace: str, moment: str
) -> None:
    store = muster.Store(address, namespace=namespace)
    group = muster.StatelessProcessGroup(store, "g", 0, 1)
    receiving = aio.StatelessProcessGroup._of(group._handle, None)

    async def begin() -> tuple[Any, ...]:
        return (await begun(receiving.recv_obj(0)),)

    kept = closed_loop(begin, lambda: group.send_obj(7, 0), moment)
    assert group.recv_obj(0, timeout=10) == 7
    assert not kept[0].done()


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_session_ends_when_the_loop_of_its_connect_is_closed(
    own_server: tuple[str, int], moment: str
) -> None:
    address, server = own_server
    store = muster.Store(address)

    async def begin() -> tuple[Any, ...]:
        os.kill(server, signal.SIGSTOP)  # so that its answer comes when the test wants it
        os.waitpid(server, os.WUNTRACED)
        return (await begun(aio.Store.connect(address, label="given up")),)

    def labels() -> list[str]:
        return [each["label"] for each in store.inspect("sessions")]

    kept = closed_loop(begin, lambda: os.kill(server, signal.SIGCONT), moment)
    for _ in range(500):
        if "given up" not in labels():
            break
        time.sleep(0.02)
    assert "given up" not in labels()
    assert not kept[0].done()


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_item_is_given_back_when_the_interpreter_ends(
    process: Callable[..., Any], store: muster.Store, namespace: str, moment: str
) -> None:
    one = process("""
        import asyncio, select
        from muster import aio
        from muster.aio import _calls
        async def begin():
            taking = await aio.Store.connect(address, namespace=sys.argv[1])
            task = asyncio.ensure_future(taking.queue_pop("q"))
            await asyncio.sleep(0)
            return taking, task
        loop = asyncio.new_event_loop()
        taking, task = loop.run_until_complete(begin())
        other = muster.Store(address, namespace=sys.argv[1])
        other.queue_push("q", "kept")
        select.select([_calls._loops[loop]._completions.descriptor()], [], [])
        if "task" in sys.argv[2]:
            loop.call_soon(loop.stop)
            loop.run_forever()
        if "answer" in sys.argv[2]:
            loop.close()  # the last moment
        sys.exit(3 + task.done())
    """, namespace, moment)
    _, complaints = one.communicate(timeout=60)
    assert one.returncode == 3, complaints
    assert store.queue_pop("q", timeout=10) == b"kept"
