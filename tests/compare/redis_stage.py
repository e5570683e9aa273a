"""Redis, and a client that speaks its protocol."""

import asyncio
import socket
import time

from outside import connection
from processes import PATIENCE_S, Program, Violation, within
from stages import Stage

REDIS = "/usr/bin/redis-check-rdb"  # one program; its name says what it does


class RedisServer(Program):
    def __init__(self, place, flags, environment=None):
        self.flags = flags
        self.listening = asyncio.Event()
        self.address = None
        super().__init__(place, "redis", [], environment=environment)

    def take(self, line):
        if "Ready to accept connections" in line:
            self.listening.set()

    async def serve(self, port):
        server = self.place.folder / "redis-server"
        server.unlink(missing_ok=True)
        server.symlink_to(REDIS)
        self.command = [str(server), "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                        "--appendonly", "no", "--dir", str(self.place.folder), *self.flags]
        self.address = f"127.0.0.1:{port}"
        self.listening.clear()
        await self.start()
        listening = asyncio.create_task(self.listening.wait())
        done, _ = await asyncio.wait([listening, self.reader], timeout=PATIENCE_S,
                                     return_when=asyncio.FIRST_COMPLETED)
        return listening in done


def free_port():
    """One that the kernel has chosen; somebody else may take it meanwhile."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class RedisError(Exception):
    pass


class RedisClient:
    """One connection that speaks RESP."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer

    def send(self, *words):
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.writer.write(b"*%d\r\n" % len(parts)
                          + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))

    async def reply(self):
        line = (await self.reader.readuntil(b"\r\n"))[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise RedisError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest.decode()
        length = int(rest)
        if length < 0:
            return None
        if kind == b"*":
            return [await self.reply() for _ in range(length)]
        return (await self.reader.readexactly(length + 2))[:-2].decode(errors="replace")

    async def call(self, *words):
        self.send(*words)
        return await within(PATIENCE_S, f"the reply to {words[0]}", self.reply())

    async def reply_to(self, *words):
        """Without a limit: the server may be stopped."""
        self.send(*words)
        return await self.reply()

    async def timed(self, limit_s, *words):
        """The reply, or the error, or nothing within the limit; and how long it took."""
        began = time.monotonic()
        self.send(*words)
        try:
            reply = await asyncio.wait_for(self.reply(), limit_s)
        except asyncio.TimeoutError:
            reply = None
        except (RedisError, OSError, asyncio.IncompleteReadError) as error:
            reply = error
        return reply, time.monotonic() - began

    def close(self):
        self.writer.close()


class RedisMember:
    """As Member."""

    def __init__(self, client):
        self.client = client

    async def ask(self, limit_s):
        reply, seconds = await self.client.timed(limit_s, "INCR", "counter")
        if reply is None:
            return f"no answer within {limit_s:.0f} s"
        return f"an error, “{reply}”," if isinstance(reply, Exception) else seconds


class RedisStage(Stage):
    request_begins = b"*3\r\n$3\r\nS"

    @staticmethod
    def declaring(value_bytes):
        return b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n" % value_bytes

    async def start(self, *flags, environment=None):
        for _ in range(5):
            self.server = RedisServer(self.place, flags, environment)
            if await self.server.serve(free_port()):
                return
        raise Violation("redis-server does not start")

    async def restart(self):
        port = int(self.server.address.rsplit(":", 1)[1])
        if not await self.server.serve(port):
            raise Violation("redis-server does not start again")

    async def client(self, address=None):
        return RedisClient(*await connection(address or self.server.address))

    async def member(self):
        return RedisMember(await self.client())

    async def raw_answer(self):
        client = await self.client()
        await client.call("PING")
        client.close()
