"""One run of the fault matrix: four ranks, brought into a phase, where the fault meets one of them.

The victim is any rank; `late` is the one for whom the others wait in the phase, and `others` are
the two that wait. What has to follow is in effects.py. Every choice comes from the run's seed.
"""

import asyncio
import functools
import itertools
import os
import random
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

from processes import (Absent, Namespaces, PATIENCE_S, Place, Proxy, Rank, RawClient, Server,
                       Violation, within)

PHASES = ("before_join", "during_join", "barrier", "all_gather", "recv", "idle")
JOINING = ("before_join", "during_join")
WORLD_SIZE = 4
NOTHING_HELD = {"sessions": 1, "groups": 0, "epochs": 0, "rounds": 0, "streams": 0, "waits": 0,
                "objects": 0}
HELD = tuple(NOTHING_HELD)
CLOSE_S = 0.5  # closing takes 100 ms at most, and longer where all processors are busy
GONE_S = 2.0  # who has said goodbye is gone at once, as a busy machine sees it
run_numbers = itertools.count(1)


@dataclass(frozen=True)
class Times:
    """What musterd is given, in seconds."""

    session: float
    grace: float
    slack: float
    heartbeat: float

    def flags(self):
        names = {"session-timeout": self.session, "grace": self.grace, "slack": self.slack,
                 "heartbeat": self.heartbeat}
        return [word for name, seconds in names.items()
                for word in (f"--{name}", f"{round(seconds * 1000)}ms")]


SHORT = Times(session=5, grace=0.3, slack=0.5, heartbeat=0.25)
# To be back takes two more ways to and fro, on a machine that does many runs at once.
SHORT_BY_TLS = replace(SHORT, grace=0.6)
DEFAULT = Times(session=15, grace=2, slack=0.5, heartbeat=1)


PROBES = {
    "root": ["mount", "--version"],
    "network": ["ip", "netns", "list"],
    "time": ["unshare", "--time", "--fork", "true"],
}


