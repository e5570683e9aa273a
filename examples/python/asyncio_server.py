"""An inference server on asyncio: replicas find each other, and a router sends them requests.

    python3 asyncio_server.py ADDRESS

Each replica announces where it listens, by a key that goes with its session: when a replica dies,
the router sees it at once. Calls of Muster are awaited beside all else that the loop does.
"""

import asyncio
import os
import sys

from muster import aio


async def replica(address: str, run: str, name: str, is_over: asyncio.Event) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        prompt = (await reader.readline()).decode().strip()
        writer.write(f"{name}: {prompt[::-1]}\n".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    async with server, await aio.Store.connect(address, namespace="serving", run=run) as store:
        await store.set(f"replica/{name}", f"{host}:{port}", bind_to_session=True)
        await store.add("replicas")
        await is_over.wait()


async def ask(where: str, prompt: str) -> str:
    host, _, port = where.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"{prompt}\n".encode())
    answer = (await reader.readline()).decode().strip()
    writer.close()
    return answer


async def main() -> None:
    address, run = sys.argv[1], str(os.getpid())
    is_over = asyncio.Event()
    tasks = [asyncio.create_task(replica(address, run, f"r{index}", is_over)) for index in range(3)]
    async with await aio.Store.connect(address, namespace="serving", run=run) as store:
        while int((await store.multi_get(["replicas"]))[0] or 0) < 3:
            await asyncio.sleep(0.01)
        names = sorted([info.key.decode() async for info in store.keys("replica/")])
        places = [place.decode() for place in await store.multi_get(names) if place is not None]
        answers = await asyncio.gather(*(ask(place, "muster") for place in places))
        print("\n".join(answers))
        is_over.set()
        await asyncio.gather(*tasks)
        left = [info.key async for info in store.keys("replica/")]
        print(f"replicas left: {len(left)}")


asyncio.run(main())
