"""Test: each public header compiles alone, as C++17, and names no third party. All together compile
without exceptions, and as C++20 and C++23.

headers.py --compiler CXX --include DIR --plain HEADER... --opt-in HEADER... --linked HEADER...

Those that are `--linked` need nccl.h, and are compiled where there is one.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

THIRD_PARTY = re.compile(r"/(asio|boost|cereal|nlohmann|CLI|doctest|nccl|cuda)[^/]*[/.]")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wold-style-cast", "-Werror"]


NCCL = ["-isystem", "/usr/local/cuda/include"]  # beside the compiler's own folders


def has_nccl(compiler):
    return subprocess.run([compiler, "-x", "c++", *NCCL, "-fsyntax-only", "-"], text=True,
                          input="#include <nccl.h>\n", capture_output=True,
                          check=False).returncode == 0


def compiles(compiler, include, headers, *options):
    source = "".join(f'#include "muster/{header}"\n' for header in headers)
    return subprocess.run(
        [compiler, "-x", "c++", "-std=c++17", "-I", include, *options, "-"],
        input=source, text=True, capture_output=True, check=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("--plain", nargs="*", default=[])
    parser.add_argument("--opt-in", nargs="*", default=[])
    parser.add_argument("--linked", nargs="*", default=[])
    arguments = parser.parse_args()

    problems = 0
    listed = arguments.plain + arguments.opt_in + arguments.linked
    with_nccl = has_nccl(arguments.compiler)
    for header in listed:
        if header in arguments.linked and not with_nccl:
            print(f"{header}: not compiled, there is no nccl.h here")
            continue
        with tempfile.NamedTemporaryFile("r") as rule:
            result = compiles(arguments.compiler, arguments.include, [header, header],
                              *WARNINGS, *NCCL, "-fsyntax-only", "-MD", "-MF", rule.name)
            included = rule.read().split()
        if result.returncode != 0:
            problems += 1
            print(f"{header}: does not compile alone as C++17\n{result.stderr}")
            continue
        if header not in arguments.plain:
            continue
        for name in included:
            if THIRD_PARTY.search(name) and not name.startswith(f"{arguments.include}/"):
                problems += 1
                print(f"{header}: includes {name}; only the opt-in headers may")

    # "-std=c++2b": clang 14 does not know c++23 by that name.
    for options in (["-fno-exceptions"], ["-std=c++20", "-fno-exceptions"], ["-std=c++2b"]):
        result = compiles(arguments.compiler, arguments.include, arguments.plain, *WARNINGS,
                          *options, "-fsyntax-only")
        if result.returncode != 0:
            problems += 1
            print(f"all headers do not compile with {' '.join(options)}\n{result.stderr}")

    folder = pathlib.Path(arguments.include, "muster")
    for path in sorted(folder.rglob("*.h")):
        header = str(path.relative_to(folder))
        if header not in listed:
            problems += 1
            print(f"{header}: is in no list of include/muster/meson.build")
    print(f"{len(listed)} headers, {problems} problems")
    return 1 if problems or not listed else 0


if __name__ == "__main__":
    sys.exit(main())
