"""The same calls for asyncio."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
import subprocess
import time
from collections.abc import Callable, Coroutine
from typing import Any

import muster
import pytest
from muster import aio


def outcome_of(cancelled: object) -> Any:
    """What became of a call is told by attributes of asyncio's own exception."""
    assert type(cancelled) is asyncio.CancelledError
    return cancelled


def cause_of(error: BaseException) -> BaseException | None:
    """In Python 3.11 asyncio.timeout names no cause."""
    return error.__cause__ or error.__context__


def test_calls_of_a_store(address: str, namespace: str) -> None:
    async def main() -> None:
        async with await aio.Store.connect(address, namespace=namespace) as store:
            assert await store.set("k", b"v")
            assert await store.get("k") == b"v"
            assert await store.add("n", 2) == 2
            assert await store.compare_set("k", "v", "w") == (True, None)
            assert await store.append("k", b"x") == 2
            assert await store.multi_get(["k", "z"]) == [b"wx", None]
            assert await store.multi_exists(["k", "z"]) == [True, False]
            await store.multi_set({"a": "1"}, ttl=60)
            await store.touch("a", None)
            await store.wait(["a", "k"])
            assert {info.key async for info in store.keys()} == {b"a", b"k", b"n"}
            assert await store.multi_remove(["a", "k"]) == 2
            assert await store.exists("n")
            assert await store.remove("n")
            assert "sessions_count" in await store.status()
            assert (await store.whoami()).identity == ""
            assert len(await store.inspect("sessions")) == 1
            with pytest.raises(muster.TimedOut):
                await store.get("nobody sets it", timeout=0.01)

    asyncio.run(main())
    asyncio.run(main())  # another loop


def test_many_calls_are_under_way_at_once(address: str, namespace: str) -> None:
    async def main() -> None:
        async with await aio.Store.connect(address, namespace=namespace) as store:
            waiting = [asyncio.create_task(store.take(f"k{index}")) for index in range(200)]
            await asyncio.gather(*(store.set(f"k{index}", str(index)) for index in range(200)))
            assert await asyncio.gather(*waiting) == [str(index).encode() for index in range(200)]

    asyncio.run(main())


def test_queues(address: str, namespace: str) -> None:
    async def main() -> None:
        async with await aio.Store.connect(address, namespace=namespace) as store:
            popping = [asyncio.create_task(store.queue_pop("q")) for _ in range(3)]
            while int((await store.status())["waits_count"]) < 3:
                await asyncio.sleep(0.001)
            for number in range(4):
                await store.queue_push("q", str(number))
            assert await asyncio.gather(*popping) == [b"0", b"1", b"2"]
            assert await store.queue_length("q") == 1
            assert await store.queue_pop("q", timeout=0) == b"3"
            cancelled = asyncio.create_task(store.queue_pop("q"))
            while int((await store.status())["waits_count"]) == 0:
                await asyncio.sleep(0.001)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError) as raised:
                await cancelled
            assert outcome_of(raised.value).error.happened == "no"
            await store.queue_push("q", "kept")
            assert await store.queue_pop("q", timeout=0) == b"kept"

    asyncio.run(main())


def test_a_cancelled_task_cancels_its_call(address: str, namespace: str) -> None:
    async def main() -> None:
        async with await aio.Store.connect(address, namespace=namespace) as store:
            task = asyncio.create_task(store.take("k"))
            while int((await store.status())["waits_count"]) == 0:
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as raised:
                await task
            told = outcome_of(raised.value)
            assert isinstance(told.error, muster.Cancelled)
            assert told.error.happened == "no"
            assert told.value is None
            assert not told.in_doubt
            await store.set("k", "v")
            assert await store.take("k", timeout=0) == b"v"
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(store.get("nobody sets it"), 0.05)

    asyncio.run(main())


