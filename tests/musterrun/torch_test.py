"""An unmodified program of torch under musterrun: of four ranks, on one node and on two, and again
after a rank was killed. Skips itself where Python has no torch."""

import importlib.util
import sys
import unittest
from pathlib import Path

from job_case import PROGRAMS
from nodes_test import NodeCase

SCRIPT = Path(__file__).resolve().parent / "torch_script.py"
SKIPPED = 77


class Torch(NodeCase):
    OPTIONS = ("--tee", 1, "--max-restarts", 1)
    ENVIRONMENT = {"PYTHON_EXEC": sys.executable}

    def test_t23_init_process_group_by_tcp_at_the_address_that_ranks_are_told(self):
        self.adds(self.start("-n", 4, *self.OPTIONS, SCRIPT, "tcp://$MASTER_ADDR:$MASTER_PORT",
                             env=self.ENVIRONMENT))

    # S1
    def test_t24_init_process_group_by_variables_on_one_node(self):
        self.adds(self.start("-n", 4, *self.OPTIONS, SCRIPT, env=self.ENVIRONMENT))

    def test_init_process_group_on_two_nodes(self):
        self.adds(*(self.node(*self.OPTIONS, SCRIPT, env=self.ENVIRONMENT) for _ in range(2)))

    def test_s2_two_jobs_of_torch_at_once(self):
        jobs = [self.start("-n", 4, *self.OPTIONS, SCRIPT, env=self.ENVIRONMENT) for _ in range(2)]
        for job in jobs:
            self.adds(job)

    def test_init_process_group_where_rank_0_hosts_the_store(self):
        self.adds(self.start("-n", 4, *self.OPTIONS, "--tcpstore", "off", SCRIPT,
                             env=self.ENVIRONMENT), agent=False)

    def adds(self, *launchers, agent=True):
        """Each rank has the sum, in the first attempt and in that after it."""
        codes, out, err = self.end_of(launchers)
        self.assertEqual(codes, [0] * len(launchers), err)
        told = sorted(line.split("]: ")[1] for line in out.splitlines() if "]: rank" in line)
        self.assertEqual(told, sorted(f"rank {rank} of 4: 10 in {restart} by {agent}"
                                      for rank in range(4) for restart in (0, 1)))


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        print(f"skipped: {sys.executable} has no torch")
        sys.exit(SKIPPED)
    for name in ("musterrun", "musterd", "musterctl"):
        PROGRAMS[name] = sys.argv.pop(1)
    unittest.main(verbosity=2)
