"""The processes of one run of the fault matrix: servers, ranks, proxies, namespaces.

Everything that is started is known by its pid, dies with this program, and is gone when its run is
over: `Place.leftovers` looks for it.
"""

import asyncio
import base64
import ctypes
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from viewer import Viewer

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
TAG = "MUSTER_FAULT_RUN"  # in the environment of everything that a run starts
PATIENCE_S = 20.0  # for what must come at once, on a machine that does other things, too


class Violation(Exception):
    """Something is not as promised."""


class Absent(Exception):
    """What a run needs is not there: a privilege, or a tool."""


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


async def within(limit_s, what, awaitable):
    """What is awaited, which must come in time."""
    try:
        return await asyncio.wait_for(awaitable, limit_s)
    except asyncio.TimeoutError:
        raise Violation(f"{what}: not within {limit_s:.1f} s") from None


async def all_in_turn(run_one, plan, parallel, end):
    """Runs `run_one` with each of the plan's arguments, so many at once. Who ends this program ends
    the runs in order: `end` is called first, and nothing of them stays."""
    places = asyncio.Semaphore(parallel)

    async def in_turn(arguments):
        async with places:
            await run_one(*arguments)
    runs = [asyncio.create_task(in_turn(arguments)) for arguments in plan]
    is_ended = False

    def end_all():
        nonlocal is_ended
        if not is_ended:
            is_ended = True
            end()
            for run in runs:
                run.cancel()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end_all)
    await asyncio.gather(*runs, return_exceptions=True)


class Program:
    """A child process whose output is read line by line."""

    def __init__(self, place, name, command, prefix=(), environment=None, errors=None):
        self.place = place
        self.name = name
        self.command = [*prefix, *map(str, command)]
        self.is_wrapped = "unshare" in prefix
        self.environment = {**os.environ, TAG: place.tag, **place.environment,
                            **(environment or {})}
        self.errors = errors
        self.process = None
        self.pid = None  # of the program itself, whatever wraps it
        self.reader = None
        self.ends = asyncio.Event()

    async def start(self):
        if self.errors is None:
            self.errors = open(self.place.folder / f"{self.name}.err", "ab")
        self.process = await asyncio.create_subprocess_exec(
            *self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, env=self.environment, preexec_fn=die_with_parent,
            start_new_session=True, limit=1 << 20)
        self.errors.close()
        self.errors = None
        self.pid = self.process.pid
        self.place.programs.append(self)
        self.reader = asyncio.create_task(self.read())
        return self

    async def read(self):
        while line := await self.process.stdout.readline():
            self.take(line.decode(errors="replace").rstrip("\n"))
        self.ends.set()

    def take(self, line):
        raise NotImplementedError

    def say(self, line):
        if self.process.returncode is None and not self.process.stdin.is_closing():
            self.process.stdin.write(line.encode() + b"\n")

    def find_pid(self):
        """Behind `unshare --fork` the program is its child."""
        if self.is_wrapped:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
            self.pid = int(children.read_text().split()[0])

    def signal(self, number):
        """Returns the time at which it was sent."""
        now = time.monotonic()
        os.kill(self.pid, number)
        return now

    async def gone(self):
        """Not `process.wait()`: that also waits until its children have closed its pipes."""
        async def poll():
            while self.process.returncode is None:
                await asyncio.sleep(0.005)
        await within(PATIENCE_S, f"the end of {self.name}", poll())

    async def kill(self):
        for pid in {self.pid, self.process.pid}:
            if self.process.returncode is None:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        await within(PATIENCE_S, f"the end of {self.name}", self.process.wait())
        await within(PATIENCE_S, f"the end of the output of {self.name}", self.reader)
        self.process.stdin.close()


class Call:
    """A call of a rank: when it began, and how and when it ended."""

    def __init__(self, rank, name, timeout_s):
        self.rank = rank
        self.name = name
        self.timeout_s = timeout_s
        self.began = None
        self.began_event = asyncio.Event()
        self.ended = asyncio.get_running_loop().create_future()

    def __str__(self):
        return f"{self.name} of {self.rank.name}"

    @property
    def is_over(self):
        return self.ended.done()

    async def result(self, limit_s=None):
        limit_s = self.timeout_s + PATIENCE_S if limit_s is None else limit_s
        return await within(limit_s, f"the end of {self}", asyncio.shield(self.ended))


