"""Where promtool and prometheus are: in the PATH, or unpacked by `tools/dev setup prometheus`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

UNPACKED = Path(__file__).resolve().parents[2] / "build" / "peers" / "prometheus" / "usr" / "bin"
HOW = "`tools/dev setup prometheus` unpacks it from Debian's package, and installs nothing"


def find(name: str) -> str | None:
    """The path of that program; None: it is not there."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{UNPACKED}")
