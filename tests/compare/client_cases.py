"""Cases of clients: waits, signals, a server that is stopped or restarted, objects that harm."""

import asyncio
import csv
import json
import pickle
import signal
import statistics
import struct
import subprocess
import time
from pathlib import Path

from case import Case
from observation import BRIEF_S, STORE_TIMEOUT_S, Observation, code_of, growth, spelled, told
from outside import most_resident_bytes, processes_ended, stop
from processes import PATIENCE_S, Program, die_with_parent
from stages import ended, expect_ok

WAIT_S = 5.0
COMES_BACK_S = 10.0
ADDS, BATCHES = 1000, 5
FORKED_READS = 200  # by each of two processes


# A wait, and what else the client does meanwhile.

async def wait_blocks_set(stage):
    await stage.start()
    rank = await stage.client(store_timeout_s=WAIT_S)
    waiting = rank.begin("get", WAIT_S, key="never")
    await waiting.began_event.wait()
    await asyncio.sleep(0.2)
    setting = rank.begin("set", PATIENCE_S, key="another")
    result = await setting.result()
    expect_ok(setting, result)
    seconds = result["t"] - setting.began
    return Observation(f"done after {spelled(seconds)}", seconds)


async def redis_wait_blocks_set(stage):
    await stage.start()
    client = await stage.client()
    client.send("BLPOP", "never", WAIT_S)
    began = time.monotonic()
    client.send("SET", "another", "x")
    for _ in range(2):
        await asyncio.wait_for(client.reply(), PATIENCE_S)
    seconds = time.monotonic() - began
    return Observation(f"done after {spelled(seconds)} on the same connection", seconds)


class Quiet(Program):
    def take(self, line):
        pass


async def until_ended(program):
    """From SIGINT to the end of the program."""
    await asyncio.sleep(1.0)
    at = program.signal(signal.SIGINT)
    try:
        await asyncio.wait_for(program.process.wait(), STORE_TIMEOUT_S + PATIENCE_S)
    except asyncio.TimeoutError:
        return Observation(f"**not** within {STORE_TIMEOUT_S + PATIENCE_S:.0f} s")
    seconds = time.monotonic() - at
    return Observation(spelled(seconds), seconds)


async def muster_interrupted(stage):
    await stage.start()
    program = Quiet(stage.place, "musterctl", [
        stage.place.programs_of["musterctl"], "--server", stage.server.address, "--timeout",
        f"{STORE_TIMEOUT_S:.0f}", "wait", "never"])
    return await until_ended(await program.start())


async def tcpstore_interrupted(stage):
    await stage.start()
    rank = await stage.client()
    await rank.begin("get", STORE_TIMEOUT_S, key="never", in_main=True).began_event.wait()
    return await until_ended(rank)


async def redis_interrupted(stage):
    await stage.start()
    port = stage.server.address.rsplit(":", 1)[1]
    program = Quiet(stage.place, "redis-cli",
                    ["redis-cli", "-p", port, "BLPOP", "never", f"{STORE_TIMEOUT_S:.0f}"])
    return await until_ended(await program.start())


# A server that is stopped, or restarted; a connection that breaks.

async def set_to_stopped(stage):
    await stage.start()
    rank = await stage.client()
    await rank.call("set", key="key")
    await stop(stage.server)
    seen = [f"`{name}` {await asked_once(rank, name, '**“succeeds”**')}"
            for name in ("set", "add")]
    return Observation("; ".join(seen))


async def asked_once(rank, name, succeeds):
    call = rank.begin(name, BRIEF_S, key=f"key of {name}")
    result = await ended(call, COMES_BACK_S)
    if result is None:
        return f"**has no end** within {COMES_BACK_S:.0f} s"
    verb = succeeds if result["code"] == "ok" else f"gives {code_of(result).rstrip(',')}"
    return f"{verb} after {spelled(result['t'] - call.began)}"


async def redis_set_to_stopped(stage):
    await stage.start()
    client = await stage.client()
    await client.call("SET", "key", "1")
    await stop(stage.server)
    reply, _ = await client.timed(BRIEF_S, "SET", "key", "2")
    if reply is not None:
        return Observation(f"“{reply}”")
    return Observation(f"no answer within {BRIEF_S:.0f} s")


async def killed_and_back(stage):
    """A client with a key; returns it when another server listens on the same port."""
    await stage.start()
    rank = await stage.client()
    await rank.call("set", key="key")
    await stage.server.kill()
    await stage.restart()
    return rank, time.monotonic()


async def asked_until(rank, at, is_final):
    """What the client is told, again and again, until that is said."""
    while True:
        call = rank.begin("add", BRIEF_S, key="counter")
        result = await ended(call, COMES_BACK_S)
        if (result is None or result["code"] == "gone" or is_final(result)
                or time.monotonic() > at + COMES_BACK_S):
            return result
        await asyncio.sleep(0.05)


