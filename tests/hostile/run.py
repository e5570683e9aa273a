"""One run of a case: a server, its bystanders alone, and then beside the attack."""

import asyncio
import base64
import itertools
import json
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "faults"))

from case import MIB, Figure, at_most, exactly
from processes import Place, Program, Server, Violation, within

WORKS = ("barriers", "newcomers", "resumes", "status")
PREPARATION_LIMIT_S = 120.0
GRACE_S = 2.0
GONE_LIMIT_S = 20.0
GIVEN_BACK_LIMIT_S = 10.0
IDLE_MIB, IDLE_RATIO = 24, 1.25  # resident, of what is used, when an attack is over
BYSTANDERS_CONNECTIONS_MAX = 16
TURN_MAX_MS = 20.0
CONNECT_P99_MAX_MS = 100.0
BARRIER_RATIO_MAX, BARRIER_TOLERANCE_MS = 2, 10  # as where a reader does not read
LINES_AT_ONCE, LINES_PER_SECOND, LEVELS = 256, 10, 2  # of a unit; info and warning
ALL_LINES_AT_ONCE, ALL_LINES_PER_SECOND = 4096, 100
run_numbers = itertools.count(1)


class Speaker(Program):
    """A program that tells what it has done by lines of JSON."""

    def __init__(self, place, name, words, prefix, environment=None):
        super().__init__(place, name, words, prefix=prefix, environment=environment)
        self.lines = asyncio.Queue()

    def take(self, line):
        self.lines.put_nowait(json.loads(line))

    async def next(self, event, limit_s):
        """The line of this event; an end of the program is told with its last words."""
        line = asyncio.create_task(self.lines.get())
        ended = asyncio.create_task(self.ends.wait())
        await within(limit_s, f"{event} of {self.name}",
                     asyncio.wait((line, ended), return_when=asyncio.FIRST_COMPLETED))
        ended.cancel()
        if not line.done():
            line.cancel()
            said = (self.place.folder / f"{self.name}.err").read_text(encoding="utf-8").strip()
            raise Violation(f"{self.name} has ended: {said}")
        if line.result()["event"] != event:
            raise Violation(f"{self.name}: {line.result()}")
        return line.result()


def percentile(values, of_hundred):
    if len(values) < 2:
        return values[0] if values else 0.0
    return statistics.quantiles(values, n=100, method="inclusive")[of_hundred - 1]


