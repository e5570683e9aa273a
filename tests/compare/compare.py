"""Muster beside torch's TCPStore and redis: what each does in the same cases, as a table.

    compare.py BUILD [--only CASE]... [--write FILE] [--json FILE] [--list]

Every cell is what was seen in this run. `--write` puts the table into the file, between the lines
`<!-- compare: begin -->` and `<!-- compare: end -->`; not when a case could not be carried out.
`--json` writes the cells with their times in seconds.
"""

import argparse
import asyncio
import itertools
import json
import os
import platform
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "faults"))

from case import STAGES
from client_cases import CLIENT_CASES
from group_cases import GROUP_CASES
from observation import spelled
from processes import Place, Violation
from server_cases import SERVER_CASES

CASES = [*GROUP_CASES, *SERVER_CASES, *CLIENT_CASES]
BEGIN, END = "<!-- compare: begin -->\n", "<!-- compare: end -->\n"
CASE_LIMIT_S = 150
TOGETHER = 4  # cases that run at once, where most only wait
PROGRAMS = {"musterd": "tools/musterd", "musterctl": "tools/musterctl",
            "fault_worker": "tests/faults/fault_worker", "fault_proxy": "tests/faults/fault_proxy",
            "libfault_wall_clock.so": "tests/faults/libfault_wall_clock.so",
            "compare_decoder": "tests/compare/compare_decoder"}


class Comparison:
    def __init__(self, build, cases):
        build = Path(build).resolve()
        self.programs_of = {name: build / path for name, path in PROGRAMS.items()}
        self.cases = cases
        self.cells = {}  # (case, store) -> Observation
        self.failures = 0
        self.numbers = itertools.count(1)

    async def observe(self, case, store):
        place = Place(f"{os.getpid():x}-c{next(self.numbers)}", self.programs_of)
        began = time.monotonic()
        try:
            try:
                stage = STAGES[store](place)
                observing = case.observers()[store](stage, **case.options)
                seen = await asyncio.wait_for(observing, CASE_LIMIT_S)
            finally:
                await place.clear()
            self.cells[case.name, store] = seen
            print(f"{case.name} {store}: {seen} [{time.monotonic() - began:.1f} s]", flush=True)
            place.remove()
        except asyncio.CancelledError:
            place.remove()
            raise
        except Exception as error:
            self.failures += 1
            what = str(error) if isinstance(error, Violation) else traceback.format_exc()
            print(f"FAILED {case.name} {store}: {what}\n  logs: {place.folder}", flush=True)

    async def all(self):
        """What is sensitive to others first, one at a time; then the rest beside each other.

        Who ends this program ends the cases in order: nothing of them stays.
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, asyncio.current_task().cancel)
        for case in self.cases:
            if case.alone:
                for store in case.observers():
                    await self.observe(case, store)
        places = asyncio.Semaphore(TOGETHER)

        async def in_turn(case, store):
            async with places:
                await self.observe(case, store)
        await asyncio.gather(*(in_turn(case, store) for case in self.cases if not case.alone
                               for store in case.observers()))

    def as_json(self):
        return [{"case": case, "store": store, **asdict(seen)}
                for (case, store), seen in self.cells.items()]

    def table(self):
        yield "| case | Muster | TCPStore and the algorithm on it | redis |"
        yield "|---|---|---|---|"
        for case in self.cases:
            cells = [str(self.cells.get((case.name, store), "–")) for store in STAGES]
            yield f"| {case.title} | {' | '.join(cells)} |"


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def versions(comparison):
    packages = [f"{name} {output_of('dpkg-query', '--show', '--showformat=${Version}', name)}"
                for name in ("python3-torch", "redis-tools")]
    return ", ".join([output_of(comparison.programs_of["musterd"], "--version"), *packages])


def machine():
    names = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    memory_kib = int(Path("/proc/meminfo").read_text().split()[1])
    return (f"{platform.freedesktop_os_release()['PRETTY_NAME']}, Linux {platform.release()}, "
            f"{len(names)} processors ({names[0]}), {memory_kib >> 20} GiB; load average "
            f"{os.getloadavg()[0]:.1f} at the beginning")


def write(path, text):
    document = Path(path).read_text(encoding="utf-8")
    before, rest = document.split(BEGIN)
    _, after = rest.split(END)
    Path(path).write_text(before + BEGIN + text + END + after, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build", help="the folder of the build")
    parser.add_argument("--only", action="append", default=[], metavar="CASE",
                        help="these alone; see --list")
    parser.add_argument("--write", metavar="FILE", help="puts the table into this document")
    parser.add_argument("--json", metavar="FILE", help="writes what was found there, too")
    parser.add_argument("--list", action="store_true", help="names all, and runs none")
    options = parser.parse_args()
    if options.list:
        print("\n".join(case.name for case in CASES))
        return 0
    cases = [case for case in CASES if not options.only or case.name in options.only]
    comparison = Comparison(options.build, cases)
    where = machine()
    began = time.monotonic()
    asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    try:
        asyncio.run(comparison.all())
    except asyncio.CancelledError:
        return 1
    took = spelled(time.monotonic() - began)
    table = "\n".join(comparison.table())
    text = f"{versions(comparison)}; {where}; all in {took}.\n\n{table}\n"
    print(f"\n{text}{len(cases)} cases, {comparison.failures} failures")
    if options.json:
        Path(options.json).write_text(json.dumps(comparison.as_json(), indent=1), encoding="utf-8")
    if options.write and not comparison.failures:
        write(options.write, text)
    return 1 if comparison.failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
