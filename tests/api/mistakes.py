"""Test: what is easily written wrong does not compile, and the compiler says what to write instead.

mistakes.py --compiler CXX --include DIR [--only NAME]

Each case of mistake_cases.py has a wrong and a right form. The wrong one must give one error, which
has the sentence of the case. The right ones must compile. All of it is C++17.
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys

import mistake_cases

ERROR = re.compile(r"^[^\s].*\berror:", re.MULTILINE)
OPTIONS = ["-x", "c++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra"]


def compiled(arguments, source, options=()):
    return subprocess.run([arguments.compiler, *OPTIONS, *options, "-I", arguments.include, "-"],
                          input=source, text=True, capture_output=True, check=False)


def text_of(case, form):
    """A file with one function, which has the form in it."""
    includes = "".join(f"#include <{header}>\n" for header in case.headers)
    return (f"{includes}{mistake_cases.PRELUDE}{case.types}\n"
            f"void form({mistake_cases.PARAMETERS}) {{\n{form}\n}}\n")


def problem_of_wrong(arguments, case):
    result = compiled(arguments, text_of(case, case.wrong), case.options)
    if result.returncode == 0:
        return "the wrong form compiles"
    errors = [line for line in result.stderr.splitlines() if ERROR.match(line)]
    if case.sentence not in result.stderr:
        return f"the error does not say '{case.sentence}'\n{result.stderr}"
    if len(errors) != 1:
        return f"{len(errors)} errors where one is due\n{result.stderr}"
    return None


def problem_of_right(arguments, case):
    result = compiled(arguments, text_of(case, case.right))
    return None if result.returncode == 0 else f"the right form:\n{result.stderr}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()

    cases = [case for case in mistake_cases.CASES if arguments.only in case.name]
    work = [(check, case) for case in cases for check in (problem_of_wrong, problem_of_right)]
    problems = 0
    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        found = pool.map(lambda each: each[0](arguments, each[1]), work)
        for (_, case), problem in zip(work, found):
            if problem:
                problems += 1
                print(f"{case.name}: {problem}")
    print(f"{len(cases)} mistakes, {problems} problems")
    return 1 if problems or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
