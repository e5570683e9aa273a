"""Cases of servers: strangers, limits, where they listen, pauses and clocks."""

import asyncio
import os
import random
import resource
import signal
import time

from case import Case
from observation import MIB, Observation, code_of, growth, in_words, spelled
from outside import (connection, how_it_ended, is_running, listening_addresses, resident_bytes,
                     stop)
from processes import PATIENCE_S, Violation
from redis_stage import RedisError
from stages import expect_ok

ASKED_COUNT = 20  # of short calls, to see how a server answers
STALL_S = 5.0  # how long a peer stalls
DECLARED_BYTES = 1 << 31
MEMORY_LIMIT = 16 * MIB
VALUES_COUNT = 64  # of 1 MiB each: more than the limit
TTL_S = 5.0
PAUSE_S = 8.0
GROWS_S = 8.0  # in which a server takes what it wants to take
TEN_YEARS_S = 10 * 365 * 86400


# How a server answers somebody else.

async def served_member(stage):
    member = await stage.member()
    answer = await member.ask(PATIENCE_S)
    if isinstance(answer, str):
        raise Violation(f"a member is given {answer}")
    return member


async def asked(member, limit_s=STALL_S):
    """How a member is answered: the worst of some, or the first that fails."""
    worst_s = 0.0
    for _ in range(ASKED_COUNT):
        answer = await member.ask(limit_s)
        if isinstance(answer, str):
            return f"others: **{answer.rstrip(',')}**"
        worst_s = max(worst_s, answer)
    return f"others: answered in {spelled(worst_s)} at most"


# Requests that do not come whole.

async def stalled_peer(stage):
    await stage.start()
    member = await served_member(stage)
    _, writer = await stage.raw()
    writer.write(stage.request_begins)
    await writer.drain()
    answers = await asked(member)
    writer.close()
    return Observation(answers)


async def is_closed(reader, limit_s=PATIENCE_S):
    """That the server ends the connection; what it says before is dropped."""
    try:
        await asyncio.wait_for(reader.read(-1), limit_s)
    except asyncio.TimeoutError:
        return False
    except OSError:
        pass
    return True


async def declared_2_gib(stage):
    await stage.start()
    member = await served_member(stage)
    before = most = resident_bytes(stage.server)
    reader, writer = await stage.raw()
    writer.write(stage.declaring(DECLARED_BYTES))
    closing = asyncio.create_task(is_closed(reader, GROWS_S))
    while not closing.done():
        most = max(most, resident_bytes(stage.server))
        await asyncio.sleep(0.02)
    what = "refused and closed" if closing.result() else "it waits for the rest"
    answers = await asked(member)
    writer.close()
    return Observation(f"+{growth(most - before)}; {what}; {await life_of(stage.server)}{answers}")


# File descriptors.

async def life_of(server):
    """Nothing, for one that lives."""
    return "" if is_running(server) else f"**its process {await how_it_ended(server)}**; "


async def no_descriptors(stage):
    await stage.start()
    member = await served_member(stage)
    pid = stage.server.pid
    _, hard = limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
    lowest = next(number for number in range(len(used) + 1) if number not in used)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest, hard))
    newcomers = [await connection(stage.server.address) for _ in range(5)]
    told = [closing for closing in [await is_closed(reader, 0.5) for reader, _ in newcomers]
            if closing]
    answers = await asked(member)
    if not is_running(stage.server):
        return Observation(f"{await life_of(stage.server)}{answers}")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    began = time.monotonic()
    try:
        await asyncio.wait_for(stage.raw_answer(), 10.0)
        after = f"newcomers are served {spelled(time.monotonic() - began)} after the relief"
    except (asyncio.TimeoutError, OSError):
        after = "newcomers are not served within 10 s of the relief"
    return Observation(f"the server lives, {len(told)} of 5 newcomers are sent away at once; "
                       f"{answers}; {after}")


async def listens_where(stage):
    await stage.start()
    found = sorted(set(listening_addresses(stage.server)))
    if not found:
        raise Violation("it listens nowhere")
    everywhere = [address for address in found if address in ("0.0.0.0", "::")]
    return Observation(f"**{in_words(everywhere)}: every interface**" if everywhere
                       else f"{in_words(found)} only")


