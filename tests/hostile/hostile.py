"""Hostile clients: attacks on a real server, and what its other clients notice of them.

    hostile.py BUILD [CASE]... [--small] [--times] [--placement NAME]...
               [--parallel N] [--write FILE] [--json FILE] [--list]

Each case starts a server on loopback with little memory, measures its bystanders alone and then
beside the attack, with attackers on a processor of their own ("apart") and with all on all
("together"). A line tells each figure, what must hold, and whether it does. Fails when something
that is counted does not hold; with `--times` also when a time does not. `--small` has small sizes,
all on all processors, and looks at no times. `--write` puts the table into the file, between the
lines `<!-- hostile: begin -->` and `<!-- hostile: end -->`.
"""

import argparse
import asyncio
import json
import os
import platform
import sys
import time
import traceback
from pathlib import Path

from cases import CASES
from run import Run, Violation  # also shows where `processes` is
from processes import all_in_turn

BEGIN, END = "<!-- hostile: begin -->\n", "<!-- hostile: end -->\n"
RUN_LIMIT_S = 240
PLACEMENTS = ("apart", "together")
PROGRAMS = {"musterd": "tools/musterd", "musterctl": "tools/musterctl",
            "hostile_attacker": "tests/hostile/hostile_attacker",
            "hostile_bystanders": "tests/hostile/hostile_bystanders",
            "libhostile_turns.so": "tests/hostile/libhostile_turns.so",
            "libmuster-tls": "src/tls/libmuster-tls.so.0"}


class Hostile:
    def __init__(self, options):
        self.options = options
        build = Path(options.build).resolve()
        self.programs_of = {name: build / path for name, path in PROGRAMS.items()}
        self.figures = {}  # (case, placement) -> figures
        self.failed = 0
        self.is_ended = False

    def plan(self):
        chosen = [case for case in CASES
                  if not self.options.cases or case.name in self.options.cases]
        placements = self.options.placement or (
            ("together",) if self.options.small else PLACEMENTS)
        return [(case, placement) for case in chosen for placement in placements]

    async def one(self, case, placement):
        run = Run(case, placement, self.programs_of, self.options.small)
        name = f"{case.name}/{placement}"
        try:
            await asyncio.wait_for(run.execute(), RUN_LIMIT_S)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self.failed += 1
            what = str(error) if isinstance(error, Violation) else traceback.format_exc()
            print(f"FAILED {name}: {what}\n  logs: {run.place.folder}", flush=True)
            return
        self.figures[case.name, placement] = run.figures
        judged = [figure for figure in run.figures if self.options.times or not figure.is_time]
        self.failed += not all(figure.holds for figure in judged)
        for figure in run.figures:
            if figure.is_time and self.options.small:
                continue
            word = "held" if figure.holds else "NOT HELD"
            print(f"{name:<32} {figure.name:<28} {figure.seen:<32} must: {figure.must:<16} {word}",
                  flush=True)
        if all(figure.holds for figure in judged):
            run.place.remove()
        else:
            print(f"FAILED {name}; logs: {run.place.folder}", flush=True)

    async def all(self):
        def end():
            self.is_ended = True
        await all_in_turn(self.one, self.plan(), self.options.parallel, end)

    def table(self, seconds, load):
        processor = next((line.split(": ")[1] for line in
                          Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
                          if line.startswith("model name")), platform.machine())
        yield (f"{len(os.sched_getaffinity(0))} processors ({processor}), Linux "
               f"{platform.release()}; load average {load:.1f} at the beginning; all in "
               f"{seconds:.0f} s.")
        yield ""
        yield "| case | before | now, attackers apart | now, all on all processors |"
        yield "|---|---|---|---|"
        for case in CASES:
            cells = []
            for placement in PLACEMENTS:
                figures = self.figures.get((case.name, placement))
                cells.append("–" if figures is None else "; ".join(
                    f"**{figure}**" if figure.is_missed or not figure.holds else str(figure)
                    for figure in figures if figure.is_told or not figure.holds))
            yield f"| `{case.name}`: {case.what} | {case.before} | {cells[0]} | {cells[1]} |"


def write(path, table):
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    path.write_text(before + BEGIN + table + "\n" + END + rest.split(END)[1], encoding="utf-8")


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build", help="the folder of the build")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="these alone; see --list")
    parser.add_argument("--small", action="store_true", help="small sizes, and no times")
    parser.add_argument("--times", action="store_true", help="fails also for times")
    parser.add_argument("--placement", action="append", choices=PLACEMENTS,
                        help="of the processes on the processors; else both")
    parser.add_argument("--parallel", type=int, default=1, metavar="N", help="so many at once")
    parser.add_argument("--write", metavar="FILE", help="puts the table there")
    parser.add_argument("--json", metavar="FILE", help="writes all figures there")
    parser.add_argument("--list", action="store_true", help="names all, and runs none")
    options = parser.parse_intermixed_args()
    unknown = set(options.cases) - {case.name for case in CASES}
    if unknown:
        parser.error(f"there is no case {', '.join(sorted(unknown))}; see --list")
    return options


def main():
    options = parsed()
    if options.list:
        for case in CASES:
            print(f"{case.name:<22} {case.what}")
        return 0
    hostile = Hostile(options)
    began, load = time.monotonic(), os.getloadavg()[0]
    asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    asyncio.run(hostile.all())
    seconds = time.monotonic() - began
    if options.write and len(hostile.figures) == len(hostile.plan()):
        write(Path(options.write), "\n".join(hostile.table(seconds, load)))
    if options.json:
        Path(options.json).write_text(json.dumps(
            {"/".join(key): [vars(figure) for figure in figures]
             for key, figures in hostile.figures.items()}, indent=1) + "\n", encoding="utf-8")
    print(f"{len(hostile.plan())} runs, {hostile.failed} failed, in {seconds:.0f} s")
    return 1 if hostile.failed or hostile.is_ended else 0


if __name__ == "__main__":
    sys.exit(main())
