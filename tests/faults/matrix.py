"""The fault matrix: faults x phases on real processes, with what every run has to show.

    matrix.py BUILD [--runs N] [--seed N] [--parallel N] [--times short|default]
              [--only FAULT[/PHASE]]... [--table FILE] [--list]

A run that fails is printed with the command that repeats exactly it. At the end there is a table of
the times from a fault to what had to follow, and `N runs, N failed, N skipped`.
"""

import argparse
import asyncio
import random
import statistics
import sys
import time
import traceback
from collections import defaultdict
from pathlib import Path

from faults import FAULTS
from processes import Absent, Violation, all_in_turn
from scenario import DEFAULT, SHORT, Run

TIMES = {"short": SHORT, "default": DEFAULT}
RUN_LIMIT_S = 150


def cells():
    return [(fault, phase) for fault in FAULTS for phase in fault.phases]


class Matrix:
    def __init__(self, options):
        self.options = options
        build = Path(options.build).resolve()
        self.programs_of = {"musterd": build / "tools/musterd"}
        for name in ("fault_worker", "fault_raw_client", "fault_proxy", "libfault_wall_clock.so"):
            self.programs_of[name] = build / "tests/faults" / name
        self.measured = defaultdict(list)  # (fault, times) -> seconds
        self.runs = defaultdict(int)
        self.failed = defaultdict(int)
        self.skipped = defaultdict(int)
        self.is_ended = False

    def plan(self):
        """Runs, as (fault, phase, seed): all cells in turn, in an order of the seed's."""
        chosen = [(fault, phase) for fault, phase in cells()
                  if not self.options.only or fault.name in self.options.only
                  or f"{fault.name}/{phase}" in self.options.only]
        if not chosen:
            sys.exit("nothing is chosen; see --list")
        count = self.options.runs or len(chosen)
        dice = random.Random(self.options.seed)
        plan = []
        for seed in range(self.options.seed, self.options.seed + count):
            dice.shuffle(chosen)
            plan += [(fault, phase, seed) for fault, phase in chosen]
            if len(plan) >= count:
                return plan[:count]
        return plan

    async def one(self, fault, phase, seed):
        run = Run(fault, phase, seed, TIMES[self.options.times], self.programs_of,
                  is_alone=self.options.parallel == 1)
        key = (fault.name, self.options.times)
        self.runs[key] += 1
        began = time.monotonic()
        try:
            await asyncio.wait_for(run.execute(), RUN_LIMIT_S)
            self.measured[key] += run.measured
            if self.options.verbose:
                print(f"ok     {fault.name}/{phase} seed {seed} "
                      f"{time.monotonic() - began:.1f} s {run.state.get('told', '')}", flush=True)
            run.place.remove()
        except Absent as reason:
            self.skipped[key] += 1
            print(f"skipped {fault.name}/{phase}: {reason}", flush=True)
            run.place.remove()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self.failed[key] += 1
            what = str(error) if isinstance(error, Violation) else traceback.format_exc()
            alone = " --parallel 1" if run.is_alone else ""
            print(f"FAILED {fault.name}/{phase}: {what}\n  logs: {run.place.folder}\n  again: "
                  f"tools/dev faults --times {self.options.times} --only {fault.name}/{phase} "
                  f"--seed {seed}{alone}", flush=True)

    async def all(self):
        def end():
            self.is_ended = True
        await all_in_turn(self.one, self.plan(), self.options.parallel, end)

    def table(self):
        times = TIMES[self.options.times]
        yield "| fault | case | runs | failed | median | worst | bound |"
        yield "|---|---|---|---|---|---|---|"
        for fault in FAULTS:
            key = (fault.name, self.options.times)
            if not self.runs[key]:
                continue
            seconds = self.measured[key]
            shown = ([f"{statistics.median(seconds):.3f} s", f"{max(seconds):.3f} s"]
                     if seconds else ["", ""])
            bound = fault.bound_s(times)
            same = f"{bound:g} s"
            words = fault.promise if not bound or same in fault.promise else (
                f"{fault.promise}: {same}")
            yield (f"| `{fault.name}` | {fault.case} | {self.runs[key]} | {self.failed[key]} | "
                   f"{shown[0]} | {shown[1]} | {words} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build", help="the folder of the build")
    parser.add_argument("--runs", type=int, default=0, metavar="N",
                        help="how many; else each that is chosen once")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of all that is drawn")
    parser.add_argument("--parallel", type=int, default=16, metavar="N", help="so many at once")
    parser.add_argument("--times", choices=sorted(TIMES), default="short",
                        help="the session timeout and the like that musterd is given")
    parser.add_argument("--only", action="append", default=[], metavar="FAULT[/PHASE]",
                        help="these alone; see --list")
    parser.add_argument("--table", metavar="FILE", help="writes the table there, too")
    parser.add_argument("--list", action="store_true", help="names all, and runs none")
    parser.add_argument("--verbose", action="store_true", help="tells of each run")
    options = parser.parse_args()
    if options.list:
        for fault, phase in cells():
            print(f"{fault.name}/{phase}")
        return 0
    matrix = Matrix(options)
    began = time.monotonic()
    print(f"seed {options.seed}, {options.times} times, {options.parallel} at once", flush=True)
    asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    asyncio.run(matrix.all())
    table = "\n".join(matrix.table())
    print(table)
    if options.table:
        Path(options.table).write_text(table + "\n", encoding="utf-8")
    runs, failed, skipped = (sum(counts.values())
                             for counts in (matrix.runs, matrix.failed, matrix.skipped))
    print(f"{runs} runs, {failed} failed, {skipped} skipped, in {time.monotonic() - began:.0f} s")
    return 1 if failed or runs == skipped or matrix.is_ended else 0


if __name__ == "__main__":
    sys.exit(main())