class Rank(Program):
    """One fault_worker. `clock_offset_s`: how far its monotonic clock is ahead of ours."""

    def __init__(self, place, name, clock_offset_s=0.0, **options):
        super().__init__(place, name, [place.programs_of["fault_worker"]], **options)
        self.clock_offset_s = clock_offset_s
        self.calls = {}
        self.history = []
        self.losses = []  # what on_loss was told
        self.session_ends = []
        self.events = asyncio.Condition()
        self.ready = asyncio.Event()
        self.process_id = None
        self.rank = None

    @property
    def lives(self):
        return self.process.returncode is None

    def take(self, line):
        event = json.loads(line)
        event["t"] = event["t_us"] / 1e6 - self.clock_offset_s
        kind = event["event"]
        if kind == "started":
            self.pid = event["pid"]
            self.ready.set()
        elif kind == "begin":
            call = self.calls[event["id"]]
            call.began = event["t"]
            call.began_event.set()
        elif kind == "end":
            self.calls[event["id"]].ended.set_result(event)
        else:
            (self.losses if kind == "loss" else self.session_ends).append(event)
            asyncio.get_running_loop().create_task(self.wake())

    async def wake(self):
        async with self.events:
            self.events.notify_all()

    async def event_of(self, events, limit_s, what):
        """The first of the events, `losses` or `session_ends`, that have come or will."""
        async def first():
            async with self.events:
                await self.events.wait_for(lambda: events)
            return events[0]
        return await within(limit_s, f"{what} at {self.name}", first())

    def begin(self, name, timeout_s=60.0, **arguments):
        call = Call(self, name, timeout_s)
        number = len(self.calls)
        self.calls[number] = call
        self.history.append(call)
        self.say(json.dumps({"call": name, "id": number,
                             "timeout_ms": int(timeout_s * 1000), **arguments}))
        return call

    async def call(self, name, timeout_s=20.0, **arguments):
        """A call that succeeds."""
        call = self.begin(name, timeout_s, **arguments)
        result = await call.result()
        if result["code"] != "ok":
            raise Violation(f"{call}: {result.get('message', result['code'])}")
        return result

    async def connect(self, address, label=""):
        await within(PATIENCE_S, f"the start of {self.name}", self.ready.wait())
        result = await self.call("connect", address=address, label=label)
        self.process_id = result["process"]
        return result


class Server(Program):
    """A musterd. It may be killed and started again on the same port. With credentials it also
    listens in clear, for who speaks the protocol by hand."""

    def __init__(self, place, flags, listen="127.0.0.1:0", **options):
        self.listens = [listen]
        if place.credential_file is not None:
            self.listens.append("plain:127.0.0.1:0")
            flags = [*flags, "--credentials", place.credential_file]
        if place.is_viewed:
            flags = [*flags, "--http", "127.0.0.1:0"]
        super().__init__(place, "musterd", [
            place.programs_of["musterd"], *(f"--listen={address}" for address in self.listens),
            *flags], **options)
        self.addresses = []
        self.tcpstore_address = None
        self.listening = asyncio.Event()
        self.listens_at = None
        self.incarnation = 0

    def take(self, line):
        if line.startswith("musterd serves TCPStore "):
            self.tcpstore_address = "127.0.0.1:" + line.split()[-1]
        if line.startswith("musterd serves HTTP at "):
            self.place.viewers.append(Viewer(line.split()[-1]))
        if line.startswith("musterd listening on "):
            self.listens_at = time.monotonic()
            self.addresses.append(line.removeprefix("musterd listening on "))
            if len(self.addresses) == len(self.listens):
                self.listening.set()

    @property
    def address(self):
        return self.addresses[0]

    @property
    def plain_address(self):
        return self.addresses[-1]

    async def start(self):
        await super().start()
        await within(PATIENCE_S, "the start of musterd", self.listening.wait())
        self.find_pid()
        return self

    async def restart(self):
        for index, address in enumerate(self.addresses):
            before = f"--listen={self.listens[index]}"
            plain = "plain:" if self.listens[index].startswith("plain:") else ""
            self.listens[index] = plain + address
            self.command[self.command.index(before)] = f"--listen={plain}{address}"
        self.addresses = []
        self.listening.clear()
        return await self.start()

    async def stop(self):
        """In order, as an operator does; a server that is healthy ends with 0."""
        if self.process.returncode is not None:
            return
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        code = await within(PATIENCE_S, "the end of musterd", self.process.wait())
        await self.reader
        if code != 0:
            raise Violation(f"musterd ended with {code}")

    def status_bytes(self, name):
        """A number of kB of /proc/PID/status."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
        raise Violation(f"no {name}")


class Proxy(Program):
    """A fault_proxy between one rank and the server."""

    def __init__(self, place, name, server):
        super().__init__(place, name, [place.programs_of["fault_proxy"], server])
        self.address = None
        self.answers = asyncio.Queue()

    def take(self, line):
        self.answers.put_nowait(line)

    async def start(self):
        await super().start()
        line = await within(PATIENCE_S, "the start of the proxy", self.answers.get())
        self.address = line.removeprefix("listening on ")
        return self

    async def obey(self, command):
        """Returns the time just before it is done."""
        now = time.monotonic()
        self.say(command)
        await within(PATIENCE_S, f"the proxy: {command}", self.answers.get())
        return now

    async def accepted_count(self):
        """How many connections there have been."""
        self.say("accepted")
        return int(await within(PATIENCE_S, "the proxy: accepted", self.answers.get()))


class RawClient(Program):
    """A fault_raw_client: what it reports, line by line."""

    def __init__(self, place, server, what, name):
        super().__init__(place, what, [place.programs_of["fault_raw_client"], server, what, name])
        self.lines = asyncio.Queue()
        self.session_count = 1

    def take(self, line):
        event = json.loads(line)
        event["t"] = event["t_us"] / 1e6
        self.lines.put_nowait(event)

    async def next(self, limit_s=PATIENCE_S):
        line = asyncio.create_task(self.lines.get())
        ends = asyncio.create_task(self.ends.wait())
        await asyncio.wait([line, ends], timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        ends.cancel()
        if line.done():
            return line.result()
        line.cancel()
        if not self.ends.is_set():
            raise Violation(f"a line of {self.name}: not within {limit_s:.1f} s")
        await self.gone()
        words = (self.place.folder / f"{self.name}.err").read_text(errors="replace").split("\n")
        raise Violation(f"a line of {self.name}: it has ended with {self.process.returncode}: "
                        f"{' | '.join(words[-4:])}")


class Namespaces:
    """Two network namespaces and a wire between them: the server's and that of one rank."""

    SERVER = "10.77.0.1"
    RANK = "10.77.0.2"

    def __init__(self, place):
        self.place = place
        self.names = [f"muster-{place.tag}-{end}" for end in ("s", "r")]

    def prefix(self, end):
        return ("ip", "netns", "exec", self.names[end])

    async def run(self, *words):
        process = await asyncio.create_subprocess_exec(
            "ip", *words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            start_new_session=True)
        _, errors = await process.communicate()
        if process.returncode != 0:
            raise Violation(f"ip {' '.join(words)}: {errors.decode().strip()}")

    async def make(self):
        self.place.namespaces.append(self)
        server, rank = self.names
        for name in self.names:
            try:
                await self.run("netns", "add", name)
            except Violation as error:
                raise Absent(str(error)) from None
            await self.run("-n", name, "link", "set", "lo", "up")
        await self.run("-n", server, "link", "add", "wire", "type", "veth", "peer", "name", "wire",
                       "netns", rank)
        for name, address in ((server, self.SERVER), (rank, self.RANK)):
            await self.run("-n", name, "address", "add", address + "/24", "dev", "wire")
            await self.run("-n", name, "link", "set", "wire", "up")

    async def link(self, end, state):
        now = time.monotonic()
        await self.run("-n", self.names[end], "link", "set", "wire", state)
        return now

    async def blackhole(self, end, verb):
        """At one end all that goes to the other is lost: `add`, or `del`."""
        now = time.monotonic()
        other = self.RANK if end == 0 else self.SERVER
        await self.run("-n", self.names[end], "route", verb, "blackhole", other + "/32")
        return now

    async def remove(self):
        for name in self.names:
            if Path("/run/netns", name).exists():
                await self.run("netns", "delete", name)


