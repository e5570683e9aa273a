"""Faults of a client that does not read its replies: it is let go, and the others are served."""

import asyncio
import statistics
import time

from effects import nobody_else_notices, now
from fault import Fault
from processes import PATIENCE_S, RawClient, Violation

VALUE_BYTES = (1 << 20) - 1000
STALLED_S = 10.0
LOOKS_EVERY_S = 0.5  # the server looks after its slow readers; and the machine is loaded
ADDS = 500
# What the machine adds when all of its processors are busy with other runs.
DISTURBANCE_US = 50_000


async def closed_for(run, reason):
    """When the server has said in its log that it closes a connection for this reason."""
    log = run.place.folder / "musterd.err"
    until = time.monotonic() + STALLED_S + PATIENCE_S
    while reason not in log.read_text(encoding="utf-8"):
        if time.monotonic() > until:
            raise Violation(f"the server does not say '{reason}'")
        await asyncio.sleep(0.02)
    return time.monotonic()


async def p99_us(run):
    result = await run.late.call("adds", key="others", count=ADDS)
    return statistics.quantiles(result["took_us"], n=100)[98]


def see_served(run, quiet_us, disturbed_us):
    run.state["p99_us"] = (quiet_us, disturbed_us)
    if disturbed_us > 2 * quiet_us + DISTURBANCE_US:
        raise Violation(f"the p99 of others was {quiet_us:.0f} us and is {disturbed_us:.0f} us")


async def takes_nothing(run):
    """It has asked for 40 MiB and reads none: after 10 s its connection is closed."""
    await run.late.call("set", key="large", value_bytes=VALUE_BYTES)
    quiet_us = await p99_us(run)
    reader = await RawClient(run.place, run.server.address, "takes_nothing", "large").start()
    at = (await reader.next())["t"]
    closing = asyncio.create_task(closed_for(run, "it has taken nothing of its replies for 10 s"))
    see_served(run, quiet_us, await p99_us(run))
    run.measure(await closing - at, STALLED_S - 0.1, STALLED_S + LOOKS_EVERY_S, "the closing")
    await nobody_else_notices(run)


async def falls_behind(run):
    """The value that it has asked for 40 times comes to be: more than 8 MiB wait."""
    reader = await RawClient(run.place, run.server.address, "takes_nothing", "large").start()
    await reader.next()
    await asyncio.sleep(0.3)  # all of it waits at the server
    quiet_us = await p99_us(run)
    call = run.late.begin("set", 20.0, key="large", value_bytes=VALUE_BYTES)
    run.expect_code(await call.result(), ["ok"], str(call))
    closed_at = await closed_for(run, "it does not take its replies: more than 8 MiB wait")
    run.measure(closed_at - call.began, 0.0, LOOKS_EVERY_S, "the closing")
    see_served(run, quiet_us, await p99_us(run))
    await nobody_else_notices(run)


READERS = [
    Fault("reader_stuck", "a reader that does not read: it takes nothing", takes_nothing, now,
          bound_s=lambda t: STALLED_S + LOOKS_EVERY_S, promise="closed after 10 s, with a reason"),
    Fault("reader_behind", "a reader that does not read: more than 8 MiB wait", falls_behind, now,
          bound_s=lambda t: LOOKS_EVERY_S, promise="closed at once, with a reason"),
]