@functools.cache
def why_not(need):
    """Why a fault that needs this cannot be done here; nothing when it can."""
    if os.geteuid() != 0:
        return "this needs root"
    try:
        done = subprocess.run(PROBES[need], capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return done.stderr.strip() if done.returncode != 0 else None


class Run:
    def __init__(self, fault, phase, seed, times, programs_of, is_alone=False, is_tls=False,
                 is_viewed=False):
        self.fault = fault
        self.phase = phase
        self.seed = seed
        self.times = times
        self.is_alone = is_alone  # no other run shares the machine
        self.dice = random.Random(f"{fault.name} {phase} {seed}")
        is_near = fault.via != "network"  # else the server is in another network namespace
        self.place = Place(f"{os.getpid():x}-{next(run_numbers)}", programs_of, is_tls,
                           is_viewed and is_near)
        self.measured = []  # seconds from the fault to what had to follow
        self.server = None
        self.proxy = None
        self.namespaces = None
        self.ranks = []
        self.victim = None
        self.late = None
        self.others = []
        self.pending = {}  # rank -> the call in which it waits
        self.epoch = 0
        self.lenient = set()  # ranks whose calls may outlive their deadline: they were stopped
        self.state = {}  # what a fault's own steps remember

    @property
    def victims_rank(self):
        return self.victim.rank

    @property
    def survivors(self):
        return [*self.others, self.late]

    async def execute(self):
        try:
            if self.fault.hosted:
                await self.fault.prepare(self)
            else:
                await self.prepare()
                await self.enter()
            await asyncio.sleep(self.dice.uniform(0.05, 0.6))
            await self.fault.effect(self)
            await self.finish()
        finally:
            if "read_end" in self.state:
                os.close(self.state["read_end"])
            await self.place.clear()

    async def finish(self):
        await self.end_all_calls()
        self.check_deadlines()
        if self.server is not None:
            await self.see_nothing_held()
            await self.server.stop()

    def made(self, kind):
        return [program for program in self.place.programs if isinstance(program, kind)]

    async def end_all_calls(self):
        """Who lives closes its store, which ends every call that still waits."""
        living = [rank for rank in self.made(Rank) if rank.lives]
        for call in [rank.begin("close", CLOSE_S) for rank in living]:
            self.expect_code(await call.result(PATIENCE_S), ["ok"], str(call))
        for call in [call for rank in living for call in rank.history]:
            await call.result(self.times.slack + CLOSE_S)

    async def see_nothing_held(self):
        """When all ranks have closed, the server holds nothing of them but keys: at once, but for
        those who could not say goodbye."""
        mute = sum(client.session_count for client in self.made(RawClient))
        mute += sum(not rank.lives for rank in self.made(Rank))
        began = time.monotonic()
        observer = await self.new_rank(0, suffix="o")
        await observer.connect(self.server.address)
        while True:
            status = (await observer.call("status"))["status"]
            held = {name: int(status[f"{name}_count"]) for name in HELD}
            if held == NOTHING_HELD:
                return
            after_s = time.monotonic() - began
            bound_s = GONE_S + (self.times.session + self.times.slack if mute else 0.0)
            sessions_max = NOTHING_HELD["sessions"] + mute
            if after_s > bound_s or (after_s > GONE_S and held["sessions"] > sessions_max):
                raise Violation(f"after {after_s:.1f} s the server still holds {held}, {mute} "
                                "sessions had said no goodbye")
            await asyncio.sleep(0.05)

    # What is there before the fault.

    def prefix_of(self, who):
        """What a process of the server or of a rank is started by, and how far its clock is."""
        if self.namespaces is not None:
            return self.namespaces.prefix(1 if who == "victim" else 0), 0.0
        if self.fault.wrap_ms and who in self.fault.wrap_of:
            return self.state["clock_prefix"], self.state["clock_offset_s"]
        return (), 0.0

    async def prepare(self):
        for need in self.fault.needs:
            if (reason := why_not(need)) is not None:
                raise Absent(reason)
        await self.fault.prepare(self)
        listen = "127.0.0.1:0"
        flags = [*self.times.flags(), "--log-level", self.state.get("log_level", "info"),
                 *self.state.get("server_flags", [])]
        if self.fault.via == "network":
            self.namespaces = Namespaces(self.place)
            await self.namespaces.make()
            listen = Namespaces.SERVER + ":0"
            if self.place.credential_file is None:
                flags.append("--allow-unauthenticated")
        prefix, _ = self.prefix_of("server")
        self.server = Server(self.place, flags, listen, prefix=prefix,
                             errors=self.state.get("server_errors"),
                             environment=self.environment_of("server"))
        await self.server.start()
        self.check_clock(self.server, "server")
        ranks = list(range(WORLD_SIZE))
        self.dice.shuffle(ranks)
        victims_address = self.server.address
        if self.fault.via == "proxy":
            self.proxy = Proxy(self.place, "proxy", self.server.address)
            victims_address = (await self.proxy.start()).address
        for index, rank in enumerate(ranks):
            who = "victim" if index == 0 else "rank"
            self.ranks.append(await self.new_rank(rank, who))
        self.victim, self.late, *self.others = self.ranks
        await asyncio.gather(*(
            one.connect(victims_address if one is self.victim else self.server.address,
                        label=one.name) for one in self.ranks))

    def check_clock(self, program, who):
        """That a time namespace is what it was to be."""
        if self.fault.wrap_ms and who in self.fault.wrap_of:
            line = Path(f"/proc/{program.pid}/timens_offsets").read_text().splitlines()[0]
            if int(line.split()[1]) != int(self.state["clock_offset_s"]):
                raise Violation(f"the clock of {program.name}: {line}")

    def environment_of(self, who):
        wall_clocks = self.state.get("wall_clock_of", ())
        return self.state["wall_clock"] if who in wall_clocks else None

    async def new_rank(self, number, who="rank", suffix=""):
        prefix, offset_s = self.prefix_of(who)
        rank = Rank(self.place, f"rank{number}{suffix}", clock_offset_s=offset_s, prefix=prefix,
                    environment=self.environment_of(who))
        rank.rank = number
        await rank.start()
        await within(PATIENCE_S, f"the start of {rank.name}", rank.ready.wait())
        self.check_clock(rank, who)
        return rank

    async def replacement(self):
        """Another process for the victim's rank, where nothing is broken."""
        rank = await self.new_rank(self.victims_rank, suffix="b")
        await rank.connect(self.server.address, label=rank.name)
        return rank

    # The phases.

    def join(self, rank, timeout_s=90.0):
        return rank.begin("join", timeout_s, rank=rank.rank, size=WORLD_SIZE,
                          **self.state.get("join", {}))

    async def enter(self):
        wait_s = self.fault.wait_s(self.times)
        if self.phase in JOINING:
            joining = list(self.others)
            if self.phase == "during_join":
                joining.append(self.victim)
            for rank in joining:
                self.pending[rank] = self.join(rank, wait_s)
        else:
            await self.form(self.ranks)
            self.wait_in_phase(wait_s)
        await self.begun()

    def wait_in_phase(self, wait_s):
        """The others and, unless the fault says not, the victim wait."""
        if self.phase in ("barrier", "all_gather"):
            waiting = [*self.others, *([self.victim] if self.fault.victim_waits else [])]
            for rank in waiting:
                self.pending[rank] = self.collective(rank, self.phase, wait_s)
        elif self.phase == "recv":
            for rank in self.others:
                self.pending[rank] = rank.begin("recv", wait_s, source=self.victims_rank)
            if self.fault.victim_waits:
                self.pending[self.victim] = self.victim.begin("recv", wait_s,
                                                              source=self.late.rank)

    async def begun(self):
        for call in self.pending.values():
            await within(PATIENCE_S, f"the begin of {call}", call.began_event.wait())

    def collective(self, rank, name, timeout_s=30.0):
        return rank.begin(name, timeout_s, value=f"of {rank.rank}")

    async def form(self, ranks):
        """All join, and meet once."""
        await self.all_ok([self.join(rank) for rank in ranks], "joining")
        await self.gather_all(ranks)

    async def all_ok(self, calls, what, until=None):
        """All calls succeed, until then: the results. The first that fails is told of."""
        async def ok(call):
            result = await call.result()
            if result["code"] != "ok":
                raise Violation(f"{what}: {call}: {result.get('message', result['code'])}")
            if until is not None and result["t"] > until:
                raise Violation(f"{what}: {call}: {result['t'] - until:.2f} s too late")
            return result
        return await asyncio.gather(*map(ok, calls))

    async def gather_all(self, ranks):
        """An all_gather of a whole group, every value of which is right."""
        results = await self.all_ok([self.collective(rank, "all_gather") for rank in ranks],
                                    "an all_gather")
        wanted = [f"of {rank.rank}" for rank in sorted(ranks, key=lambda rank: rank.rank)]
        for result in results:
            if result["values"] != wanted:
                raise Violation(f"an all_gather gave {result['values']}, not {wanted}")

    # Judging.

    def measure(self, seconds, least, bound, what):
        """A time from the fault to what had to follow, against what is promised."""
        self.measured.append(seconds)
        if seconds < least:
            raise Violation(f"{what}: after {seconds:.3f} s already, not before {least:.3f} s")
        if seconds > bound:
            raise Violation(f"{what}: after {seconds:.3f} s, promised within {bound:.3f} s")

    def expect_code(self, result, codes, what):
        if result["code"] not in codes:
            raise Violation(f"{what}: {result.get('message', result['code'])}, not "
                            + " or ".join(codes))

    def expect_victim(self, error, what, code, cause):
        """An error that names the victim, and nobody else."""
        self.expect_code(error, [code], what)
        number = self.victims_rank
        named = [(rank["rank"], rank["pid"]) for rank in error["ranks"]]
        if error["ranges"] != [[number, number]] or named != [(number, self.victim.pid)]:
            raise Violation(f"{what}: names {error['ranges']} {named}, not rank {number} of "
                            f"pid {self.victim.pid}")
        if cause is not None and error["cause"] not in cause:
            raise Violation(f"{what}: cause {error['cause']}, not {cause}")

    def expect_undisturbed(self, ranks, what):
        for rank in ranks:
            for event in [*rank.losses, *rank.session_ends]:
                raise Violation(f"{what}: {rank.name} was told {event['message']}")

    def check_deadlines(self):
        """No call outlives its deadline (R1), whoever made it, also of those that are dead now."""
        for rank in self.made(Rank):
            if rank in self.lenient:
                continue
            for call in rank.history:
                if call.is_over:
                    took_s = call.ended.result()["t"] - call.began
                    if took_s > call.timeout_s + self.times.slack + 0.1:
                        raise Violation(f"{call} took {took_s:.2f} s with a timeout of "
                                        f"{call.timeout_s:.2f} s")

    async def pause_until(self, at):
        await asyncio.sleep(max(0.0, at - time.monotonic()))
