"""Faults of a client that does not read its replies: it is let go, and the others are served."""

import asyncio
import datetime
import functools
import itertools
import re
import statistics
import time

from effects import nobody_else_notices, now
from fault import Fault
from processes import PATIENCE_S, RawClient, Violation

VALUE_BYTES = (1 << 20) - 1000
STALLED_S = 10.0
STALLED_WITH_MUCH_S = 1.0
LOOKS_EVERY_S = 0.5  # the server looks after its slow readers; and the machine is loaded
WINDOWS = 5  # of each kind, and more while the medians are too far from each other:
WINDOWS_MAX = 25  # what else the machine does strikes both kinds, but not evenly in a few
ADDS = 500  # of others in a window
# Beyond twice the quiet p99: a run alone, and runs that share all processors with others.
TOLERANCE_US = 2_000
TOLERANCE_SHARED_US = 10_000


class Reader:
    """A raw client, and the address by which the server's log knows it."""

    def __init__(self, run, key, number):
        self.run = run
        self.number = number
        self.client = RawClient(run.place, run.server.plain_address, "takes_nothing", key)
        self.address = None

    async def start(self):
        self.client.name += str(self.number)
        await self.client.start()
        self.address = (await self.client.next())["address"]
        return self

    async def ask(self):
        """From now on it has asked for 40 values, and takes none."""
        self.client.say("ask")
        return (await self.client.next())["t"]

    def last_taken(self, before):
        """When the server's socket took bytes for the last time before the end; 0: none. What the
        kernel holds may be seen to change with the end, too."""
        taken = 0.0
        while not self.client.lines.empty():
            at = self.client.lines.get_nowait()["t"]
            if at < before:
                taken = at
        return taken

    async def closed_for(self, reason):
        """When the server closed this connection, for this reason, by its own log."""
        log = self.run.place.folder / "musterd.err"
        until = time.monotonic() + STALLED_S + PATIENCE_S
        line = re.compile(rf"^(\S+) .* {re.escape(self.address)}, session \d+: closed: {reason}$",
                          re.M)
        while not (found := line.search(log.read_text(encoding="utf-8"))):
            if time.monotonic() > until:
                said = [each for each in log.read_text(encoding="utf-8").splitlines()
                        if f" {self.address}, " in each or each.endswith(f" {self.address}")]
                raise Violation(f"the server does not say '{reason}' of {self.address}, whose "
                                f"socket took bytes at {self.last_taken(until):.3f}, waited for "
                                f"until {until:.3f}; it says {said}")
            await asyncio.sleep(0.02)
        said_at = datetime.datetime.fromisoformat(found[1].replace("Z", "+00:00"))
        return time.monotonic() - (time.time() - said_at.timestamp())


class Windows:
    """The p99 of others' calls, in quiet and in disturbed windows that take turns."""

    def __init__(self, run):
        self.run = run
        self.meter = None
        self.quiet_us = []
        self.disturbed_us = []

    async def start(self):
        self.meter = await self.run.new_rank(self.run.victims_rank, suffix="m")
        await self.meter.connect(self.run.server.address, label=self.meter.name)
        return self

    async def measure(self, to, disturb):
        """While the calls are made something happens; says when it had."""
        call = self.meter.begin("adds", key="others", count=ADDS)
        await call.began_event.wait()
        happened = await disturb()
        result = await call.result()
        self.run.expect_code(result, ["ok"], str(call))
        to.append(statistics.quantiles(result["took_us"], n=100)[98])
        return happened

    def is_served(self):
        """Whether the others are served as is promised, so far."""
        quiet_us, disturbed_us = map(statistics.median, (self.quiet_us, self.disturbed_us))
        self.run.state["told"] = (f"p99 of others {quiet_us:.0f} us, with the reader "
                                  f"{disturbed_us:.0f} us, of {len(self.quiet_us)} windows each")
        tolerance_us = TOLERANCE_US if self.run.is_alone else TOLERANCE_SHARED_US
        return disturbed_us <= 2 * quiet_us + tolerance_us

    def are_enough(self):
        count = len(self.disturbed_us)
        return count >= WINDOWS and (self.is_served() or count == WINDOWS_MAX)

    def judge(self):
        if not self.is_served():
            raise Violation(f"{self.run.state['told']}: {self.quiet_us}, {self.disturbed_us}")


async def nothing():
    pass


async def takes_nothing(run):
    """It has asked for 40 MiB and reads none: after 10 s its connection is closed."""
    await run.late.call("set", key="large", value_bytes=VALUE_BYTES)
    windows = await Windows(run).start()
    for number in itertools.count():
        reader = await Reader(run, "large", number).start()
        await windows.measure(windows.quiet_us, nothing)
        at = await windows.measure(windows.disturbed_us, reader.ask)
        if windows.are_enough():
            break
        await reader.client.kill()
    closed_at = await reader.closed_for("it has taken nothing of its replies for 10 s")
    if closed_at - at < STALLED_S - 0.1:
        raise Violation(f"closed {closed_at - at:.3f} s after it had asked")
    since = max(at, reader.last_taken(closed_at))
    run.measure(closed_at - since, 0.0, STALLED_S + LOOKS_EVERY_S, "the closing")
    windows.judge()
    await nobody_else_notices(run)


async def falls_behind(run):
    """The value that it has asked for 40 times comes to be: more than 8 MiB wait. In quiet windows
    as large a value comes to be, for which nobody has asked."""
    windows = await Windows(run).start()

    async def set_large(key):
        call = run.late.begin("set", 20.0, key=key, value_bytes=VALUE_BYTES)
        result = await call.result()
        run.expect_code(result, ["ok"], str(call))
        return result["t"]
    while not windows.are_enough():
        number = len(windows.quiet_us)
        key = f"large{number}"
        reader = await Reader(run, key, number).start()
        await reader.ask()
        await asyncio.sleep(0.3)  # all of it waits at the server
        await windows.measure(windows.quiet_us, functools.partial(set_large, f"other{number}"))
        closing = asyncio.create_task(
            reader.closed_for("it does not take its replies: more than 8 MiB wait"))
        set_at = await windows.measure(windows.disturbed_us, functools.partial(set_large, key))
        closed_at = await closing
        since = max(set_at, reader.last_taken(closed_at))
        run.measure(closed_at - since, 0.0, STALLED_WITH_MUCH_S + LOOKS_EVERY_S, "the closing")
    windows.judge()
    await nobody_else_notices(run)


READERS = [
    Fault("reader_stuck", "a reader that does not read: it takes nothing", takes_nothing, now,
          bound_s=lambda t: STALLED_S + LOOKS_EVERY_S, promise="closed after 10 s, with a reason"),
    Fault("reader_behind", "a reader that does not read: more than 8 MiB wait", falls_behind, now,
          bound_s=lambda t: STALLED_WITH_MUCH_S + LOOKS_EVERY_S,
          promise="closed after 1 s, with a reason"),
]
