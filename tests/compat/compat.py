"""Runs the cases of cases.py with other versions of torch.

    compat.py [--musterd PATH] [--torch] [--only CASE]... [--record] [VERSION...]
    compat.py [--torch-source DIR] [--vllm-source DIR] [--times NUMBER] [VERSION...]

A version is one of the Python package index (2.4.1), `newest`, or `debian`: that of the system's
Python. The first time it is installed into an environment of its own in build/compat, with what it
asks for, some 5 GB. `--torch` runs the cases against torch's own server; `--record` prints what the
client says instead. Exits with 1 if a case has failed.

With the source of torch it runs torch's own tests of stores there, unchanged, on the Python package
of Muster, and with that of vLLM those of its groups and two of its users, TRL and
checkpoint-engine, 200 times each: others.py. Where there is a GPU, also those that need some:
gpu_tests.py. What these need is installed into build/compat, too.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import others

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
ENVIRONMENTS = ROOT / "build" / "compat"
SYSTEMS_PYTHON = "/usr/bin/python3"
NEEDED_BY_TORCH = ["expecttest", "hypothesis"]
NEEDED_BY_VLLM = [
    "transformers<5", "ray", "pytest", "cachetools", "cbor2", "cloudpickle", "psutil", "regex",
    "setproctitle", "pyyaml", "pyzmq", "msgspec", "py-cpuinfo", "blake3", "pybase64", "pydantic",
    "fastapi", "uvicorn", "httpx", "loguru",
]
# Of the version of vLLM that they were made for, 0.11; without what they would bring along.
USERS = ["trl==0.24.0", "checkpoint-engine==0.4.2", "accelerate"]
PACKAGE = ROOT / "build" / "dev" / "bindings" / "python"


def needs_of(version):
    """The newest torch comes with an update of the environment; an old one knows no NumPy 2."""
    if version == "newest":
        return ["--upgrade", "torch", "numpy"]
    is_old = tuple(map(int, version.split(".")[:2])) < (2, 3)
    return [f"torch=={version}", "numpy<2" if is_old else "numpy"]


def python_with(version):
    if version == "debian":
        return SYSTEMS_PYTHON
    environment = ENVIRONMENTS / version
    python = environment / "bin" / "python"
    is_whole = environment / "is_whole"
    if not is_whole.exists() or version == "newest":
        print(f"Installing torch {version} into {environment}", flush=True)
        subprocess.run([SYSTEMS_PYTHON, "-m", "venv", environment], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-cache-dir",
                        "--disable-pip-version-check", *needs_of(version)], check=True)
        is_whole.touch()
    return python


def installed(python, folder, packages, options=()):
    """A folder with packages of the package index."""
    is_whole = ENVIRONMENTS / folder / "is_whole"
    if not is_whole.exists():
        print(f"Installing {' '.join(packages)}", flush=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-cache-dir",
                        "--disable-pip-version-check", "--target", is_whole.parent, *options,
                        *packages],
                       check=True)
        is_whole.touch()
    return is_whole.parent


def sees_gpus(python):
    asked = subprocess.run([python, "-c", "import torch\nprint(torch.cuda.device_count())"],
                           capture_output=True, text=True, check=True)
    return int(asked.stdout) > 0


def run_others(python, version, options):
    """returns  the exit status"""
    are_well = []
    if options.torch_source:
        packages = installed(SYSTEMS_PYTHON, "for-torch", NEEDED_BY_TORCH)
        title = f"torch's test_store.py with torch {version}"
        are_well.append(others.torch_tests(python, options.torch_source, title,
                                           [PACKAGE, packages]))
    if options.vllm_source:
        packages = [PACKAGE, installed(python, "for-vllm", NEEDED_BY_VLLM),
                    installed(python, "for-users", USERS, ["--no-deps"])]
        for script in ("vllm_tests.py", "users_tests.py"):
            are_well.append(others.tests_of_groups(script, python, options.vllm_source,
                                                   options.times, packages))
        if sees_gpus(python):
            are_well.append(others.tests_of_groups("gpu_tests.py", python, options.vllm_source,
                                                   options.times, packages, sees_gpus=True))
        else:
            print("left out: gpu_worker, test_pynccl.py: torch sees no GPU", flush=True)
    return 0 if all(are_well) else 1


def record(python):
    """What a client without VALIDATE says depends on its version: only one that can append numbers
    its commands as PyTorch 2.1 does."""
    asked = subprocess.run([python, "-c", "import torch.distributed as dist\n"
                                          "print(hasattr(dist.TCPStore, 'append'))"],
                           capture_output=True, text=True, check=True)
    numbers = "second" if asked.stdout.strip() == "True" else "first"
    return subprocess.run([sys.executable, FOLDER / "record.py", python, numbers],
                          check=False).returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("versions", nargs="*", default=["newest"], metavar="VERSION")
    parser.add_argument("--musterd", default=ROOT / "build" / "dev" / "tools" / "musterd")
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--torch-source", metavar="DIR")
    parser.add_argument("--vllm-source", metavar="DIR")
    parser.add_argument("--times", type=int, default=200)
    options = parser.parse_args()
    of_server = ["--torch"] if options.torch else [options.musterd]
    of_cases = [part for case in options.only for part in ("--only", case)]
    failed = []
    for version in options.versions:
        try:
            python = python_with(version)
        except subprocess.CalledProcessError as error:
            print(f"torch {version} is not to be had: {error}", flush=True)
            failed.append(version)
            continue
        if options.torch_source or options.vllm_source:
            code = run_others(python, version, options)
        elif options.record:
            code = record(python)
        else:
            code = subprocess.run([python, FOLDER / "cases.py", *of_server, *of_cases],
                                  check=False).returncode
        if code != 0:
            failed.append(version)
    if failed:
        print(f"failed with: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
