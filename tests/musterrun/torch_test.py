"""An unmodified program of torch under musterrun: on two nodes of two ranks, and again after a
restart. Skips itself where Python has no torch."""

import importlib.util
import sys
import unittest
from pathlib import Path

from job_case import PROGRAMS
from nodes_test import NodeCase

SCRIPT = Path(__file__).resolve().parent / "torch_script.py"
SKIPPED = 77


class Torch(NodeCase):
    def test_init_process_group_on_two_nodes_and_again_after_a_restart(self):
        launchers = [self.node("--tee", 1, "--max-restarts", 1, SCRIPT,
                               env={"PYTHON_EXEC": sys.executable}) for _ in range(2)]
        codes, out, err = self.end_of(launchers)
        self.assertEqual(codes, [0, 0], err)
        told = sorted(line.split("]: ")[1] for line in out.splitlines() if "]: rank" in line)
        self.assertEqual(told, sorted(f"rank {rank} of 4: 10 in {restart}"
                                      for rank in range(4) for restart in (0, 1)))


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        print(f"skipped: {sys.executable} has no torch")
        sys.exit(SKIPPED)
    for name in ("musterrun", "musterd", "musterctl"):
        PROGRAMS[name] = sys.argv.pop(1)
    unittest.main(verbosity=2)
