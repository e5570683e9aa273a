"""Test: a wheel in a bare virtual environment, without network and with an empty environment.

wheel.py WHEEL OUT   makes the environment in OUT, which it removes first, and runs installed.py.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

PATIENCE_S = 300


def run(*command: str | Path, folder: Path | None = None) -> None:
    """With an empty environment, so that no variable says where a library is."""
    subprocess.run(command, env={}, cwd=folder, check=True, timeout=PATIENCE_S)


def findings(wheel: zipfile.ZipFile) -> list[str]:
    """What is in the wheel and should not be, or is not and should be."""
    names = [name for name in wheel.namelist() if not name.endswith("/")]
    (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
    data = info.replace(".dist-info", ".data")
    wanted = ["muster/__init__.py", "muster/py.typed", "muster/_core.pyi", "muster/THIRD_PARTY.md",
              "muster/libmuster-tls.so.0", "muster/libmuster-http.so.0",
              "muster/torch/rendezvous.py", f"{info}/LICENSE", f"{info}/entry_points.txt"]
    wanted += [f"{data}/scripts/{program}" for program in ("musterd", "musterctl", "musterrun")]
    found = [f"not in the wheel: {name}" for name in wanted if name not in names]
    found += [
        f"in the wheel, and not of the package: {name}"
        for name in names
        if name.split("/")[0] not in ("muster", "muster_groups.libs", info)
        and not name.startswith(f"{data}/scripts/")
    ]
    # What auditwheel has added comes with its licence.
    if any(name.startswith("muster_groups.libs/") for name in names):
        licences = [name for name in names if name.startswith(f"{info}/licenses/")]
        wanted_of = ["libssl3.txt", "pybind11-dev.txt", "Apache-2.0.txt"]
        found += [
            f"not in the wheel: licenses/{name}" for name in wanted_of
            if f"{info}/licenses/{name}" not in licences
        ]
    extensions = [name for name in names if name.endswith(".so")]
    if len(extensions) != 1:
        found.append(f"not one extension: {extensions}")
    return found


def main() -> int:
    wheel, out = Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute()
    with zipfile.ZipFile(wheel) as archive:
        if found := findings(archive):
            print(*found, sep="\n")
            return 1
    shutil.rmtree(out, ignore_errors=True)
    (out / "work").mkdir(parents=True)
    run(sys.executable, "-m", "venv", out / "venv")
    python = out / "venv/bin/python3"
    run(python, "-m", "pip", "--isolated", "--quiet", "--disable-pip-version-check", "install",
        "--no-index", wheel)
    here = Path(__file__).parent
    version = wheel.name.split("-")[1]
    run(python, "-I", here / "installed.py", version, folder=out / "work")
    return 0


if __name__ == "__main__":
    sys.exit(main())
