"""Faults of resources and clocks: nobody notices them."""

import asyncio
import os
import re
import resource
import socket
import subprocess
import time
from dataclasses import replace

import effects
from fault import CLOSED, Fault
from processes import Absent, PATIENCE_S, RawClient, Violation, within
from rank_faults import kill_victim

MIB = 1 << 20
MEMORY_LIMIT = 256 * MIB
HOARDING_S = 90.0  # for all that so many ask, on a machine that does other things, too


# File descriptors.

def open_descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


async def leave_no_descriptor(run):
    """The server has none left for a newcomer, who is told so."""
    pid = run.server.pid
    run.state["limits"] = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    lowest = 0
    used = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
    while lowest in used:
        lowest += 1
    at = time.monotonic()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest, run.state["limits"][1]))
    newcomer = await run.new_rank(run.victims_rank, suffix="n")
    call = newcomer.begin("connect", 1.0, address=run.server.address)
    # By TLS it hears an alert.
    code = "busy" if run.place.credential_file is None else "unavailable"
    run.expect_code(await call.result(), [code], "a newcomer without a descriptor")
    run.state["newcomer"] = newcomer
    return at


async def give_descriptors(run):
    resource.prlimit(run.server.pid, resource.RLIMIT_NOFILE, run.state["limits"])
    at = time.monotonic()
    result = await run.state["newcomer"].connect(run.server.address)
    if result["t"] - at > 1.0:
        raise Violation(f"a newcomer was let in {result['t'] - at:.2f} s after the relief")
    return at


async def leave_the_rank_none(run):
    """The victim's connection is reset, and it has no descriptor to come back with."""
    pid = run.victim.pid
    run.state["limits"] = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, run.state["limits"][1]))
    return await run.proxy.obey("reset")


async def give_the_rank_some(run):
    resource.prlimit(run.victim.pid, resource.RLIMIT_NOFILE, run.state["limits"])
    return await run.proxy.obey("pass")


# Memory.

def resident_max(limit):
    """What a server may take, reserves included."""
    return 1.125 * limit + 64 * MIB


async def limit_memory(run):
    run.state["server_flags"] = ["--memory-bytes-max", str(MEMORY_LIMIT)]


async def fill_memory(run):
    """Small values, and in their place large ones."""
    at = time.monotonic()
    for value_bytes in (64 * 1024, MIB - 1000):
        count = 2 * MEMORY_LIMIT // value_bytes
        call = run.late.begin("fill", 20.0, value_bytes=value_bytes, count=count)
        refused = await call.result()
        run.expect_code(refused, ["resource_exhausted"], str(call))
        if refused["limit"] != MEMORY_LIMIT:
            raise Violation(f"the limit is said to be {refused['limit']}")
        if refused["taken"] * value_bytes < 0.75 * MEMORY_LIMIT:
            raise Violation(f"{refused['taken']} values of {value_bytes} bytes were all")
        resident = run.server.status_bytes("VmRSS")
        if resident > resident_max(MEMORY_LIMIT):
            raise Violation(f"{resident} bytes are resident")
        run.state["told"] = run.state.get("told", "") + f"{resident / MIB:.0f} MiB resident; "
        if value_bytes < MIB // 2:
            await run.late.call("empty", count=refused["taken"])
    run.state["taken"] = refused["taken"]
    return at


async def free_memory(run):
    at = time.monotonic()
    await run.late.call("empty", count=run.state["taken"])
    return at


HOARDERS_LIMIT = 64 * MIB
HOARDERS_COUNT, HOARDERS_BESIDE_COUNT = 1500, 400  # the latter where many cases run at once


async def limit_memory_much(run):
    run.state["server_flags"] = ["--memory-bytes-max", str(HOARDERS_LIMIT)]