async def garbage(stage):
    await stage.start()
    member = await served_member(stage)
    dice = random.Random(1)
    for number in range(30):
        bytes_of = [dice.randbytes(dice.randint(1, 3000)), b"\xff" * 16,
                    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"][number % 3]
        _, writer = await connection(stage.server.address)
        writer.write(bytes_of)
        await asyncio.sleep(0.01)
        writer.close()
    answers = await asked(member)
    return Observation(f"{await life_of(stage.server)}{answers}")


# Memory.

async def fill(stage, write):
    """Writes values until one is refused: how many were taken, and why no more."""
    before = resident_bytes(stage.server)
    taken, refusal = 0, None
    while taken < VALUES_COUNT and refusal is None:
        refusal = await write(taken)
        taken += refusal is None
    grown = growth(resident_bytes(stage.server) - before)
    what = f"then {refusal}" if refusal else "all there were: no limit"
    return f"takes {taken} MiB, {what}; resident +{grown}"


async def filled_by_rank(stage):
    rank = await stage.client()

    async def write(number):
        call = rank.begin("set", PATIENCE_S, key=f"big{number}", value_bytes=MIB - 1000)
        result = await call.result()
        return None if result["code"] == "ok" else code_of(result)
    text = await fill(stage, write)
    reading = await rank.call("get", key="big0")
    return Observation(f"{text}; reading {'goes on' if reading['value'] else 'fails'}")


async def muster_memory_limit(stage):
    await stage.start("--memory-bytes-max", str(MEMORY_LIMIT))
    return await filled_by_rank(stage)


async def tcpstore_memory_limit(stage):
    await stage.start()
    return await filled_by_rank(stage)


async def redis_memory_limit(stage):
    await stage.start("--maxmemory", str(MEMORY_LIMIT), "--maxmemory-policy", "noeviction")
    client = await stage.client()

    async def write(number):
        try:
            await client.call("SET", f"big{number}", b"x" * (MIB - 1000))
        except RedisError as error:
            return f"`{str(error).split()[0]}`"
        return None
    text = await fill(stage, write)
    reading = await client.call("GET", "big0")
    return Observation(f"{text}; reading {'goes on' if reading else 'fails'}")


# A server that does not run for a while, and clocks.

async def pause(stage):
    await stop(stage.server)
    await asyncio.sleep(PAUSE_S)
    stage.server.signal(signal.SIGCONT)


def kept(is_there):
    return Observation("its owner keeps it" if is_there else
                       "**gone**, although its owner lives and renews it")


async def muster_pause(stage):
    """A key that is bound to the session of its owner."""
    await stage.start("--session-timeout", f"{TTL_S:.0f}s")
    owner, other = await stage.clients(2)
    await owner.call("set", key="lock", bind=True)
    await pause(stage)
    reading = other.begin("get", 0.0, key="lock")
    while (result := await reading.result())["code"] == "suspended":
        await asyncio.sleep(0.05)
        reading = other.begin("get", 0.0, key="lock")
    await asyncio.sleep(TTL_S)
    expect_ok(reading, result)
    return kept((await other.begin("get", 0.0, key="lock").result())["code"] == "ok")


async def redis_pause(stage):
    """A key with a time to live, which its owner renews."""
    await stage.start()
    owner, other = [await stage.client() for _ in range(2)]
    await owner.call("SET", "lock", "1", "PX", round(TTL_S * 1000))

    async def renew():
        while await owner.reply_to("PEXPIRE", "lock", round(TTL_S * 1000)):
            await asyncio.sleep(TTL_S / 5)
    renewing = asyncio.create_task(renew())
    await pause(stage)
    is_there = await other.call("EXISTS", "lock")
    renewing.cancel()
    return kept(is_there)


class WallClock:
    """That of a process, which can be put forward."""

    def __init__(self, place):
        self.path = place.folder / "shift"
        self.path.write_text("0\n")
        library = place.programs_of["libfault_wall_clock.so"]
        self.environment = {"LD_PRELOAD": str(library), "MUSTER_WALL_CLOCK": str(self.path)}

    def jump(self):
        self.path.write_text(f"{TEN_YEARS_S}\n")


def after_jump(is_there, what):
    return Observation(f"no effect: {what} is there" if is_there else f"**{what} is gone**")


async def muster_wall_clock(stage):
    clock = WallClock(stage.place)
    await stage.start(environment=clock.environment)
    rank = await stage.client()
    await rank.call("set", key="key", ttl_ms=3_600_000)
    clock.jump()
    await rank.call("add", key="counter")
    result = await rank.begin("get", 0.0, key="key").result()
    return after_jump(result["code"] == "ok", "the key")


async def tcpstore_wall_clock(stage):
    clock = WallClock(stage.place)
    await stage.start()
    sender = await stage.client(environment=clock.environment)
    receiver = await stage.client(store_timeout_s=2.0)
    for call in [stage.join(rank, number, 2) for number, rank in enumerate((sender, receiver))]:
        expect_ok(call, await call.result())
    await sender.call("send", destination=1, value="first")
    clock.jump()
    await sender.call("send", destination=1, value="second")
    result = await receiver.begin("recv", 2.0, source=0).result()
    return after_jump(result["code"] == "ok", "an object that was just sent")


async def redis_wall_clock(stage):
    clock = WallClock(stage.place)
    await stage.start(environment=clock.environment)
    client = await stage.client()
    await client.call("SET", "key", "1", "EX", 3600)
    clock.jump()
    await client.call("INCR", "counter")
    return after_jump(await client.call("EXISTS", "key"), "the key")


def everywhere(name, title, observer, **options):
    return Case(name, title, observer, redis=observer, **options)


SERVER_CASES = [
    everywhere("stalled_peer", "A client stalls after 9 bytes of a request", stalled_peer,
               alone=True),
    everywhere("declared_2_gib", "A client declares a value of 2 GiB: the server's resident memory",
               declared_2_gib),
    everywhere("no_descriptors", "The server runs out of file descriptors", no_descriptors),
    everywhere("garbage", "Garbage from 30 connections", garbage, alone=True),
    everywhere("listens_where", "Bound to 127.0.0.1, it listens at", listens_where),
    Case("memory_limit", f"{VALUES_COUNT} MiB of values, where {MEMORY_LIMIT // MIB} MiB are "
         "allowed if that can be said", muster=muster_memory_limit,
         tcpstore=tcpstore_memory_limit, redis=redis_memory_limit),
    Case("pause", f"The server is paused for {PAUSE_S:.0f} s; a key belongs to a process that "
         f"lives (session, or renewed time to live: {TTL_S:.0f} s)", muster=muster_pause,
         redis=redis_pause),
    Case("wall_clock", "The wall clock jumps ten years on (of the server; TCPStore: of a sender); "
         "something lives for an hour", muster=muster_wall_clock, tcpstore=tcpstore_wall_clock,
         redis=redis_wall_clock),
]
