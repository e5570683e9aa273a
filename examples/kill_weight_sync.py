"""Kills processes of weight_sync at random moments, and starts each again after a random time.

kill_weight_sync.py WEIGHT_SYNC MUSTERD [--kills N] [--seed N] [--servers N] [--grace S]
                    [ARGUMENT...]   other arguments go to the trainer and the servers

Fails if a server that was not killed ends, does not get each next version, or waits for one longer
than the grace + 3 s. It waits from its last version, or its start, or the last kill of any process,
or the last start of the trainer or of musterd, whichever came last; and only while both run.
"""

import argparse
import random
import sys
import time
from collections import Counter

from weight_sync_job import SLICES, Job, tell

TICK_S = 0.005
ALLOWANCE_S = 3.0
NOTEWORTHY_S = 1.0
GIVES_UP_AFTER_S = 60.0
DOWN_MAX = 2


class Server:
    """What is known of a server's process that runs."""

    def __init__(self, began):
        self.version = 0
        self.served = began  # since then it waits for the next version


class Run:
    def __init__(self, job, chance, options):
        self.job = job
        self.chance = chance
        self.kills_wanted = options.kills
        self.grace_s = options.grace
        self.limit_s = options.grace + ALLOWANCE_S
        self.servers = {}
        self.restart_at = {}  # of those that are down
        self.disturbed = time.monotonic()
        self.disturbed_by = "start"
        self.next_kill = None  # when, and whom; None: when all have settled
        self.next_step = None
        self.kills = Counter()
        self.versions = 0
        self.longest = Counter()  # seconds, by what was killed last
        self.longest_gap = 0.0    # between two versions of a server, whatever happened meanwhile

    def start(self, name):
        self.job.start(name)
        now = time.monotonic()
        if name.startswith("server"):
            self.servers[name] = Server(now)
        else:
            self.disturbed = now
        return now

    def kill(self, name, now):
        kind = name.split("-", maxsplit=1)[0]
        self.job.kill(name)
        self.servers.pop(name, None)
        self.kills[kind] += 1
        self.disturbed, self.disturbed_by = now, kind
        delay = self.chance.choice([
            self.chance.uniform(0, self.grace_s / 4), self.chance.uniform(0, self.grace_s),
            self.chance.uniform(0, self.grace_s), self.chance.uniform(0, 2 * self.grace_s)])
        self.restart_at[name] = now + delay
        tell(f"kills {name}, for {delay:.3f} s")
        self.plan(now)

    def plan(self, now):
        """The next kill: at any moment; or one when all have come to rest."""
        self.next_kill = None
        if self.chance.random() < 0.5:
            self.next_kill = (now + self.chance.uniform(0, 1.5 * self.grace_s), None)

    def victim(self):
        kind = self.chance.choices(["server", "trainer", "musterd"], [70, 20, 10])[0]
        names = [name for name in self.job.running if name.startswith(kind)]
        return self.chance.choice(names) if names else None

    def restart_those_due(self, now):
        for name in [name for name, at in self.restart_at.items() if at <= now]:
            del self.restart_at[name]
            tell(f"starts {name}")
            began = self.start(name)
            if self.chance.random() < 0.25:  # while it joins, or gets its first version
                self.next_kill = (began + self.chance.uniform(0, 0.3), name)

    def is_at_rest(self):
        return not self.restart_at and all(
            server.version and server.served > self.disturbed for server in self.servers.values())

    def kill_who_is_due(self, now):
        if self.next_kill is None:
            if self.is_at_rest():
                self.next_kill = (now + self.chance.uniform(0, 0.5), None)
            return
        at, name = self.next_kill
        if now < at:
            return
        name = name or self.victim()
        if name in self.job.running and len(self.restart_at) < DOWN_MAX:
            self.kill(name, now)
        else:
            self.plan(now)

    def read(self, now):
        trainer = self.job.running.get("trainer")
        for came, line in trainer.new_lines() if trainer else []:
            is_last = line.startswith("version ") and f": slice {SLICES[-1]} on " in line
            self.versions += is_last
            if is_last or line == "ready":
                self.next_step = came + self.chance.uniform(0, 0.05)
        if trainer and self.next_step and self.next_step <= now:
            self.next_step = None
            trainer.say("\n")
        for name, server in self.servers.items():
            for came, line in self.job.running[name].new_lines():
                if not line.startswith("serves version "):
                    continue
                version = int(line.split()[2].rstrip(","))
                if version <= server.version:
                    sys.exit(f"{name} serves version {version} after {server.version}")
                if server.version:
                    self.longest_gap = max(self.longest_gap, came - server.served)
                stall = self.see_stall(name, came)
                if stall > self.grace_s + NOTEWORTHY_S:
                    tell(f"{name} has waited {stall:.2f} s")
                server.version, server.served = version, came

    def see_stall(self, name, now):
        """How long this server waits by now.

        returns  seconds; 0 while there is nobody who could give it a version"""
        if "trainer" not in self.job.running or "musterd" not in self.job.running:
            return 0
        stall = now - max(self.servers[name].served, self.disturbed)
        self.longest[self.disturbed_by] = max(self.longest[self.disturbed_by], stall)
        if stall > GIVES_UP_AFTER_S:
            sys.exit(f"{name} waits for a version for ever")
        return stall

    def tick(self):
        now = time.monotonic()
        for name, process in self.job.running.items():
            if process.process.poll() is not None:
                sys.exit(f"{name} was not killed, and ended with {process.process.returncode}")
        self.restart_those_due(now)
        self.read(now)
        for name in self.servers:
            self.see_stall(name, now)
        if self.kills.total() < self.kills_wanted:
            self.kill_who_is_due(now)
        time.sleep(TICK_S)

    def run(self):
        for name in ["trainer", *self.job.server_names]:
            self.start(name)
        while self.kills.total() < self.kills_wanted or not self.is_at_rest():
            self.tick()
        self.job.end()

    def report(self):
        by_kind = ", ".join(f"{count} of {kind}" for kind, count in sorted(self.kills.items()))
        stalls = ", ".join(f"{longest:.2f} s after one of {kind}"
                           for kind, longest in sorted(self.longest.items()) if kind != "start")
        print(f"{self.kills.total()} kills ({by_kind}), {self.versions} versions; no server lost "
              f"that lived; longest stall {stalls}; longest time between two versions of a server, "
              f"whatever was killed meanwhile, {self.longest_gap:.2f} s")
        longest = max(self.longest.values())
        if longest > self.limit_s:
            sys.exit(f"a stall of {longest:.2f} s; the grace + {ALLOWANCE_S:.0f} s is "
                     f"{self.limit_s:.1f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weight_sync")
    parser.add_argument("musterd")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--grace", type=int, default=2, help="musterd's, in seconds")
    options, arguments = parser.parse_known_args()
    print(f"seed {options.seed}, grace {options.grace} s, {options.servers} servers of "
          f"{len(SLICES)} slices", flush=True)
    job = Job(options.weight_sync, options.musterd, options.servers, arguments, options.grace)
    try:
        run = Run(job, random.Random(options.seed), options)
        run.run()
        run.report()
    finally:
        job.stop()


main()