async def hoard(run):
    """So many connections of one address ask for all that there is, and read nothing. Meanwhile one
    of another address reads and writes."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = HOARDERS_COUNT if run.phase == "idle" else HOARDERS_BESIDE_COUNT
    count = min(wanted, hard - 200)
    at = time.monotonic()
    client = RawClient(run.place, run.server.plain_address, "hoards", str(count))
    client.session_count = count
    await client.start()
    await client.next(HOARDING_S)
    hoarded = asyncio.create_task(client.next(HOARDING_S))
    slowest_s = 0.0
    while not hoarded.done():
        began = time.monotonic()
        await run.late.call("set", key="beside")
        await run.late.call("get", key="beside")
        slowest_s = max(slowest_s, time.monotonic() - began)
        await asyncio.wait([hoarded], timeout=0.02)
    resident = run.server.status_bytes("VmHWM")
    run.state["told"] = (f"{resident / MIB:.0f} MiB resident at most, "
                         f"{(await hoarded)['closed']} of {count} connections closed, "
                         f"a set and a get took {slowest_s * 1000:.0f} ms at most")
    if resident > resident_max(HOARDERS_LIMIT):
        raise Violation(f"{resident} bytes were resident")
    run.state["hoarder"] = client
    return at


async def let_hoarders_go(run):
    """What their sessions hold goes with them; until then others may write."""
    await run.state["hoarder"].kill()
    until = time.monotonic() + PATIENCE_S
    while True:
        at = time.monotonic()
        await run.late.call("set", key="beside")
        status = (await run.late.call("status"))["status"]
        if int(status["sessions_count"]) < 20:
            return at
        if at > until:
            raise Violation(f"{status['sessions_count']} sessions stand {PATIENCE_S:.0f} s after "
                            f"the hoarders went")
        await asyncio.sleep(0.1)


async def narrow_address_space(run):
    """The system refuses the server memory, long before its own limit."""
    pid = run.server.pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_AS)
    run.state["limits"] = (hard, hard)
    at = time.monotonic()
    resource.prlimit(pid, resource.RLIMIT_AS,
                     (run.server.status_bytes("VmSize") + 24 * MIB, hard))
    refusals = 0
    for number in range(40):
        call = run.late.begin("set", 2.0, key=f"big{number}", value_bytes=12 * MIB)
        result = await call.result()
        if result["code"] != "ok":
            run.expect_code(result, ["resource_exhausted"], str(call))
            refusals += 1
            break
    if refusals == 0:
        raise Violation("480 MiB were taken where 24 MiB are left")
    return at


async def widen_address_space(run):
    resource.prlimit(run.server.pid, resource.RLIMIT_AS, run.state["limits"])
    return time.monotonic()


# The log.

async def log_to_full_disk(run):
    run.state.update(log_level="debug", server_errors=open("/dev/full", "wb"))


async def log_to_blocked_pipe(run):
    run.state["read_end"], write_end = os.pipe()
    os.set_blocking(write_end, False)
    try:
        while os.write(write_end, b"\n" * 4096):
            pass
    except BlockingIOError:
        pass
    os.set_blocking(write_end, True)
    run.state.update(log_level="debug", server_errors=os.fdopen(write_end, "wb"))


async def log_to_small_disk(run):
    """A file system of 64 KiB, which something else fills."""
    folder = run.place.folder / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder],
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise Absent("mounting needs root: " + done.stderr.decode().strip())
    run.place.mounts.append(folder)
    run.state.update(log_level="debug", disk=folder, server_errors=open(folder / "log", "ab"))


async def fill_disk(run):
    at = time.monotonic()
    try:
        (run.state["disk"] / "filler").write_bytes(b"x" * 65536)
    except OSError:
        pass
    await many_connections(run)
    return at


async def many_connections(run):
    """Each leaves some lines in the log."""
    host, port = run.server.address.rsplit(":", 1)
    for _ in range(50):
        _, writer = await asyncio.open_connection(host, int(port))
        writer.close()


async def empty_disk(run):
    (run.state["disk"] / "filler").unlink()
    return time.monotonic()


async def connect_often(run):
    at = time.monotonic()
    await many_connections(run)
    return at


# Strangers.

BROKEN = {  # what is sent by one who was let in -> the code with which it is sent away
    "truncated": None,
    "truncated_header": None,
    "oversized": "too_large",
    "oversized_by_one": "too_large",
    "unknown_type": "protocol_error",
    "type_of_servers": "protocol_error",
    "wrong_body": "protocol_error",
    "wrong_list": "protocol_error",
    "no_id": "protocol_error",
}
DECLARED_COUNT = 20
DECLARED_RESIDENT_BYTES = 4 * MIB  # where 320 MiB are declared


async def send_noise(run):
    """What is no hello, of 20 strangers."""
    host, port = run.server.address.rsplit(":", 1)
    for _ in range(20):
        kind = run.dice.randrange(3)
        garbage = [run.dice.randbytes(run.dice.randint(1, 3000)), b"\xff" * 16,
                   b"MUST" + run.dice.randbytes(run.dice.randint(1, 100))][kind]
        with socket.create_connection((host, int(port)), PATIENCE_S) as stranger:
            try:
                stranger.sendall(garbage)
            except OSError:
                pass
        await asyncio.sleep(0.01)


async def see_end_in_log(run, address, kind):
    line = re.compile(rf" {re.escape(address)}, session \d+: ended: \S")
    until = time.monotonic() + PATIENCE_S
    while not line.search((run.place.folder / "musterd.err").read_text(encoding="utf-8")):
        if time.monotonic() > until:
            raise Violation(f"{kind}: the server does not say why it let {address} go")
        await asyncio.sleep(0.02)


async def break_protocol(run, kind, code):
    """The server closes and says why: to the peer, or in its log if that has ended itself."""
    client = await RawClient(run.place, run.server.plain_address, "breaks", kind).start()
    told = await client.next()
    if not told["is_closed"]:
        raise Violation(f"{kind}: the connection was not closed")
    if code is not None:
        run.expect_code(told, [code], kind)
        if told["decided_by"] != "server":
            raise Violation(f"{kind}: {told['message']}")
    else:
        await see_end_in_log(run, told["address"], kind)
    await within(PATIENCE_S, f"the end of {client.name}", client.process.wait())


async def declare_much(run):
    """As much as may be, of which little comes: the server makes room for what has come."""
    before = run.server.status_bytes("VmRSS")
    client = RawClient(run.place, run.server.plain_address, "declares", str(DECLARED_COUNT))
    client.session_count = DECLARED_COUNT
    await client.start()
    await client.next()
    await run.late.call("set", key="declared")  # what was sent before this has been read
    grown = run.server.status_bytes("VmRSS") - before
    run.state["told"] = f"{grown / MIB:.1f} MiB more resident"
    if grown > DECLARED_RESIDENT_BYTES:
        raise Violation(f"{grown} bytes are resident for what was but declared")
    await client.kill()


async def send_garbage(run):
    """Noise, and of those who were let in truncated frames, lengths beyond all limits, unknown
    types, wrong bodies."""
    at = time.monotonic()
    await send_noise(run)
    for kind, code in BROKEN.items():
        await break_protocol(run, kind, code)
    await declare_much(run)
    return at


# Clocks.

async def prepare_wall_clock(run):
    path = run.place.folder / "shift"
    path.write_text("0\n")
    library = run.place.programs_of["libfault_wall_clock.so"]
    run.state["wall_clock"] = {"LD_PRELOAD": str(library), "MUSTER_WALL_CLOCK": str(path)}
    run.state["wall_clock_of"] = run.dice.choice([("server",), ("victim",), ("rank", "victim"),
                                                  ("server", "rank", "victim")])
    run.state["shift"] = path
    run.state["log_level"] = "debug"


async def jump(run):
    years = run.dice.choice([-40, -10, 10, 60])
    at = time.monotonic()
    run.state["shift"].write_text(f"{years * 365 * 86400}\n")
    if "server" in run.state["wall_clock_of"]:
        await many_connections(run)
        await asyncio.sleep(0.1)
        this_year = time.gmtime().tm_year
        last = (run.place.folder / "musterd.err").read_text().splitlines()[-1]
        if abs(int(last[:4]) - this_year - years) > 1:
            raise Violation(f"the log did not see the jump of {years} years: {last}")
    return at


async def jump_back(run):
    run.state["shift"].write_text("0\n")
    return time.monotonic()


LEAD_S = 5.0  # before the wrap


async def prepare_wrap(run):
    """The server, or the ranks, or all get a time namespace shortly before the wrap."""
    offset_s = int(run.fault.wrap_ms / 1000 - LEAD_S - time.monotonic())
    words = ["unshare", "--time", "--fork", "--kill-child", "--monotonic", str(offset_s),
             "--boottime", str(offset_s)]
    run.state["clock_prefix"] = tuple(words)
    run.state["clock_offset_s"] = float(offset_s)
    run.state["wraps_at"] = run.fault.wrap_ms / 1000 - offset_s


async def wait_for_wrap(run):
    await run.pause_until(run.state["wraps_at"] + run.dice.uniform(-0.3, 0.3))
    return time.monotonic()


async def pass_wrap(run):
    await run.pause_until(run.state["wraps_at"] + 0.3)
    return time.monotonic()


async def kill_at_wrap(run):
    await wait_for_wrap(run)
    return await kill_victim(run)


QUIET = {"effect": effects.unnoticed, "bound_s": lambda t: 2.0, "promise": "2 s"}
BRIEF = {"lasts_s": lambda t, dice: dice.uniform(0.3, 1.5)}
RESOURCES = [
    Fault("no_descriptors", "out of file descriptors", inject=leave_no_descriptor,
          heal=give_descriptors, **QUIET, **BRIEF),
    Fault("rank_no_descriptors", "reset, and without a descriptor to come back", via="proxy",
          inject=leave_the_rank_none, heal=give_the_rank_some,
          # A machine that is busy must not take all of the grace by itself.
          times=lambda t: replace(t, grace=max(t.grace, 1.0)),
          lasts_s=lambda t, dice: t.grace * dice.uniform(0.1, 0.3), **QUIET),
    Fault("memory_limit", "the memory limit is reached", inject=fill_memory, heal=free_memory,
          prepare=limit_memory, **QUIET, **BRIEF),
    Fault("hoarders", "up to 1,500 connections ask for everything and read nothing", inject=hoard,
          heal=let_hoarders_go, prepare=limit_memory_much, **QUIET, **BRIEF),
    Fault("memory_refused", "the system refuses the server memory", inject=narrow_address_space,
          heal=widen_address_space, **QUIET, **BRIEF),
    Fault("log_full", "the log's disk is full: /dev/full", inject=connect_often,
          prepare=log_to_full_disk, **QUIET),
    Fault("log_disk_full", "the log's disk becomes full", inject=fill_disk, heal=empty_disk,
          prepare=log_to_small_disk, needs=("root",), **QUIET, **BRIEF),
    Fault("log_blocked", "the log's pipe is blocked", inject=connect_often,
          prepare=log_to_blocked_pipe, **QUIET),
    Fault("garbage", "garbage, truncated or oversized frames", inject=send_garbage, **QUIET),
]
CLOCKS = [Fault("wall_clock", "the wall clock jumps by years", inject=jump, heal=jump_back,
                prepare=prepare_wall_clock, **QUIET, **BRIEF)]
for bits in (31, 32):
    for who, of in (("server", ("server",)), ("ranks", ("rank", "victim")),
                    ("all", ("server", "rank", "victim"))):
        CLOCKS.append(Fault(f"wrap{bits}_{who}", f"2^{bits} ms of monotonic time pass: {who}",
                            inject=wait_for_wrap, heal=pass_wrap, prepare=prepare_wrap,
                            wrap_ms=1 << bits, wrap_of=of, needs=("time",), **QUIET))
    CLOCKS.append(Fault(f"wrap{bits}_kill", f"a rank is killed when 2^{bits} ms pass",
                        effects.lost, kill_at_wrap, prepare=prepare_wrap, wrap_ms=1 << bits,
                        wrap_of=("server", "rank", "victim"), needs=("time",), victim_dies=True,
                        **CLOSED))