class Place:
    """All that one run has made on this machine."""

    def __init__(self, tag, programs_of, is_tls=False, is_viewed=False):
        self.tag = tag
        self.programs_of = programs_of
        self.folder = Path(tempfile.mkdtemp(prefix=f"muster-{tag}-"))
        self.credential_file = None
        self.environment = {}
        if is_tls:
            self.credential_file = self.folder / "key"
            self.credential_file.touch(0o600)
            key = base64.b64encode(os.urandom(32)).decode()
            self.credential_file.write_text(f"job/rank {key} * admin\n", encoding="utf-8")
            self.environment = {"MUSTER_CREDENTIAL_FILE": str(self.credential_file),
                                "LD_LIBRARY_PATH": str(programs_of["libmuster-tls"].parent)}
        self.is_viewed = is_viewed
        self.viewers = []
        self.seen_events = 0  # by all viewers that have ended
        self.programs = []
        self.namespaces = []
        self.children = []  # pids that a rank has made
        self.mounts = []

    async def clear(self):
        self.seen_events = sum([await viewer.end() for viewer in self.viewers])
        for pid in self.children:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        failures = []
        for going in [*(program.kill() for program in self.programs),
                      *(namespaces.remove() for namespaces in self.namespaces),
                      *(self.unmount(mount) for mount in self.mounts)]:
            try:
                await going
            except Violation as failure:
                failures.append(str(failure))
        await self.see_all_gone()
        if failures:
            raise Violation("; ".join(failures))

    async def unmount(self, mount):
        done = subprocess.run(["umount", mount], capture_output=True, text=True, check=False,
                              start_new_session=True)
        if done.returncode != 0:
            raise Violation(done.stderr.strip())

    async def see_all_gone(self):
        for _ in range(100):
            if not (left := self.leftovers()):
                break
            await asyncio.sleep(0.05)
        else:
            raise Violation("left running: " + ", ".join(left))

    def leftovers(self):
        """Processes and namespaces of this run that are still there."""
        left = [name for pair in self.namespaces for name in pair.names
                if Path("/run/netns", name).exists()]
        mark = f"{TAG}={self.tag}".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        left.append(f"process {entry.name}")
                except OSError:
                    pass
        return left

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)
