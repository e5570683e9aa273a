"""The fault matrix: faults x phases on real processes, with what every run has to show.

    matrix.py BUILD [--runs N] [--seed N] [--parallel N] [--times short|default]
              [--only FAULT[/PHASE]]... [--tls | --tls-too] [--viewed] [--table FILE] [--list]

With --tls the server has credentials, and the ranks a key: all that they say is encrypted. With
--tls-too each fault is also done so, in one phase. With --viewed somebody has the live page of each
musterd open, but for those in network namespaces.
A run that fails is printed with the command that repeats exactly it. At the end there is a table of
the times from a fault to what had to follow, and `N runs, N failed, N skipped`.
"""

import argparse
import asyncio
import itertools
import random
import statistics
import sys
import time
import traceback
from collections import defaultdict
from pathlib import Path

from faults import FAULTS
from processes import Absent, Violation, all_in_turn
from scenario import DEFAULT, SHORT, SHORT_BY_TLS, Run

TIMES = {"short": (SHORT, SHORT_BY_TLS), "default": (DEFAULT, DEFAULT)}
RUN_LIMIT_S = 150


def cells(is_tls):
    return [(fault, phase) for fault in FAULTS for phase in fault.phases
            if fault.only in ("", "tls" if is_tls else "clear")]


def one_phase_of_each(chosen, seed):
    """Of each fault one cell, which changes with the seed."""
    phases = defaultdict(list)
    for fault, phase in chosen:
        phases[fault].append(phase)
    dice = random.Random(f"phases {seed}")
    return [(fault, dice.choice(of_it)) for fault, of_it in phases.items()]


def named(fault, is_tls):
    return f"`{fault.name}` by TLS" if is_tls and not fault.only else f"`{fault.name}`"


class Matrix:
    def __init__(self, options):
        self.options = options
        build = Path(options.build).resolve()
        self.programs_of = {"musterd": build / "tools/musterd"}
        for name in ("fault_worker", "fault_raw_client", "fault_proxy", "libfault_wall_clock.so"):
            self.programs_of[name] = build / "tests/faults" / name
        self.programs_of["libmuster-tls"] = build / "src/tls/libmuster-tls.so.0"
        self.measured = defaultdict(list)  # (fault, whether by TLS) -> seconds
        self.runs = defaultdict(int)
        self.failed = defaultdict(int)
        self.skipped = defaultdict(int)
        self.seen_events = 0
        self.is_ended = False

    def plan(self):
        """Runs, as (fault, phase, seed, whether by TLS): all cells in turn, in an order of the
        seed's."""
        is_tls, seed = self.options.tls, self.options.seed
        chosen = [(*cell, is_tls) for cell in self.chosen(is_tls)]
        if self.options.tls_too:
            chosen += [(*cell, True) for cell in one_phase_of_each(self.chosen(True), seed)]
        if not chosen:
            sys.exit("nothing is chosen; see --list")
        count = self.options.runs or len(chosen)
        dice = random.Random(self.options.seed)
        plan = []
        for seed in range(self.options.seed, self.options.seed + count):
            dice.shuffle(chosen)
            plan += [(fault, phase, seed, is_tls) for fault, phase, is_tls in chosen]
            if len(plan) >= count:
                return plan[:count]
        return plan

    def chosen(self, is_tls):
        return [(fault, phase) for fault, phase in cells(is_tls)
                if not self.options.only or fault.name in self.options.only
                or f"{fault.name}/{phase}" in self.options.only]

    async def one(self, fault, phase, seed, is_tls):
        times = fault.times(TIMES[self.options.times][is_tls])
        run = Run(fault, phase, seed, times, self.programs_of,
                  is_alone=self.options.parallel == 1, is_tls=is_tls,
                  is_viewed=self.options.viewed)
        key = (fault.name, is_tls)
        self.runs[key] += 1
        began = time.monotonic()
        try:
            await asyncio.wait_for(run.execute(), RUN_LIMIT_S)
            self.measured[key] += run.measured
            if self.options.verbose:
                print(f"ok     {fault.name}/{phase} seed {seed}{' by TLS' if is_tls else ''} "
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
            further = "".join(flag for flag, holds in (
                (" --parallel 1", run.is_alone), (" --tls", is_tls),
                (" --viewed", self.options.viewed)) if holds)
            print(f"FAILED {fault.name}/{phase}: {what}\n  logs: {run.place.folder}\n  again: "
                  f"tools/dev faults --times {self.options.times} --only {fault.name}/{phase} "
                  f"--seed {seed}{further}", flush=True)
        self.seen_events += run.place.seen_events

    async def all(self):
        def end():
            self.is_ended = True
        await all_in_turn(self.one, self.plan(), self.options.parallel, end)

    def table(self):
        yield "| fault | case | runs | failed | median | worst | bound |"
        yield "|---|---|---|---|---|---|---|"
        for is_tls, fault in itertools.product((False, True), FAULTS):
            key = (fault.name, is_tls)
            if not self.runs[key]:
                continue
            seconds = self.measured[key]
            shown = ([f"{statistics.median(seconds):.3f} s", f"{max(seconds):.3f} s"]
                     if seconds else ["", ""])
            bound = fault.bound_s(TIMES[self.options.times][is_tls])
            same = f"{bound:g} s"
            words = fault.promise if not bound or same in fault.promise else (
                f"{fault.promise}: {same}")
            yield (f"| {named(fault, is_tls)} | {fault.case} | {self.runs[key]} "
                   f"| {self.failed[key]} | {shown[0]} | {shown[1]} | {words} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build", help="the folder of the build")
    parser.add_argument("--runs", type=int, default=0, metavar="N",
                        help="how many; else each that is chosen once")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of all that is drawn")
    parser.add_argument("--parallel", type=int, default=16, metavar="N", help="so many at once")
    parser.add_argument("--times", choices=sorted(TIMES), default="short",
                        help="the session timeout and the like that musterd is given")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--tls", action="store_true",
                     help="with credentials: all that ranks and server say is encrypted")
    how.add_argument("--tls-too", action="store_true",
                     help="also each fault by TLS, in one phase that the seed draws")
    parser.add_argument("--viewed", action="store_true",
                        help="with the live page of each server open, but in network namespaces")
    parser.add_argument("--only", action="append", default=[], metavar="FAULT[/PHASE]",
                        help="these alone; see --list")
    parser.add_argument("--table", metavar="FILE", help="writes the table there, too")
    parser.add_argument("--list", action="store_true", help="names all, and runs none")
    parser.add_argument("--verbose", action="store_true", help="tells of each run")
    options = parser.parse_args()
    if options.list:
        for fault, phase in cells(options.tls):
            print(f"{fault.name}/{phase}")
        return 0
    matrix = Matrix(options)
    began = time.monotonic()
    print(f"seed {options.seed}, {options.times} times, {options.parallel} at once"
          f"{', by TLS' if options.tls else ''}", flush=True)
    asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    asyncio.run(matrix.all())
    table = "\n".join(matrix.table())
    print(table)
    if options.table:
        Path(options.table).write_text(table + "\n", encoding="utf-8")
    runs, failed, skipped = (sum(counts.values())
                             for counts in (matrix.runs, matrix.failed, matrix.skipped))
    print(f"{runs} runs, {failed} failed, {skipped} skipped, in {time.monotonic() - began:.0f} s")
    if options.viewed:
        print(f"{matrix.seen_events} events were seen on live pages")
    is_blind = options.viewed and matrix.seen_events == 0
    return 1 if failed or runs == skipped or is_blind or matrix.is_ended else 0


if __name__ == "__main__":
    sys.exit(main())
