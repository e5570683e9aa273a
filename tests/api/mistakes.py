"""Test: what is easily written wrong does not compile, and the compiler says what to write instead.

mistakes.py --compiler CXX --include DIR [--only NAME]

Each case of mistake_cases.py has a wrong and a right form. The wrong one must give one error, which
has the sentence of the case. The right ones must compile. All of it is C++17. Headers that several
cases include are compiled once for them, which takes a fraction of the time.
"""

import argparse
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import mistake_cases

ERROR = re.compile(r"^[^\s].*\berror:", re.MULTILINE)
OPTIONS = ["-std=c++17", "-Wall", "-Wextra"]


def compiled(arguments, source, options=()):
    return subprocess.run(
        [arguments.compiler, "-x", "c++", *OPTIONS, "-fsyntax-only", *options,
         "-I", arguments.include, "-"],
        input=source, text=True, capture_output=True, check=False)


def includes_of(headers):
    return "".join(f"#include <{header}>\n" for header in headers)


def precompiled(arguments, cases, folder):
    """For headers that several cases begin with, the options that take their place."""
    counts = collections.Counter(case.headers for case in cases if not case.options)
    options = {}
    for number, (headers, count) in enumerate(counts.items()):
        if count < 3:
            continue
        header = Path(folder, f"headers_{number}.h")
        header.write_text(includes_of(headers))
        subprocess.run(
            [arguments.compiler, "-x", "c++-header", *OPTIONS, "-I", arguments.include, header,
             "-o", f"{header}.gch"], check=True)
        options[headers] = ("-include", str(header))
    return options


def text_of(case, is_precompiled):
    """A file with one function, which has the wrong form in it."""
    includes = "" if is_precompiled else includes_of(case.headers)
    return (f"{includes}{mistake_cases.PRELUDE}{case.types}\n{case.outside.format('')}\n"
            f"void form({mistake_cases.PARAMETERS}) {{\n{case.wrong}\n}}\n")


def problem_of_wrong(arguments, case, made):
    given = () if case.options else made.get(case.headers, ())
    result = compiled(arguments, text_of(case, bool(given)), (*case.options, *given))
    if result.returncode == 0:
        return "the wrong form compiles"
    errors = [line for line in result.stderr.splitlines() if ERROR.match(line)]
    if case.sentence not in result.stderr:
        return f"the error does not say '{case.sentence}'\n{result.stderr}"
    if len(errors) != 1:
        return f"{len(errors)} errors where one is due\n{result.stderr}"
    return None


def problem_of_right(arguments, cases):
    """All right forms together, each in a namespace of its own."""
    headers = {header: None for case in cases for header in case.right_headers or case.headers}
    text = includes_of((*mistake_cases.LIST_HEADERS, *headers))
    text += mistake_cases.PRELUDE
    for number, case in enumerate(cases):
        name = f"right_{number}"
        text += (f"// {case.name}\nnamespace {name} {{\n{case.right_types or case.types}\n}}\n"
                 f"{case.outside.format(name)}\nnamespace {name} {{\n"
                 f"void form({mistake_cases.PARAMETERS}) {{\n{case.right}\n}}\n}}\n")
    for number, each in enumerate(mistake_cases.LISTS):
        text += f"void list_{number}({mistake_cases.PARAMETERS}) {{\n{each}\n}}\n"
    result = compiled(arguments, text)
    return None if result.returncode == 0 else result.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()

    cases = [case for case in mistake_cases.CASES if arguments.only in case.name]
    problems = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool,
    ):
        right = pool.submit(problem_of_right, arguments, cases)
        made = precompiled(arguments, cases, folder)
        found = pool.map(lambda case: problem_of_wrong(arguments, case, made), cases)
        for case, problem in zip(cases, found):
            if problem:
                problems += 1
                print(f"{case.name}: {problem}")
    if right.result():
        problems += 1
        print(f"the right forms: {right.result()}")
    print(f"{len(cases)} mistakes, {problems} problems")
    return 1 if problems or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
