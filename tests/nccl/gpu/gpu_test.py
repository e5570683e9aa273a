"""Tests `tools/dev gpu` on doubles: that each verb runs, from a pack, and tells what it sees.

gpu_test.py BUILD CUDA_DOUBLE NCCL_DOUBLE PART   verbs, failures, checks or measures
gpu_test.py BUILD                                no double: the acceptance on this machine's GPU
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import plan
import report

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
TIMEOUT_S = 600
ANY_SIZE = ("--bytes-max", str(1 << 30))  # a build for tests, or of a sanitizer, is not carried
OF_THE_MACHINE = ("MUSTER_NCCL_LIBRARY", "MUSTER_CUDA_LIBRARY", "MUSTER_GPU_RESULTS", "NCCL_DOUBLE",
                  "CUDA_DOUBLE", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "LD_LIBRARY_PATH")
BUILD, CUDA, NCCL = (Path(text).resolve() for text in [*sys.argv[1:4], "", "", ""][:3])


def packed(folder, *arguments):
    return subprocess.run([sys.executable, HERE / "pack.py", BUILD, folder, *arguments], text=True,
                          capture_output=True, check=False, timeout=TIMEOUT_S)


def environment_with(**added):
    clean = {name: value for name, value in os.environ.items() if name not in OF_THE_MACHINE}
    return {**clean, **added}


class Packed(unittest.TestCase):
    """Tests on a pack of their own."""

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="muster-gpu-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.pack = cls.folder / "pack"
        made = packed(cls.pack, "--state", "a state", *ANY_SIZE)
        if made.returncode != 0:
            raise AssertionError(made.stdout + made.stderr)

    def run_verb(self, *arguments, devices=1, wanted=0, **environment):
        """Runs a verb on doubles, in small."""
        doubled = environment_with(
            **{"MUSTER_CUDA_LIBRARY": str(CUDA), "MUSTER_NCCL_LIBRARY": str(NCCL),
               "CUDA_DOUBLE_DEVICES": str(devices), "CUDA_DOUBLE_MEMORY_BYTES": str(4 << 30),
               "MUSTER_GPU_RESULTS": str(self.folder / "results"), **environment})
        ended = subprocess.run([sys.executable, self.pack / "gpu.py", *arguments, "--small"],
                               text=True, capture_output=True, check=False, timeout=TIMEOUT_S,
                               env=doubled, cwd=self.folder)
        self.assertEqual(ended.returncode, wanted, ended.stdout + ended.stderr)
        self.assertEqual(self.left_running(), [])
        return ended.stdout + ended.stderr

    def left_running(self):
        """Processes of the pack's programs."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.readlink(entry / "exe").startswith(str(self.pack)):
                    found.append(entry.name)
            except OSError:
                continue  # it has ended, or is another's
        return found

    def rows(self, stem):
        path = self.folder / "results" / f"{stem}.json"
        return json.loads(path.read_text(encoding="utf-8"))["rows"]

    def outcomes(self, check):
        return {row["key"]: (row["outcome"], row["why"])
                for row in self.rows(report.stem_of_check(check))}


