"""Tests run.py on files of tests that it writes. Skipped where there is no pytest."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RUN = Path(__file__).with_name("run.py")
SKIPPED = 77
REASON = "there is no such module (Debian: python3-none)"
SKIPS_ITSELF = f"import pytest\npytest.importorskip('no_such_module', reason='{REASON}')\n"
SKIPS_ONE = f"import pytest\ndef test_skipped(): pytest.skip('{REASON}')\n"


class Run(unittest.TestCase):
    def run_file(self, text: str) -> tuple[int, list[str]]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "test_it.py")
            file.write_text(text, encoding="utf-8")
            done = subprocess.run(
                [sys.executable, RUN, file, "--package", folder, "--musterd", "musterd"],
                capture_output=True, text=True, check=False,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        return done.returncode, done.stdout.splitlines()

    def assert_skipped(self, text: str) -> None:
        status, lines = self.run_file(text)
        self.assertEqual((status, lines[-1]), (SKIPPED, f"skipped: {REASON}"))

    def test_a_file_that_skips_itself_is_skipped(self) -> None:
        self.assert_skipped(SKIPS_ITSELF + "def test_never_seen(): pass\n")

    def test_a_file_whose_tests_are_all_skipped_is_skipped(self) -> None:
        self.assert_skipped(SKIPS_ONE + f"@pytest.mark.skipif(True, reason='{REASON}')\n"
                                        "def test_marked(): pass\n")

    def test_a_file_with_a_test_that_runs_passes(self) -> None:
        for passing in ("def test_it(): pass\n",
                        "@pytest.mark.xfail\ndef test_it(): assert False\n"):
            self.assertEqual(self.run_file(SKIPS_ONE + passing)[0], 0)

    def test_a_failure_beside_skipped_tests_fails(self) -> None:
        for failing in (
            "def test_it(): assert False\n",
            "@pytest.fixture\ndef broken(): assert False\ndef test_it(broken): pass\n",
            "@pytest.fixture\ndef late():\n    yield\n    assert False\n"
            "def test_it(late): pytest.skip('not now')\n",
        ):
            self.assertEqual(self.run_file(SKIPS_ONE + failing)[0], 1)

    def test_a_file_where_nothing_is_collected_fails(self) -> None:
        for text in ("", "import no_such_module\n", "def test_it(:\n", "raise KeyError\n"):
            self.assertNotIn(self.run_file(text)[0], (0, SKIPPED), text)


if __name__ == "__main__":
    if importlib.util.find_spec("pytest") is None:
        print("skipped: there is no pytest (Debian: python3-pytest)")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
