"""Hides torch from every Python that has this folder in PYTHONPATH, as if it were not installed.

Meson sets PYTHONPATH for all tests. Python imports this module when it starts, so the processes
that a test starts do not see torch either. The tests of the suite `torch` set MUSTER_TEST_TORCH.
"""

import os
from importlib.machinery import PathFinder

if not os.environ.get("MUSTER_TEST_TORCH"):
    find_spec = PathFinder.find_spec

    def find_spec_without_torch(name, path=None, target=None):
        return None if name == "torch" else find_spec(name, path, target)

    PathFinder.find_spec = find_spec_without_torch