class Verbs(Packed):
    def test_a_pack_that_is_too_large_is_refused(self):
        made = packed(self.folder / "large", "--bytes-max", "1000000")
        self.assertNotEqual(made.returncode, 0)
        self.assertIn("at most 1.0 MiB", made.stderr)
        self.assertFalse((self.folder / "large" / "manifest.json").exists())

    def test_without_a_gpu_or_nccl_a_verb_says_why_and_is_skipped(self):
        for environment, reason in (
                ({"MUSTER_CUDA_LIBRARY": "/nowhere/libcuda.so.1"}, "no CUDA driver: /nowhere"),
                ({"CUDA_DOUBLE_INIT_RESULT": "100"}, "cuInit gave 100"),
                ({"MUSTER_NCCL_LIBRARY": "/nowhere/libnccl.so.2"}, "libnccl cannot be loaded"),
                ({"NCCL_DOUBLE_VERSION": "21700"}, "is too old")):
            for verb in (["check", "1"], ["bandwidth"], ["creation"], ["acceptance"], ["where"]):
                said = self.run_verb(*verb, wanted=77, **environment)
                self.assertIn("no GPU to run on, or no NCCL: ", said)
                self.assertIn(reason, said)

    def test_where_names_the_devices_and_libraries(self):
        said = self.run_verb("where", devices=2)
        self.assertIn("device 1: Device of the tests' double", said)
        self.assertIn(f"NCCL 2.28.9: {NCCL}, as it was named", said)
        self.assertNotIn("device 1", self.run_verb("where", "--devices", "1", devices=2))

    def test_libnccl_is_found_in_python_environments(self):
        places = {"PYTHONPATH": "nvidia/nccl/lib", "VIRTUAL_ENV":
                  "lib/python3.9/site-packages/nvidia/nccl/lib", "CONDA_PREFIX":
                  "lib/python3.12/site-packages/torch/lib"}
        broken = self.folder / "broken"  # the one that the dynamic linker finds cannot be loaded
        broken.mkdir()
        (broken / "libnccl.so.2").write_text("no library\n")
        for variable, place in places.items():
            place = self.folder / variable / place
            place.mkdir(parents=True)
            shutil.copy2(NCCL, place / "libnccl.so.2")
            own = environment_with(**{variable: str(self.folder / variable)})
            self.assertEqual(self.candidates(own)[0], "")  # first the dynamic linker's
            self.assertIn(str(place / "libnccl.so.2"), self.candidates(own))
            said = self.run_verb("check", "1", MUSTER_NCCL_LIBRARY="", LD_LIBRARY_PATH=str(broken),
                                 **{variable: str(self.folder / variable)})
            self.assertIn(f"{place}/libnccl.so.2, found in a Python environment", said)
            self.assertEqual(self.outcomes(1)["1 device_of_thread, 1 rank, non-blocking"],
                             ("holds", ""))

    def candidates(self, environment):
        asked = "import found; print(*(path for path, _ in found.candidates('')), sep='\\n')"
        said = subprocess.run([sys.executable, "-c", asked], text=True, check=True, env=environment,
                              capture_output=True, cwd=self.pack, timeout=TIMEOUT_S).stdout
        return said.split("\n")

    def test_wrong_arguments_are_named(self):
        for arguments in (["check"], ["check", "11"], ["bandwidth", "reduce"], ["where", "1"]):
            self.run_verb(*arguments, wanted=2)

    def test_the_list_has_every_part(self):
        said = self.run_verb("list")
        for part in plan.PARTS:
            self.assertIn(part.must, said)

    def test_the_document_has_the_place_of_every_part(self):
        text = (ROOT / "docs/nccl.md").read_text(encoding="utf-8")
        place = text[text.index(report.BEGIN):text.index(report.END)]
        cells = re.findall(r"^\| (\d+) \| (.*?) \| (.*?) \| (.+) \|$", place, re.MULTILINE)
        self.assertEqual([cell[:3] for cell in cells],
                         [(str(part.check), part.must, part.how) for part in plan.PARTS])
        for operation in plan.OPERATIONS:
            self.assertIn(f"**`{operation}`**", place)


class Failures(Packed):
    """What does not hold is told, and what hangs is ended."""

    def test_a_verb_ends_in_time_and_leaves_nothing(self):
        began = time.monotonic()
        said = self.run_verb("check", "1", "2", "--limit", "6", NCCL_DOUBLE_FAULTS="init:hang")
        self.assertLess(time.monotonic() - began, 6 + 20)
        for check in (1, 2):
            for outcome, why in self.outcomes(check).values():
                self.assertEqual(outcome, "not_run")
                self.assertTrue(why in ("the time of the verb was up", "there is 1 GPU"), said)

    def test_repetitions_that_there_was_no_time_for_are_told(self):
        self.run_verb("check", "6", "--limit", "9")
        rows = [row for row in self.rows("check-06") if row["outcome"] == "holds"]
        self.assertTrue(any(row["is_short"] for row in rows) or len(rows) < 3)

    def test_what_fails_is_told_with_the_reason(self):
        for faults, part, reason in (
                ("collective:result=1", "1 device_of_thread", "unhandled cuda error"),
                ("collective:result=2+50", "2 many_calls, 2 ranks", "unhandled system error"),
                ("collective:result=5+1*1", "3 refusal, 2 ranks, blocking", "a right call failed"),
                ("abort:block=6500*1", "4 abort_frees_stream, 2 ranks, non",
                 "a stream was not idle after 5000 ms"),
                ("abort:block=6000*1", "5 abort_together, 2 ranks, non", "handles were given up"),
                ("collective:async=3@0+1*1", "6 killed_peer, 2 ranks, non", "internal error"),
                ("collective:result=1", "7 ring, 3 ranks, non-blocking, warm", "unhandled cuda"),
                ("finalize:block=5000@0*1", "8 close_unmatched, 2 ranks, non",
                 "close took longer than its deadline of 500 ms"),
                ("collective:result=1+3*1", "9 many_alive", "unhandled cuda error")):
            self.see_failure(part, reason, NCCL_DOUBLE_FAULTS=faults)
        for failure, reason in (("cuGraphLaunch=999", "cuGraphLaunch gave 999"),
                                ("cuStreamBeginCapture_v2=801", "cuStreamBeginCapture gave 801")):
            self.see_failure("10 capture", reason, CUDA_DOUBLE_FAIL=failure)

    def see_failure(self, part, reason, **environment):
        shutil.rmtree(self.folder / "results", ignore_errors=True)
        check = int(part.split()[0])
        said = self.run_verb("check", str(check), "--only", part, wanted=1, **environment)
        self.assertTrue(self.outcomes(check))
        for outcome, why in self.outcomes(check).values():
            self.assertEqual(outcome, "fails", said)
            self.assertIn(reason, why)

    def test_a_test_of_the_acceptance_that_fails_is_told(self):
        self.run_verb("acceptance", wanted=1, NCCL_DOUBLE_FAULTS="collective:result=1")
        outcomes = {row["key"]: row["outcome"] for row in self.rows("acceptance")}
        self.assertEqual(outcomes["one rank has a communicator of its own"], "fails")