class Run:
    def __init__(self, case, placement, programs_of, is_small):
        self.case = case
        self.placement = placement
        self.is_small = is_small
        self.arguments = {**case.arguments, **(case.small if is_small else {})}
        self.place = Place(f"{os.getpid():x}-h{next(run_numbers)}", programs_of,
                           is_tls=case.is_by_tls)
        self.attacker_environment = self.name_attacker() if case.is_by_tls else {}
        self.server = None
        self.speakers = {}
        self.alone = {"failures": []}
        self.attacked = {}
        self.did = {}
        self.operator_failures = []
        self.status = {}
        self.log = ""
        self.log_lines = 0
        self.attacked_s = 0.0
        self.figures = []
        self.used_max = 0
        self.sampler = None
        self.asking = asyncio.Lock()

    def name_attacker(self):
        """Another identity than that of the bystanders, whose file has their key alone."""
        known = self.place.credential_file
        files = {who: self.place.folder / f"{who}.key" for who in ("bystander", "attacker")}
        key = base64.b64encode(os.urandom(32)).decode()
        for who, line in (("bystander", known.read_text(encoding="utf-8")),
                          ("attacker", f"hostile/attacker {key} * admin\n")):
            files[who].touch(0o600)
            files[who].write_text(line, encoding="utf-8")
        with known.open("a", encoding="utf-8") as file:
            file.write(files["attacker"].read_text(encoding="utf-8"))
        self.place.environment["MUSTER_CREDENTIAL_FILE"] = str(files["bystander"])
        return {"MUSTER_CREDENTIAL_FILE": str(files["attacker"])}

    @property
    def sessions_max(self):
        """Of the bystanders, and of those who have come and asked in the last grace."""
        return 64 + 2 * int(self.arguments.get("at_once", 64))

    def prefix(self, who):
        """Placed "apart", attackers have a processor of their own, and the others share one."""
        processors = sorted(os.sched_getaffinity(0))
        if self.placement != "apart" or len(processors) < 2:
            return ()
        return ("taskset", "-c", str(processors[1 if who == "attacker" else 0]))

    async def execute(self):
        try:
            await self.begin()
            if not self.case.is_full:
                await self.begin_bystanders()
                self.alone = await self.measure(0.3 if self.is_small else 2.0)
            await self.attack()
            self.see()
        finally:
            if self.sampler is not None:
                self.sampler.cancel()
            await self.place.clear()

    async def begin(self):
        flags = ["--memory-bytes-max", str(self.case.memory_bytes_max), *self.case.flags]
        if self.case.is_at_tcpstore:
            flags += ["--tcpstore", "127.0.0.1:0"]
        if self.case.is_full:
            flags += ["--connections-max", str(self.arguments["connections_max"]),
                      "--listen", f"unix:{self.place.folder}/socket"]
        self.turns = self.place.folder / "turns"
        self.turns.write_bytes(bytes(8))
        watched = {"LD_PRELOAD": str(self.place.programs_of["libhostile_turns.so"]),
                   "MUSTER_TURNS": str(self.turns)}
        self.server = await Server(self.place, flags, prefix=self.prefix("server"),
                                   environment=watched).start()

    async def begin_bystanders(self):
        for work in WORKS:
            self.speakers[work] = await Speaker(
                self.place, work, [self.place.programs_of["hostile_bystanders"],
                                   self.server.address, work], self.prefix("bystander")).start()
        for work in WORKS:
            await self.speakers[work].next("ready", PREPARATION_LIMIT_S)

    async def measure(self, length_s):
        """All but `status` work for so long: what each tells."""
        works = WORKS[:-1]
        for work in works:
            self.speakers[work].say(str(int(length_s * 1000)))
        told = [await self.speakers[work].next("did", length_s + 60.0) for work in works]
        merged = {"failures": []}
        for line in told:
            merged["failures"] += line.pop("failures")
            merged.update(line)
        return merged

    async def attack(self):
        words = [f"{name}={value}" for name, value in self.arguments.items()]
        attacker = await Speaker(
            self.place, "attacker", [self.place.programs_of["hostile_attacker"],
                                     self.attacked_address, self.case.attack, *words],
            self.prefix("attacker"), self.attacker_environment).start()
        await attacker.next("ready", PREPARATION_LIMIT_S)
        if self.case.is_full:
            await self.begin_bystanders()
        before = self.count_lines()
        began = time.monotonic()
        attacker.say("begin")
        if self.case.is_sampled:
            self.sampler = asyncio.create_task(self.sample())
        self.attacked = await self.measure(1.0 if self.is_small else self.case.window_s)
        if self.case.is_full:
            await self.operate()
        attacker.say("stop")
        self.did = await attacker.next("did", PREPARATION_LIMIT_S)
        if self.sampler is not None:
            await self.sampler
        self.status = await self.ask_status()
        self.attacked_s = time.monotonic() - began
        self.log_lines = self.count_lines() - before
        await attacker.kill()
        await self.see_attackers_gone()
        self.resident = self.server.status_bytes("VmHWM")
        await self.see_memory_given_back()
        self.turn_us = int.from_bytes(self.turns.read_bytes(), sys.byteorder)
        for speaker in self.speakers.values():
            await speaker.kill()
        await self.server.stop()

    async def operate(self):
        """At the server's Unix socket, as its user: what does not succeed is kept."""
        limit = str(int(self.arguments["connections_max"]) - 1)
        for words in (("status",), ("sessions",), ("config", "set", "connections-max", limit),
                      ("kill", "2"), ("drain",), ("drain", "--cancel")):
            command = await asyncio.create_subprocess_exec(
                self.place.programs_of["musterctl"], "--server",
                f"unix:{self.place.folder}/socket", "--timeout", "20s", *words,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE)
            _, errors = await within(30.0, f"the end of musterctl {words[0]}",
                                     command.communicate())
            if command.returncode != 0:
                self.operator_failures.append(f"{' '.join(words)}: {errors.decode().strip()}")

    @property
    def attacked_address(self):
        return self.server.tcpstore_address if self.case.is_at_tcpstore else self.server.address

    async def ask_status(self):
        async with self.asking:
            self.speakers["status"].say("0")
            return (await self.speakers["status"].next("did", 30.0))["status"]

    async def sample(self):
        """The most memory that the server counts as used, until the attack is over."""
        while not self.did:
            status = await self.ask_status()
            self.used_max = max(self.used_max, int(status["memory_used_bytes"]))
            await asyncio.sleep(0.05)

    async def see_attackers_gone(self):
        """The end of all of its connections at once is the last that an attacker does."""
        until = time.monotonic() + GONE_LIMIT_S
        while True:
            status = await self.ask_status()
            connections = int(status["connections_count"]) + int(status["newcomers_count"])
            if connections <= BYSTANDERS_CONNECTIONS_MAX:
                return
            if time.monotonic() > until:
                raise Violation(f"{connections} connections are left of an attacker that is gone")
            await asyncio.sleep(0.02)

    async def see_memory_given_back(self):
        """Until the server has as little as it should, or has had its time for that."""
        until = time.monotonic() + GIVEN_BACK_LIMIT_S
        while True:
            used = int((await self.ask_status())["memory_used_bytes"])
            self.resident_after = self.server.status_bytes("VmRSS")
            self.resident_after_max = IDLE_MIB * MIB + IDLE_RATIO * used
            if self.resident_after <= self.resident_after_max or time.monotonic() > until:
                return
            await asyncio.sleep(0.1)

    def count_lines(self):
        self.log = (self.place.folder / "musterd.err").read_text(encoding="utf-8",
                                                                 errors="replace")
        return self.log.count("\n")

    # What was seen.

    def see(self):
        self.figures = [*(self.case.counted(self) if self.case.counted else ()),
                        self.calls(), *self.memory(), self.lines(), *self.times()]

    def calls(self):
        failures = [*self.alone["failures"], *self.attacked["failures"]]
        told = sorted({f"{failure['what']}: {failure['message']}" for failure in failures})
        seen = f"{len(failures)}" + (f" ({'; '.join(told[:3])})" if told else "")
        return Figure("failed calls of bystanders", seen, "0", not failures, is_told=False)

    def memory(self):
        bound = self.case.memory_bytes_max * 1.125 + 64 * MIB
        yield at_most("resident", self.resident / MIB, bound / MIB, " MiB")
        yield at_most("resident after", self.resident_after / MIB, self.resident_after_max / MIB,
                      " MiB")

    def lines(self):
        units = self.case.addresses + 1
        of_units = units * LEVELS * (LINES_AT_ONCE + LINES_PER_SECOND * self.attacked_s)
        of_all = LEVELS * (ALL_LINES_AT_ONCE + ALL_LINES_PER_SECOND * self.attacked_s)
        counts = (units + 1) * (self.attacked_s + 1)
        return at_most("log lines a second", self.log_lines / self.attacked_s,
                       (min(of_units, of_all) + counts) / self.attacked_s)

    def times(self):
        if not self.case.is_full:  # else nobody was measured alone
            yield from self.times_of_barriers()
        yield at_most("newcomer p99", percentile(self.attacked.get("connect", []), 99) / 1000,
                      CONNECT_P99_MAX_MS, " ms", is_time=True)
        yield at_most("longest resume", max(self.attacked.get("resume", [0])) / 1e6, GRACE_S, " s",
                      is_time=True)
        yield at_most("longest turn", self.turn_us / 1000, TURN_MAX_MS, " ms", is_time=True)
        paused_ms = int(self.status["paused_us"]) / 1000
        yield Figure("taken for a pause", f"{paused_ms:g} ms", "0 ms", paused_ms == 0,
                     is_time=True, is_told=False)

    def times_of_barriers(self):
        medians = [percentile(work.get("barrier", []), 50) / 1000
                   for work in (self.alone, self.attacked)]
        alone, attacked = (percentile(work.get("barrier", []), 99) / 1000
                           for work in (self.alone, self.attacked))
        yield Figure("barrier p50", f"{medians[0]:.2f} → {medians[1]:.2f} ms", "", True,
                     is_time=True)
        yield Figure("barrier p99", f"{alone:.2f} → {attacked:.2f} ms "
                     f"(x {attacked / max(alone, 0.001):.1f})",
                     f"<= x {BARRIER_RATIO_MAX} + {BARRIER_TOLERANCE_MS} ms",
                     attacked <= BARRIER_RATIO_MAX * alone + BARRIER_TOLERANCE_MS, is_time=True,
                     is_missed=attacked > BARRIER_RATIO_MAX * alone)
