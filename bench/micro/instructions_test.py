"""Test: the gate on instruction counts, with a valgrind that counts what the test wants."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

INSTRUCTIONS = Path(__file__).resolve().parent / "instructions.py"
TOOLCHAIN = "g++ 1.2.3, glibc 4.5, a processor, -O3, assertions off"
REPEAT = """#!/bin/sh
printf '%s\\n' '{toolchain}' '{names}'
"""
# As the real one does, of a program that does it 500 times.
VALGRIND = """#!/bin/sh
while [ "$1" != "${{1#--}}" ]; do shift; done
echo "==1== Collected : $(grep "^$2:" {counts} | cut -d: -f2)" >&2
echo 500
"""


class Gate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.baseline = self.folder / "baseline.json"
        self.write("valgrind", VALGRIND.format(counts=self.folder / "counts"))

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def count(self, **counts):
        """From now on each of these takes so many instructions."""
        lines = [f"{name}:{int(each * 500)}" for name, each in counts.items()]
        self.write("counts", "\n".join(lines) + "\n")
        self.write("repeat", REPEAT.format(toolchain=TOOLCHAIN, names="' '".join(counts)))

    def run_gate(self, *arguments, path=None):
        command = [sys.executable, INSTRUCTIONS, self.folder / "repeat", *arguments,
                   "--baseline", self.baseline]
        path = path or f"{self.folder}:{os.environ['PATH']}"
        done = subprocess.run(command, capture_output=True, text=True,
                              env={**os.environ, "PATH": path})
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def accept(self, **counts):
        self.count(**counts)
        self.assertEqual(self.run_gate("--accept")[0], 0)

    def test_what_takes_as_much_as_before_passes(self):
        self.accept(get=1000, set=2000)
        self.assertEqual(self.run_gate("--check")[0], 0)

    def test_four_per_cent_more_pass(self):
        self.accept(get=1000, set=2000)
        self.count(get=1040, set=2000)
        self.assertEqual(self.run_gate("--check")[0], 0)

    def test_six_per_cent_more_fail_and_say_what_where_and_how_to_accept_it(self):
        self.accept(get=1000, set=2000)
        self.count(get=1060, set=2000)
        status, printed = self.run_gate("--check")
        self.assertEqual(status, 1)
        self.assertIn("get: 1,060 instructions, the baseline is 1,000: +6.0 %", printed)
        self.assertIn("tools/dev bench --micro --accept", printed)
        self.assertNotIn("set: 2,000", printed)

    def test_six_per_cent_less_pass_with_a_hint(self):
        self.accept(get=1000)
        self.count(get=940)
        status, printed = self.run_gate("--check")
        self.assertEqual(status, 0)
        self.assertIn("tools/dev bench --micro --accept", printed)
        self.assertIn("get: 940 instructions", printed)

    def test_work_without_a_baseline_fails(self):
        self.accept(get=1000)
        self.count(get=1000, add=10)
        status, printed = self.run_gate("--check")
        self.assertEqual(status, 1)
        self.assertIn("add: it has no baseline", printed)

    def test_a_baseline_without_work_fails(self):
        self.accept(get=1000, set=2000)
        self.count(get=1000)
        status, printed = self.run_gate("--check")
        self.assertEqual(status, 1)
        self.assertIn("set: it has a baseline, but there is no such work", printed)

    def test_another_toolchain_is_skipped_and_named(self):
        self.count(get=1000)
        status, printed = self.run_gate("--check")
        self.assertEqual(status, 77)
        self.assertIn("skipped: ", printed)
        self.assertIn(TOOLCHAIN, printed)

    def test_without_valgrind_it_is_skipped(self):
        self.accept(get=1000)
        status, printed = self.run_gate("--check", path=str(self.folder / "nothing"))
        self.assertEqual(status, 77)
        self.assertIn("valgrind", printed)

    def test_accepting_keeps_the_figures_of_other_toolchains(self):
        others = {"another": {"get": 7}}
        self.baseline.write_text(json.dumps(others), encoding="utf-8")
        self.accept(get=1000)
        self.assertEqual(json.loads(self.baseline.read_text(encoding="utf-8")),
                         {**others, TOOLCHAIN: {"get": 1000.0}})

    def test_accepting_forgets_work_that_is_gone(self):
        self.accept(get=1000, set=2000)
        self.accept(get=1100)
        self.assertEqual(json.loads(self.baseline.read_text(encoding="utf-8")),
                         {TOOLCHAIN: {"get": 1100.0}})


if __name__ == "__main__":
    unittest.main()
