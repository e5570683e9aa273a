"""The same calls for asyncio."""

from __future__ import annotations

import asyncio
from typing import Any

import muster
import pytest
from muster import aio


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
            assert await store.queue_len("q") == 1
            assert await store.queue_pop("q", timeout=0) == b"3"
            cancelled = asyncio.create_task(store.queue_pop("q"))
            while int((await store.status())["waits_count"]) == 0:
                await asyncio.sleep(0.001)
            cancelled.cancel()
            with pytest.raises(aio.CallCancelled) as raised:
                await cancelled
            assert raised.value.error is not None
            assert raised.value.error.happened == "no"
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
            with pytest.raises(aio.CallCancelled) as raised:
                await task
            assert isinstance(raised.value.error, muster.Cancelled)
            assert raised.value.error.happened == "no"
            assert not raised.value.in_doubt
            await store.set("k", "v")
            assert await store.take("k", timeout=0) == b"v"
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(store.get("nobody sets it"), 0.05)

    asyncio.run(main())


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


def test_nobody_needs_to_wait_for_a_call_when_the_loop_ends(address: str, namespace: str) -> None:
    async def main() -> None:
        store = await aio.Store.connect(address, namespace=namespace)
        asyncio.create_task(store.get("nobody sets it"))
        await asyncio.sleep(0.01)

    asyncio.run(main())