async def muster_restart(stage):
    rank, at = await killed_and_back(stage)
    result = await asked_until(rank, at, lambda end: end["code"] == "server_restarted")
    seen = told(result, at)
    await rank.call("reopen")
    return Observation(f"{code_of(result)} after {spelled(seen.seconds)}; after `reopen()` it "
                       f"{await asked_once(rank, 'add', 'is served')}", seen.seconds)


async def tcpstore_restart(stage):
    rank, at = await killed_and_back(stage)
    result = await asked_until(rank, at, lambda end: end["code"] == "ok")
    if result is None:
        return Observation(f"no answer within {COMES_BACK_S:.0f} s")
    if result["code"] == "ok":
        return Observation(f"served after {spelled(result['t'] - at)}, not told", result["t"] - at)
    if result["code"] == "gone":
        return Observation(f"{code_of(result)} after {spelled(result['t'] - at)}")
    return Observation(f"does not come back within {COMES_BACK_S:.0f} s: {code_of(result)} at the "
                       "last call, too")


async def redis_restart(stage):
    await stage.start()
    client = await stage.client()
    await client.call("SET", "key", "1")
    before = await run_of(client)
    await stage.server.kill()
    ending, _ = await client.timed(BRIEF_S, "GET", "key")
    await stage.restart()
    at = time.monotonic()
    again = await stage.client()
    value = await again.call("GET", "key")
    seconds = time.monotonic() - at
    what = "the connection ends" if isinstance(ending, Exception) else f"“{ending}”"
    found = "nil" if value is None else f"“{value}”"
    after = "the same" if await run_of(again) == before else "another"
    return Observation(f"{what}; another is served after {spelled(seconds)}, the key is {found}, "
                       f"`INFO` has {after} `run_id`", seconds)


async def run_of(client):
    (line,) = [line for line in (await client.call("INFO", "server")).splitlines()
               if line.startswith("run_id:")]
    return line


async def connection_reset(stage):
    """While the client waits for a key, which another sets a second later."""
    await stage.start()
    proxy = await stage.proxied()
    rank = await stage.client(address=proxy.address)
    other = await stage.client()
    waiting = rank.begin("get", STORE_TIMEOUT_S, key="key")
    await waiting.began_event.wait()
    await asyncio.sleep(0.2)
    at = await proxy.obey("reset")
    ending = asyncio.create_task(ended(waiting, 2 * STORE_TIMEOUT_S))
    await asyncio.sleep(1.0)
    setting = other.begin("set", PATIENCE_S, key="key")
    expect_ok(setting, await setting.result())
    result = await ending
    if result["code"] == "ok":
        took = spelled(result["t"] - setting.began)
        return Observation(f"the wait ends well, {took} after the key is set; the next call "
                           f"{await asked_once(rank, 'add', 'is served')}")
    end = "" if result["code"] == "gone" else await processes_ended([rank])
    return Observation(f"{code_of(result)} after {spelled(result['t'] - at)}{end}")


async def redis_connection_reset(stage):
    await stage.start()
    proxy = await stage.proxied()
    client = await stage.client(address=proxy.address)
    client.send("BLPOP", "list", int(STORE_TIMEOUT_S))
    await asyncio.sleep(0.2)
    at = await proxy.obey("reset")
    try:
        await asyncio.wait_for(client.reply(), PATIENCE_S)
        what = "answered"
    except (OSError, asyncio.IncompleteReadError):
        what = "the connection ends"
    return Observation(f"{what} after {spelled(time.monotonic() - at)}")


# A child process that goes on with what it inherits.

async def muster_fork(stage):
    await stage.start()
    rank = await stage.client()
    result = await rank.call("fork")
    stage.place.children.append(result["child"])
    return Observation(f"the child is told `{result['in_child']}`; the parent "
                       f"{await asked_once(rank, 'add', 'is served')}")


async def tcpstore_fork(stage):
    await stage.start()
    rank = await stage.client(store_timeout_s=WAIT_S)
    result = await ended(rank.begin("fork", WAIT_S, count=FORKED_READS), 4 * WAIT_S)
    if result is None:
        return Observation(f"**they hang**: no end within {4 * WAIT_S:.0f} s")
    return Observation("; ".join(f"the {name}: {reads_in_words(reads)}" for name, reads in
                                 zip(("parent", "child"), result["reads"])))


def reads_in_words(reads):
    if not reads:
        return "**ends without a word**"
    values = f"of {FORKED_READS} values {reads['right']} are right, {reads['wrong']} another's"
    if "error" not in reads:
        return values
    error = code_of({"code": "error", "message": reads["error"]}).rstrip(",")
    return f"{values}, then **{error}**"


