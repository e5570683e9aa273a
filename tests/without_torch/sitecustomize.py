"""Hides torch from every Python that has this folder in PYTHONPATH, as if it were not installed.

Meson sets PYTHONPATH for all tests. Python imports this module when it starts, so the processes
that a test starts do not see torch either. The tests of the suite `torch` set MUSTER_TEST_TORCH.
"""

import os
import sys
from importlib.machinery import PathFinder


class PathFinderWithoutTorch(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name == "torch" else super().find_spec(name, path, target)


if not os.environ.get("MUSTER_TEST_TORCH"):
    sys.meta_path[sys.meta_path.index(PathFinder)] = PathFinderWithoutTorch