Part = Callable[[aio.Store], Coroutine[Any, Any, None]]
InLoop = Callable[[Part], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def in_loop(request: pytest.FixtureRequest, address: str, namespace: str) -> InLoop:
    """Runs a part with a store, in a loop of this kind."""
    factory = None
    if request.param == "uvloop":
        factory = pytest.importorskip("uvloop", reason="there is no uvloop").new_event_loop

    def run(part: Part) -> None:
        async def main() -> None:
            async with await aio.Store.connect(address, namespace=namespace) as store:
                await asyncio.wait_for(part(store), 60)
                assert (await store.status())["waits_count"] == "0"
                await store.set("after", "v")
                assert await store.take("after") == b"v"

        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(main())

    return run


async def until_waiting(store: aio.Store, count: int = 1) -> None:
    while int((await store.status())["waits_count"]) < count:
        await asyncio.sleep(0.001)


def test_a_timeout_around_a_call_is_one(in_loop: InLoop) -> None:
    async def part(store: aio.Store) -> None:
        with pytest.raises(TimeoutError) as raised:
            async with asyncio.timeout(0.05):
                await store.get("never")
        assert isinstance(outcome_of(cause_of(raised.value)).error, muster.Cancelled)
        with pytest.raises(TimeoutError) as raised:
            await asyncio.wait_for(store.take("never"), 0.05)
        assert outcome_of(cause_of(raised.value)).error.happened == "no"
        with pytest.raises(TimeoutError):  # that of the outer one
            async with asyncio.timeout(0.05) as outer, asyncio.timeout(30) as inner:
                await store.wait(["never"])
        assert outer.expired() and not inner.expired()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), asyncio.timeout(0.01):
                await store.queue_pop("never")
        async with asyncio.timeout(30):
            await store.set("k", "v")
        task = asyncio.current_task()
        assert task is not None and task.cancelling() == 0

    in_loop(part)


def test_a_cancelled_call_keeps_the_message_of_its_task(in_loop: InLoop) -> None:
    async def part(store: aio.Store) -> None:
        task = asyncio.create_task(store.get("never"))
        await until_waiting(store)
        task.cancel("by the operator")
        with pytest.raises(asyncio.CancelledError) as raised:
            await task
        assert outcome_of(raised.value).args == ("by the operator",)
        assert task.cancelled()

    in_loop(part)


