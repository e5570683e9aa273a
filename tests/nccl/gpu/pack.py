"""Packs what `tools/dev gpu` needs on a machine with a GPU, where nothing can be built.

pack.py BUILD FOLDER [--state TEXT] [--bytes-max N] [--keep-symbols]

Into FOLDER go the programs of a build, stripped, the libraries that they need beside glibc, the
Python files, and a manifest with `--state`, what was built. Fails if it is more than 64 MiB.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = ("tests/nccl/nccl_gpu", "tests/nccl/nccl_acceptance", "bench/communicators")
SCRIPTS = ("gpu.py", "found.py", "plan.py", "report.py", "run.py")
BYTES_MAX = 64 << 20
OF_GLIBC = re.compile(r"(lib(c|m|dl|rt|pthread|resolv)\.so|ld-linux|linux-vdso)")
NEEDED = re.compile(r"^\s*(\S+) => (\S+)", re.MULTILINE)
GLIBC = re.compile(r"\bGLIBC_(\d+(?:\.\d+)+)")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def libraries_of(program):
    """name -> path of what it needs beside glibc."""
    needed = dict(NEEDED.findall(output_of("ldd", program)))
    missing = [name for name, path in needed.items() if path == "not"]
    if missing:
        sys.exit(f"pack.py: {program} needs {', '.join(missing)}, which is not here")
    return {name: path for name, path in needed.items() if not OF_GLIBC.match(name)}


def glibc_of(files):
    """The version of glibc that they need."""
    versions = {tuple(map(int, version.split("."))) for file in files
                for version in GLIBC.findall(output_of("objdump", "-T", file))}
    return ".".join(map(str, max(versions, default=(0,))))


def copy(build, folder, keeps_symbols):
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / "lib", ignore_errors=True)
    libraries = {}
    programs = []
    for program in (build / name for name in PROGRAMS):
        if not program.exists():
            sys.exit(f"pack.py: there is no {program}; build it first")
        libraries.update(libraries_of(program))
        programs.append(folder / program.name)
        programs[-1].unlink(missing_ok=True)  # it may run
        shutil.copy2(program, programs[-1])
        if not keeps_symbols:
            subprocess.run(["strip", programs[-1]], check=True)
    for name, path in libraries.items():
        (folder / "lib").mkdir(exist_ok=True)
        programs.append(folder / "lib" / name)
        shutil.copy2(path, programs[-1])
    for name in SCRIPTS:
        shutil.copy2(HERE / name, folder / name)
    return programs


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--state", default="unknown")
    parser.add_argument("--bytes-max", type=int, default=BYTES_MAX)
    parser.add_argument("--keep-symbols", action="store_true")
    options = parser.parse_args()
    files = copy(options.build, options.folder, options.keep_symbols)
    files += [options.folder / name for name in SCRIPTS]
    size = sum(file.stat().st_size for file in files)
    manifest = options.folder / "manifest.json"
    manifest.unlink(missing_ok=True)
    told = f"{size / 2**20:.1f} MiB in {len(files)} files"
    if size > options.bytes_max:
        sys.exit(f"pack.py: {options.folder} has {told}; at most {options.bytes_max / 2**20:.1f} "
                 "MiB can be carried")
    binaries = [file for file in files if file.suffix != ".py"]
    manifest.write_text(json.dumps({"state": options.state, "glibc": glibc_of(binaries),
                                    "bytes": size}, indent=1) + "\n", encoding="utf-8")
    print(f"{options.folder}: {told}, of {options.state}")


if __name__ == "__main__":
    main()