class Checks(Packed):
    def test_every_part_holds_on_doubles(self):
        said = self.run_verb("check", *map(str, plan.CHECKS))
        for check in plan.CHECKS:
            parts = [part for part in plan.PARTS if part.check == check]
            self.assertEqual(self.outcomes(check), {
                part.key: ("holds", "") if part.devices == 1 else ("not_run", "there is 1 GPU")
                for part in parts}, said)

    def test_a_part_that_is_run_alone_joins_what_was_found_before(self):
        keys = [part.key for part in plan.PARTS if part.check == 7]
        self.run_verb("check", "7", "--only", keys[1])
        self.assertEqual(list(self.outcomes(7)), [keys[1]])
        self.run_verb("check", "7", "--only", keys[2])
        self.assertEqual(list(self.outcomes(7)), keys[1:3])
        # What there was no time for leaves what was found before.
        self.run_verb("check", "7", "--only", keys[1], "--limit", "0.5")
        self.assertEqual(self.outcomes(7)[keys[1]], ("holds", ""))

    def test_with_several_gpus_each_rank_has_its_own(self):
        said = self.run_verb("check", "1", "7", devices=3)
        for check in (1, 7):
            for outcome in self.outcomes(check).values():
                self.assertEqual(outcome, ("holds", ""), said)


class Measures(Packed):
    def test_what_is_measured_is_in_the_tables(self):
        self.run_verb("bandwidth", devices=2)
        self.run_verb("creation")
        self.run_verb("acceptance")
        self.run_verb("check", "1")
        for operation in plan.OPERATIONS:
            row = self.rows(f"bandwidth-{operation}")[0]
            self.assertEqual((row["outcome"], row["why"]), ("holds", ""))
            for count in (1024, 65536):
                for subject in plan.SUBJECTS:
                    self.assertGreater(row["figures"][f"{count} {subject}"][0], 0)
        self.assertEqual({row["outcome"] for row in self.rows("acceptance")}, {"holds"})
        document = self.folder / "nccl.md"
        shutil.copy2(ROOT / "docs/nccl.md", document)
        self.run_verb("table", "--write", str(document))
        text = document.read_text(encoding="utf-8")
        self.assertEqual(text.split(report.BEGIN)[0],
                         (ROOT / "docs/nccl.md").read_text(encoding="utf-8").split(report.BEGIN)[0])
        place = text[text.index(report.BEGIN):text.index(report.END)]
        self.assertIn("Device of the tests' double; driver for CUDA 13.0, NCCL 2.28.9; commit a "
                      "state", place)
        self.assertIn("1 rank, non-blocking | holds |", place)
        self.assertIn("not run yet: `tools/dev gpu check 2`", place)
        self.assertRegex(place, r"\| 64 KiB \| [\d.,]+ us, [\d.e+-]+ GB/s \| [\d.,]+ us, [\d.e+-]+ "
                         r"GB/s, [\d.]+ \|")
        self.assertIn("| one rank has a communicator of its own | holds | ", place)
        self.assertIn("overlapping groups of 2", place)

    def test_sizes_that_do_not_fit_into_the_device_are_left_out(self):
        self.run_verb("bandwidth", "broadcast", CUDA_DOUBLE_MEMORY_BYTES=str(100_000))
        figures = self.rows("bandwidth-broadcast")[0]["figures"]
        self.assertIn("16384 nccl", figures)
        self.assertNotIn("65536 nccl", figures)
        self.assertIn("2 ranks on 1 GPU; up to 19.5 KiB, what there was room for",
                      self.run_verb("table"))


def on_this_machine():
    with tempfile.TemporaryDirectory(prefix="muster-gpu-test-") as folder:
        made = packed(Path(folder), *ANY_SIZE)
        if made.returncode != 0:
            sys.exit(made.stderr)
        return subprocess.run([sys.executable, f"{folder}/gpu.py", "acceptance"],
                              check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) == 2:
        sys.exit(on_this_machine())
    part_of = {"verbs": Verbs, "failures": Failures, "checks": Checks, "measures": Measures}
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(part_of[sys.argv[4]])
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
