"""Muster and the TCPStore, each with a server and clients of its own.

A rank of either is a process that takes the same commands, so most cases are the same lines for
both.
"""

import asyncio
import os
import struct
import sys
import time
from pathlib import Path

from observation import STORE_TIMEOUT_S, code_of
from outside import connection, how_it_ended
from processes import PATIENCE_S, Proxy, Rank, Server, Violation, within

FOLDER = Path(__file__).resolve().parent
REQUEST, SET = 1, 1  # of Muster's frames
TCPSTORE_SET, TCPSTORE_COUNT_KEYS = b"\0", b"\6"


class Stage:
    """One store and what a case does with it."""

    def __init__(self, place):
        self.place = place
        self.server = None
        self.made_count = 0

    def name(self):
        self.made_count += 1
        return f"rank{self.made_count}"

    async def started(self, rank):
        await rank.start()
        await within(PATIENCE_S, f"the start of {rank.name}", rank.ready.wait())
        return rank

    async def client(self, store_timeout_s=STORE_TIMEOUT_S, address=None, environment=None):
        """A process that is connected."""
        rank = await self.started(self.new_rank(environment))
        await rank.call("connect", address=address or self.server.address,
                        store_timeout_ms=round(store_timeout_s * 1000), label=rank.name)
        return rank

    async def clients(self, count, store_timeout_s=STORE_TIMEOUT_S):
        return await asyncio.gather(*(self.client(store_timeout_s) for _ in range(count)))

    def join(self, rank, number, size, timeout_s=STORE_TIMEOUT_S, **options):
        rank.rank = number
        return rank.begin("join", timeout_s, rank=number, size=size, **options)

    async def group(self, size, store_timeout_s=STORE_TIMEOUT_S, **options):
        """So many ranks, which have met."""
        ranks = await self.clients(size, store_timeout_s)
        for call in [self.join(rank, number, size, **options)
                     for number, rank in enumerate(ranks)]:
            expect_ok(call, await call.result())
        return ranks

    async def member(self):
        return Member(await self.client())

    async def raw(self):
        """A connection on which requests can be sent as bytes."""
        return await connection(self.server.address)

    async def proxied(self):
        """A proxy before the server."""
        proxy = Proxy(self.place, "proxy", self.server.address)
        await proxy.start()
        return proxy


class Member:
    """A client that asks for little."""

    def __init__(self, rank):
        self.rank = rank

    async def ask(self, limit_s):
        """Seconds, or why there is no answer."""
        call = self.rank.begin("add", limit_s, key="counter")
        result = await ended(call, limit_s)
        if result is None:
            return f"no answer within {limit_s:.0f} s"
        return result["t"] - call.began if result["code"] == "ok" else code_of(result)


def expect_ok(call, result):
    if result["code"] != "ok":
        raise Violation(f"{call}: {result.get('message', result['code'])}")


async def ended(call, limit_s):
    """How the call ended; nothing if it has not within the limit.

    If the process of its caller has ended instead, the code is `gone`.
    """
    caller = asyncio.create_task(call.rank.ends.wait())
    await asyncio.wait([call.ended, caller], timeout=limit_s,
                       return_when=asyncio.FIRST_COMPLETED)
    caller.cancel()
    if call.ended.done():
        return call.ended.result()
    if not call.rank.ends.is_set():
        return None
    return {"code": "gone", "t": time.monotonic(), "ranges": [],
            "message": await how_it_ended(call.rank)}


def muster_set(body_bytes):
    """The header of a frame, as docs/protocol.md says."""
    return struct.pack("<IBBHQ", body_bytes, REQUEST, 0, SET, 1)


class MusterStage(Stage):
    request_begins = muster_set(40)[:9]

    @staticmethod
    def declaring(value_bytes):
        return muster_set(value_bytes)

    def new_rank(self, environment=None):
        return Rank(self.place, self.name(), environment=environment)

    async def start(self, *flags, environment=None):
        self.server = Server(self.place, ["--log-level", "warning", *flags],
                             environment=environment)
        await self.server.start()

    async def restart(self):
        await self.server.restart()

    async def raw_answer(self):
        """A newcomer is let in."""
        _, writer = await self.raw()
        writer.close()

    async def held(self, observer):
        """What is left of groups on the server."""
        status = (await observer.call("status"))["status"]
        return {thing: int(status[f"{thing}s_count"]) for thing in ("key", "round")}

    async def raw(self):
        """A connection that has said hello, as docs/protocol.md says."""
        reader, writer = await connection(self.server.address)
        magic = bytes.fromhex("8d4d5354520d0a1a")
        hello = magic + b"\1\0\1\0" + bytes(68) + os.urandom(16)
        writer.write(hello.ljust(512, b"\0"))
        await within(PATIENCE_S, "the server's hello", reader.readexactly(256))
        return reader, writer


class TcpStoreRank(Rank):
    def __init__(self, place, name, environment=None):
        super().__init__(place, name, environment=environment)
        self.command = [sys.executable, str(FOLDER / "tcpstore_worker.py")]
        self.address = None

    async def serve(self, port=0):
        result = await self.call("serve", port=port)
        self.address = f"127.0.0.1:{result['port']}"


class TcpStoreStage(Stage):
    request_begins = TCPSTORE_SET + struct.pack("<Q", 10)

    @staticmethod
    def declaring(value_bytes):
        return TCPSTORE_SET + struct.pack("<Q", value_bytes)

    def new_rank(self, environment=None):
        return TcpStoreRank(self.place, self.name(), environment)

    async def start(self):
        self.server = await self.started(self.new_rank())
        await self.server.serve()

    async def restart(self):
        port = int(self.server.address.rsplit(":", 1)[1])
        self.server = await self.started(self.new_rank())
        await self.server.serve(port)

    async def held(self, observer):
        return {"key": (await observer.call("keys_count"))["number"]}

    async def raw_answer(self):
        """A newcomer is answered how many keys there are."""
        reader, writer = await self.raw()
        writer.write(TCPSTORE_COUNT_KEYS)
        await reader.readexactly(8)
        writer.close()
