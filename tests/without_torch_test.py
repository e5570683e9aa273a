"""Tests that torch is hidden from tests. Meson runs it with the environment of every test."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HIDES = Path(__file__).resolve().parent / "without_torch"
IMPORTED = "import torch.nn, torch_like"
HIDDEN = """
import importlib.util, subprocess, sys, torch_like
assert importlib.util.find_spec("torch") is None and "torch" not in sys.modules
try:
    import torch.nn
except ModuleNotFoundError as error:
    assert error.name == "torch"
else:
    sys.exit("torch is imported")
assert subprocess.run([sys.executable, "-m", "torch.nn"], stderr=subprocess.PIPE).returncode == 1
"""


class WithoutTorch(unittest.TestCase):
    def run_python(self, program, **variables):
        """Runs a program where a torch is installed."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "torch").mkdir()
            for name in ("torch/__init__.py", "torch/nn.py", "torch_like.py"):
                Path(folder, name).touch()
            path = os.pathsep.join([folder, os.environ["PYTHONPATH"]])
            environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
            return subprocess.run([sys.executable, "-c", program], check=False,
                                  env={**environment, **variables}).returncode

    def test_tests_have_the_folder_that_hides_torch(self):
        self.assertIn(HIDES, map(Path, os.environ["PYTHONPATH"].split(os.pathsep)))
        self.assertNotIn("MUSTER_TEST_TORCH", os.environ)

    def test_torch_is_hidden_also_from_processes_of_a_test(self):
        self.assertEqual(self.run_python(HIDDEN), 0)
        self.assertEqual(self.run_python(f"""
import subprocess, sys
sys.exit(subprocess.call([sys.executable, "-c", {HIDDEN!r}]))"""), 0)

    def test_a_hook_that_keeps_the_finder_works(self):
        """pytest imports its plugins through such a hook."""
        self.assertEqual(self.run_python("""
import importlib.machinery
class Hook:
    find = importlib.machinery.PathFinder.find_spec
assert Hook().find("torch_like") is not None"""), 0)

    def test_the_suite_torch_sees_it(self):
        self.assertEqual(self.run_python(IMPORTED, MUSTER_TEST_TORCH="1"), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
