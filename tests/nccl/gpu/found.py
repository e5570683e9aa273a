"""What this machine has: GPUs, and a libnccl."""

import contextlib
import glob
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
TIMEOUT_S = 60
SONAME = "libnccl.so.2"
IN_PACKAGES = ("nvidia/nccl/lib", "torch/lib")
PLACES = ("/usr/lib/python3/dist-packages", "/usr/local/lib/python3*/dist-packages",
          "/usr/local/lib/python3*/site-packages", "/usr/lib/python3*/site-packages",
          "/opt/*/lib/python3*/site-packages", "/opt/*/envs/*/lib/python3*/site-packages",
          "~/.local/lib/python3*/site-packages", "~/*/lib/python3*/site-packages")


class NoGpu(Exception):
    """Nothing can be run here; why."""


@contextlib.contextmanager
def temporary_folder():
    with tempfile.TemporaryDirectory(prefix="muster-gpu-") as folder:
        yield Path(folder)


def library_path(programs, *further):
    """Where the dynamic linker looks: for what the programs need, then as this process is told."""
    return ":".join(filter(None, (f"{programs}/lib", *further,
                                  os.environ.get("LD_LIBRARY_PATH"))))


def lacking_glibc(needed):
    """Why programs that need this version do not run here; "" if they do."""
    has = platform.libc_ver()[1]
    if not has or list(map(int, has.split("."))) >= list(map(int, needed.split("."))):
        return ""
    return (f"the programs of this pack need glibc {needed}, this machine has {has}: pack them on "
            "an older system")


def paths_of_interpreters():
    """The module paths of this Python, then of others in PATH."""
    yield from sys.path
    for name in ("python3", "python"):
        path = shutil.which(name)
        if path is None or os.path.realpath(path) == os.path.realpath(sys.executable):
            continue
        said = subprocess.run([path, "-c", "import sys; print('\\n'.join(sys.path))"], text=True,
                              capture_output=True, check=False, timeout=TIMEOUT_S)
        yield from said.stdout.splitlines()


def package_folders():
    """Folders in which the packages of a Python environment may be, the nearest first."""
    yield from paths_of_interpreters()
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if os.environ.get(variable):
            yield from sorted(glob.glob(f"{os.environ[variable]}/lib*/python3*/site-packages"))
    for place in PLACES:
        yield from sorted(glob.glob(os.path.expanduser(place)))


def folders_of_package(name):
    """Where this Python would import it from, as an editable installation may say."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return []
    return list(spec.submodule_search_locations or ()) if spec else []


def libraries_of_python():
    """The files named libnccl.so.2 in Python's environments, each once."""
    folders = [f"{folder}/lib" for folder in folders_of_package("nvidia.nccl")]
    folders += [f"{packages or '.'}/{inside}" for packages in package_folders()
                for inside in IN_PACKAGES]
    if os.environ.get("CONDA_PREFIX"):
        folders.append(f"{os.environ['CONDA_PREFIX']}/lib")
    files = [os.path.realpath(f"{folder}/{SONAME}") for folder in folders
             if os.path.isfile(f"{folder}/{SONAME}")]
    return list(dict.fromkeys(files))


def candidates(named):
    """(path, where it comes from), in the order in which they are tried."""
    if named:
        yield named, "as it was named"
        return
    yield "", "found by the dynamic linker"
    for path in libraries_of_python():
        yield path, "found in a Python environment"


class Machine:
    """The devices, the driver and the NCCL that the programs use."""

    def __init__(self, seen, nccl, cuda, origin):
        self.devices = seen["devices"]
        self.cuda = seen["cuda"]
        self.nccl = seen["nccl"]
        self.nccl_file = seen["nccl_file"]
        self.nccl_path = nccl
        self.cuda_path = cuda
        self.origin = origin

    def as_json(self):
        return {"devices": [device["name"] for device in self.devices], "cuda": self.cuda,
                "nccl": self.nccl}

    def lines(self):
        for number, device in enumerate(self.devices):
            yield (f"device {number}: {device['name']}, {device['free_bytes'] / 2**30:.1f} of "
                   f"{device['bytes'] / 2**30:.1f} GiB free")
        yield f"CUDA driver: for CUDA {self.cuda // 1000}.{self.cuda % 1000 // 10}"
        yield f"NCCL {self.nccl}: {self.nccl_file}, {self.origin}"


def look(program, nccl, cuda):
    """What the program says of the devices and libraries, or why it says nothing."""
    environment = {**os.environ, "LD_LIBRARY_PATH": library_path(Path(program).parent)}
    try:
        said = subprocess.run([program, "devices", f"nccl={nccl}", f"cuda={cuda}"], text=True,
                              capture_output=True, check=False, timeout=TIMEOUT_S,
                              env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"{Path(program).name} does not run here: {error}"
    for line in said.stdout.splitlines():
        if line.startswith("{"):
            return json.loads(line), ""
        if line.startswith(("not_run|", "fails|")):
            return None, line.partition("|")[2]
    return None, (f"{Path(program).name} ended with {said.returncode}: "
                  f"{said.stderr.strip()[-300:]}")


def machine(program, nccl, cuda, devices_max):
    """The machine, with the first libnccl that can be used; NoGpu where there is none."""
    reasons = []
    for path, origin in candidates(nccl):
        seen, reason = look(program, path, cuda)
        if seen is not None:
            seen["devices"] = seen["devices"][:devices_max or None]
            return Machine(seen, path, cuda, origin)
        if reason not in reasons:
            reasons.append(reason)
        if "libnccl" not in reason:
            break  # another libnccl would not help
    if not nccl and "libnccl" in reasons[-1]:
        reasons.append(f"no {SONAME} that can be used is in a Python environment either; --nccl "
                       "names one")
    raise NoGpu("; ".join(reasons))
