"""Names the state of the files: the commit, and a hash of them if some are not as committed."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def git(*arguments, **environment):
    run = subprocess.run(["git", *arguments], cwd=ROOT, check=False, capture_output=True, text=True,
                         env={**os.environ, **environment})
    if run.returncode != 0:
        sys.exit(f"git {arguments[0]} failed, but results are kept by commit: {run.stderr.strip()}")
    return run.stdout.strip()


def state_of_tree():
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": f"{folder}/index"}
        git("read-tree", "HEAD", **index)
        git("add", "--all", **index)
        tree = git("write-tree", **index)
    commit = git("rev-parse", "HEAD")
    is_committed = tree == git("rev-parse", "HEAD^{tree}")
    return commit[:12] + ("" if is_committed else f"+{tree[:8]}")


if __name__ == "__main__":
    print(state_of_tree())
