"""Runs an example of PyTorch as docs/tcpstore.md says. Skips itself where Python has no torch.

run_tcpstore_job.py MUSTERRUN
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

PATIENCE_S = 100
SKIPPED = 77
ROOT = Path(__file__).resolve().parent.parent


def main():
    if importlib.util.find_spec("torch") is None:
        print(f"skipped: {sys.executable} has no torch")
        sys.exit(SKIPPED)
    text = (ROOT / "docs/tcpstore.md").read_text(encoding="utf-8")
    command = re.search(r"^ *musterrun (-n .*tcpstore_job\.py)$", text, re.MULTILINE)[1].split()
    words = [sys.executable if word == "python3" else word for word in command]
    ended = subprocess.run([Path(sys.argv[1]).resolve(), "--tee", "1", *words], cwd=ROOT, text=True,
                           env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"}, timeout=PATIENCE_S,
                           check=False, capture_output=True)
    count = int(words[words.index("-n") + 1])
    expected = [f"rank {rank} of {count} has {sum(range(1, count + 1))}" for rank in range(count)]
    lines = sorted(line.split("]: ")[1] for line in ended.stdout.splitlines() if "]: " in line)
    if ended.returncode != 0 or lines != expected:
        sys.exit(f"it ended with {ended.returncode}: {ended.stdout}{ended.stderr}")


main()
