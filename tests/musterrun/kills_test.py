"""Whatever process of a job is killed, and whenever: every launcher ends, and nothing is left."""

import os
import random
import signal
import sys
import time
import unittest

from job_case import PROGRAMS, children_of
from nodes_test import NodeCase

# A launcher waits for 18 s for an earlier run, and for 60 s for the group of an attempt's
# launchers, unless it sees that one of them is gone.
END_S = 45
KILLS = max(5, int(100 * float(os.environ.get("MUSTER_TEST_SCALE", "0.2"))))
SEED = int(os.environ.get("MUSTER_TEST_SEED", time.time_ns()))

# Each rank has a child, and a process in a session of its own that has no parent and ignores
# signals; it ends well after a while.
SCRIPT = ("(setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 0.2; done' &) ; sleep 30 & "
          "sleep 0.$(( ($RANK + 3) % 7 )); exit 0")


class Kills(NodeCase):
    def environment(self, **more):
        """Without the search for leaks: as a process ends it has a child for that, and waits for
        it for ever if somebody kills it, as this test would."""
        sanitizer = ":".join(filter(None, (os.environ.get("ASAN_OPTIONS"), "detect_leaks=0")))
        return super().environment(ASAN_OPTIONS=sanitizer, **more)

    def test_any_process_at_any_moment(self):
        print("seed", SEED, flush=True)
        dice = random.Random(SEED)
        kinds = {}
        for kill in range(KILLS):
            kind = self.kill_one(dice, f"job-{kill}")
            kinds[kind] = kinds.get(kind, 0) + 1
            left = self.await_nothing_left(10)
            self.assertEqual(left, [], f"after kill {kill} of {kind}")
        print(kinds, flush=True)
        self.is_swept_later = True

    def kill_one(self, dice, job):
        """returns  what was killed"""
        options = ("--pid-namespace", dice.choice(("auto", "never")),
                   "--shutdown-timeout", "100ms", "--join-timeout", "3s",
                   "--max-restarts", dice.choice((0, 1)))
        count = dice.choice((1, 2))
        if count == 1:
            launchers = [self.start(*options, "sh", "-c", SCRIPT)]
        else:
            launchers = self.nodes(2, SCRIPT, *options, job=job, nodes=dice.choice(("2", "1:2")))
        time.sleep(dice.uniform(0, 0.6))
        kind = self.kill_any(dice, launchers)
        for launcher in launchers:
            launcher.communicate(timeout=END_S)
        self.launchers.clear()
        return kind

    def kill_any(self, dice, launchers):
        kind = dice.choice(("launcher", "guardian", "rank", "grandchild", "node"))
        launcher = dice.choice(launchers)
        if kind == "node":
            self.kill_node(launcher)
            return kind
        guardians = children_of(launcher.pid)
        candidates = {"launcher": [launcher.pid], "guardian": guardians}.get(kind)
        if candidates is None:
            ranks = [child for guardian in guardians for child in children_of(guardian)]
            candidates = ranks if kind == "rank" else [child for rank in ranks
                                                       for child in children_of(rank)]
        if not candidates:
            return "nobody"
        try:
            os.kill(dice.choice(candidates), signal.SIGKILL)
        except ProcessLookupError:
            return "nobody"
        return kind


if __name__ == "__main__":
    for name in ("musterrun", "musterd", "musterctl"):
        PROGRAMS[name] = sys.argv.pop(1)
    unittest.main(verbosity=2)