def test_a_task_group_ends_calls_as_others(in_loop: InLoop) -> None:
    async def part(store: aio.Store) -> None:
        async def fails() -> None:
            await until_waiting(store, 3)
            raise KeyError("of the program")

        with pytest.raises(ExceptionGroup) as raised:
            async with asyncio.TaskGroup() as tasks:
                waiting = [tasks.create_task(store.get("never")) for _ in range(3)]
                tasks.create_task(fails())
        assert [type(error) for error in raised.value.exceptions] == [KeyError]
        assert all(task.cancelled() for task in waiting)

        async def whole_group() -> None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(store.take("never"))
                await store.get("never")

        task = asyncio.create_task(whole_group())
        await until_waiting(store, 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.TaskGroup() as tasks:
            one = tasks.create_task(store.get("never"))
            tasks.create_task(until_waiting(store)).add_done_callback(lambda _: one.cancel())
        assert one.cancelled()

    in_loop(part)


def test_shield_and_gather_take_calls_as_others(in_loop: InLoop) -> None:
    async def part(store: aio.Store) -> None:
        inner = asyncio.ensure_future(store.get("late"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(inner), 0.05)
        await store.set("late", "v")
        assert await inner == b"v"

        calls = [asyncio.ensure_future(store.get("never")) for _ in range(3)]
        together = asyncio.gather(*calls)
        await until_waiting(store, 3)
        together.cancel()
        with pytest.raises(asyncio.CancelledError):
            await together  # which the first one ends
        await asyncio.wait(calls)
        assert all(call.cancelled() for call in calls)

        calls = [asyncio.ensure_future(store.get(key)) for key in ("never", "late")]
        await until_waiting(store)
        calls[0].cancel()
        first, second = await asyncio.gather(*calls, return_exceptions=True)
        assert type(first) is asyncio.CancelledError and second == b"v"

    in_loop(part)


def test_a_call_that_has_worked_tells_what_it_gave(in_loop: InLoop) -> None:
    async def part(store: aio.Store) -> None:
        task = asyncio.create_task(store.add("n", 5))
        await asyncio.sleep(0)
        while await store.add("n", 0) != 5:
            await asyncio.sleep(0)
        task.cancel()
        try:
            assert await task == 5
        except asyncio.CancelledError as cancelled:
            told = outcome_of(cancelled)
            assert (told.error, told.value, told.in_doubt) == (None, 5, False)

    in_loop(part)


def test_scopes_of_anyio_end_calls(in_loop: InLoop) -> None:
    anyio: Any = pytest.importorskip("anyio", reason="there is no anyio")

    async def part(store: aio.Store) -> None:
        with anyio.move_on_after(0.05) as scope:
            await store.get("never")
        assert scope.cancel_called
        with pytest.raises(TimeoutError):
            with anyio.fail_after(0.05):
                await store.take("never")
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(store.get, "never")
            await until_waiting(store, 3)
            tasks.cancel_scope.cancel()
        with anyio.move_on_after(30) as outer:
            with anyio.CancelScope(shield=True):
                outer.cancel()
                await store.set("shielded", "v")
            await store.get("never")
        assert await store.take("shielded") == b"v"

    in_loop(part)


def test_a_receive_that_is_timed_out_leaves_its_object(in_loop: InLoop) -> None:
    async def part(store: aio.Store) -> None:
        group = await aio.StatelessProcessGroup.join(store, "g", 0, 1)
        for number in range(20):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.002):
                    await group.recv_obj(0)
            await group.send_obj(number, 0)
            assert await group.recv_obj(0) == number
        await group.leave()

    in_loop(part)


def test_a_cancelled_receive_leaves_the_object(address: str, namespace: str) -> None:
    async def main() -> None:
        async with await aio.Store.connect(address, namespace=namespace) as store:
            group = await aio.StatelessProcessGroup.join(store, "g", 0, 1)
            for number in range(50):
                task = asyncio.create_task(group.recv_obj(0))
                await asyncio.sleep(0)
                await group.send_obj(number, 0)
                task.cancel()
                try:
                    received = await task
                except asyncio.CancelledError:
                    received = await group.recv_obj(0)
                assert received == number

    asyncio.run(main())


def test_ranks_are_tasks(address: str, namespace: str) -> None:
    async def rank_of(rank: int) -> Any:
        async with await aio.Store.connect(address, namespace=namespace) as store:
            group = await aio.StatelessProcessGroup.join(store, "g", rank, 3)
            assert await group.all_gather_obj(rank) == [0, 1, 2]
            assert await group.broadcast_obj("x" if rank == 0 else None) == "x"
            assert await group.scatter_obj([5, 6, 7] if rank == 2 else None, 2) == 5 + rank
            assert await group.gather_obj(rank, 1) == ([0, 1, 2] if rank == 1 else None)
            assert await group.all_reduce_obj(rank, max) == 2
            await group.send_obj([rank], (rank + 1) % 3, codec=muster.PICKLE)
            assert await group.recv_obj((rank + 2) % 3, codec=muster.PICKLE) == [(rank + 2) % 3]
            assert await group.barrier() == []
            if rank == 1:
                await group.leave()
                return None
            with pytest.raises((muster.RankLeft, muster.RankLost)):
                await group.barrier()
            again = await group.regroup()
            await again.barrier()
            assert len(await again.members()) == 2
            return again.rank

    async def main() -> None:
        assert await asyncio.gather(*(rank_of(rank) for rank in range(3))) == [0, None, 1]

    asyncio.run(main())


def test_a_cancelled_join_or_connect_leaves_no_handle(address: str, namespace: str) -> None:
    """Their answers came before the tasks could run with them."""

    async def end(task: asyncio.Task[Any], is_done: Callable[[], object]) -> Any:
        """Blocks the loop until the server has done it, so that the answer waits for the task."""
        await asyncio.sleep(0)
        while not is_done():
            time.sleep(0.001)
        time.sleep(0.05)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError as cancelled:
            return cancelled
        raise AssertionError("it was not cancelled")

    async def main() -> None:
        gc.disable()
        async with await aio.Store.connect(address, namespace=namespace) as store:
            other = await aio.Store.connect(address, namespace=namespace)
            join = aio.StatelessProcessGroup.join
            first = asyncio.create_task(join(store, "g", 0, 2))
            while not await store.inspect("groups"):
                await asyncio.sleep(0.001)
            task = asyncio.create_task(join(other, "g", 1, 2))
            told = outcome_of(await end(task, lambda: looks.inspect("groups")[0]["epoch"]))
            assert told.value is None
            with pytest.raises((muster.RankLeft, muster.RankLost)):
                await (await first).barrier(timeout=30)
            connect = aio.Store.connect(address, namespace=namespace, label="given up")
            told = outcome_of(await end(asyncio.create_task(connect), lambda: labelled(looks)))
            assert told.value is None
            while labelled(looks):
                await asyncio.sleep(0.01)
            other.close()

    def labelled(looks: muster.Store) -> bool:
        return "given up" in [each["label"] for each in looks.inspect("sessions")]

    try:
        with muster.Store(address, namespace=namespace) as looks:
            asyncio.run(main())
    finally:
        gc.enable()


def test_a_cancelled_gather_tells_the_objects(address: str, namespace: str) -> None:
    async def main() -> None:
        async with await aio.Store.connect(address, namespace=namespace) as store:
            for number in range(20):  # on a busy machine the answer may come later
                group = await aio.StatelessProcessGroup.join(store, f"g{number}", 0, 1)
                task = asyncio.create_task(group.all_gather_obj({"a": 1}))
                await asyncio.sleep(0)
                time.sleep(0.05 * (number + 1))
                task.cancel()
                with pytest.raises(asyncio.CancelledError) as raised:
                    await task
                told = outcome_of(raised.value)
                if told.error is None:
                    break
            assert told.value == [{"a": 1}]

    asyncio.run(main())


def test_nobody_needs_to_wait_for_a_call_when_the_loop_ends(address: str, namespace: str) -> None:
    async def main() -> None:
        store = await aio.Store.connect(address, namespace=namespace)
        asyncio.create_task(store.get("nobody sets it"))
        await asyncio.sleep(0.01)

    asyncio.run(main())


@pytest.fixture
def stopping_server(process: Callable[..., subprocess.Popen[str]]) -> subprocess.Popen[str]:
    """A process with a server, which prints its address."""
    return process(
        """
        server = muster.Server()
        print(server.addresses[0], flush=True)
        sys.stdin.read()
        """
    )


Asked = Callable[[aio.Store], Coroutine[Any, Any, Any]]


@pytest.mark.parametrize(
    "ask", [lambda store: store.whoami(), lambda store: store.inspect("sessions")]
)
def test_questions_to_a_silent_server_are_cancelled(
    stopping_server: subprocess.Popen[str], ask: Asked
) -> None:
    assert stopping_server.stdout is not None
    address = stopping_server.stdout.readline().strip()

    async def main() -> None:
        async with await aio.Store.connect(address) as store:
            await ask(store)
            stopping_server.send_signal(signal.SIGSTOP)
            os.waitpid(stopping_server.pid, os.WUNTRACED)  # until it has stopped
            try:
                task = asyncio.create_task(ask(store))
                await asyncio.sleep(0.1)
                task.cancel()
                with pytest.raises(asyncio.CancelledError) as raised:
                    await task
                assert isinstance(outcome_of(raised.value).error, muster.Cancelled)
            finally:
                stopping_server.send_signal(signal.SIGCONT)

    asyncio.run(main())  # waits for the loop's threads


@pytest.mark.parametrize(
    "blocking, awaited",
    [
        (muster.Store, aio.Store),
        (muster.StatelessProcessGroup, aio.StatelessProcessGroup),
        (muster.Operator, aio.Operator),
    ],
)
def test_every_call_has_an_awaited_form(blocking: type, awaited: type) -> None:
    for name in (name for name in dir(blocking) if not name.startswith("_")):
        ours, theirs = getattr(awaited, name), getattr(blocking, name)
        if not callable(ours):
            continue  # a property
        assert inspect.getdoc(ours), name
        parameters = inspect.signature(ours).parameters
        assert parameters == inspect.signature(theirs).parameters, name
        waits = any(parameter.endswith("timeout") for parameter in parameters)
        is_awaited = inspect.iscoroutinefunction(ours)
        is_awaited |= inspect.isasyncgenfunction(inspect.unwrap(ours))
        assert is_awaited == waits or name == "close", name


def test_a_group_is_created_and_closed(address: str) -> None:
    host, port = address.rsplit(":", 1)

    async def main() -> None:
        group = await aio.StatelessProcessGroup.create(host, int(port), 0, 1, host_server="never")
        async with group:
            assert await group.all_reduce_obj(2, lambda a, b: a + b) == 2
            assert await group.close() == 0
        assert repr(group).endswith(", closed>")
        with pytest.raises(muster.Closed):
            await group.barrier()

    asyncio.run(main())


def test_no_handle_is_made_without_its_call() -> None:
    with pytest.raises(TypeError, match="await muster.aio.Store.connect"):
        aio.Store()
    with pytest.raises(TypeError, match="await muster.aio.StatelessProcessGroup.join"):
        aio.StatelessProcessGroup()