# What an operation takes.

async def round_trip(stage):
    await stage.start()
    rank = await stage.client()

    async def batch():
        result = await rank.call("adds", key="counter", count=ADDS)
        return statistics.median(result["took_us"]) / 1e6
    return await median_of_batches(batch)


async def redis_round_trip(stage):
    """By the program that comes with it: this one would take longer than the server."""
    await stage.start()
    port = stage.server.address.rsplit(":", 1)[1]

    async def batch():
        process = await asyncio.create_subprocess_exec(
            "redis-benchmark", "-p", port, "-c", "1", "-n", str(ADDS), "-t", "incr", "--csv",
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
        output, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        (row,) = csv.DictReader(output.decode().splitlines())
        return float(row["p50_latency_ms"]) / 1e3
    return await median_of_batches(batch)


async def median_of_batches(batch):
    """Some time lies between them, since a machine may be busy otherwise."""
    medians_s = []
    for _ in range(BATCHES):
        medians_s.append(await batch())
        await asyncio.sleep(0.3)
    seconds = statistics.median(medians_s)
    return Observation(f"{seconds * 1e6:.0f} µs", seconds)


# Objects that do harm.

class Touch:
    """As a pickle, it makes a file where it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


def decoded(stage, name, content):
    """What Muster's default codec makes of the bytes."""
    path = stage.place.folder / name
    path.write_bytes(content)
    done = subprocess.run([stage.place.programs_of["compare_decoder"], path], timeout=PATIENCE_S,
                          capture_output=True, check=True)
    return json.loads(done.stdout)


def executed(flag, result):
    text = "**executes its code**" if flag.exists() else "executes nothing"
    return Observation(f"{text}: {result}")


async def muster_code(stage):
    flag = stage.place.folder / "flag"
    result = decoded(stage, "object", pickle.dumps(Touch(flag)))
    return executed(flag, code_of(result))


async def received(stage, content):
    """A stranger, who is no rank, writes what rank 1 receives: how that ends and what it takes."""
    await stage.start()
    _, receiver = await stage.group(2)
    stranger = await stage.client()
    await stranger.call("set_hex", key="send_to/1/0", value=content.hex())
    before = most_resident_bytes(receiver)
    result = await receiver.begin("recv", STORE_TIMEOUT_S, source=0).result()
    return result, most_resident_bytes(receiver) - before


async def tcpstore_code(stage):
    flag = stage.place.folder / "flag"
    result, _ = await received(stage, pickle.dumps(Touch(flag)))
    return executed(flag, code_of(result))


async def muster_few_bytes(stage):
    """The beginning of a list of 2^31 texts."""
    content = b"\1" + struct.pack("<Q", 1 << 31)
    result = decoded(stage, "object", content)
    return Observation(f"+{growth(result['grown_bytes'])} for {len(content)} bytes: "
                       f"{code_of(result)}", result["seconds"])


async def tcpstore_few_bytes(stage):
    """None, which is to be remembered under a number of 27 bits."""
    content = b"Nr\xff\xff\xff\x07."
    result, grown = await received(stage, content)
    return Observation(f"+{growth(grown)} for {len(content)} bytes: {code_of(result)}")


CLIENT_CASES = [
    Case("wait_blocks_set", f"One thread waits for a key ({WAIT_S:.0f} s), another sets one "
         "through the same client", wait_blocks_set, redis=redis_wait_blocks_set),
    Case("interrupted", "Ctrl-C a second after a process (`musterctl`, Python, `redis-cli`) began "
         f"to wait for a key ({STORE_TIMEOUT_S:.0f} s): it ends after",
         muster=muster_interrupted, tcpstore=tcpstore_interrupted, redis=redis_interrupted),
    Case("set_to_stopped", f"The server is stopped; calls with a time-out of {BRIEF_S:.0f} s, "
         "where they can have one",
         set_to_stopped, redis=redis_set_to_stopped),
    Case("restart", "The server is killed and restarted on the same port: a client is told",
         muster=muster_restart, tcpstore=tcpstore_restart, redis=redis_restart),
    Case("connection_reset", "A connection is reset while its client waits for a key",
         connection_reset, redis=redis_connection_reset),
    Case("fork", "A process forks, and both go on with the client", muster=muster_fork,
         tcpstore=tcpstore_fork),
    Case("round_trip", "One client adds to a counter, one call after the other: median of "
         f"{BATCHES} times {ADDS:,}", round_trip, redis=redis_round_trip, alone=True),
    Case("code", "An object is a pickle that makes a file", muster=muster_code,
         tcpstore=tcpstore_code),
    Case("few_bytes", "A few hostile bytes are received as an object: memory",
         muster=muster_few_bytes, tcpstore=tcpstore_few_bytes),
]
