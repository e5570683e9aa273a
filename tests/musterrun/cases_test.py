"""Keeps the numbers of README.md true: each has a test, and each test with a number is there.

Prints findings; run from anywhere.
"""

import re
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
FOLDERS = ("musterrun", "e2e/musterrun", "runtime", "script/launch", "script/runtime")
LENGTHS = {"L": 29, "C": 7, "T": 26, "S": 10}
ROW = re.compile(r"^\| ([LCTS]\d+) \| [^|]+ \| [^|]+ \|$", re.MULTILINE)
IN_TEXT = re.compile(r'\bdef test_([lcts]\d+)_|^ *(?://|#) ([LCTS]\d+)\b|'
                     r'^TEST_CASE\("([LCTS]\d+): ', re.MULTILINE)
IN_NAME = re.compile(r"_([lcts]\d+)(?=[_.])")


def number_of(text):
    return text[0].upper() + str(int(text[1:]))


def numbers_of_tests():
    for folder in FOLDERS:
        for path in sorted((TESTS / folder).iterdir()):
            if path.suffix == ".txt":
                yield from map(number_of, IN_NAME.findall(path.name))
            elif path.suffix in (".py", ".cpp"):
                for found in IN_TEXT.findall(path.read_text(encoding="utf-8")):
                    yield number_of("".join(found))


def findings():
    text = (TESTS / "musterrun/README.md").read_text(encoding="utf-8")
    with_test, without_test = map(ROW.findall, text.split("## Without a test\n"))
    tested = set(numbers_of_tests())
    yield from (f"there is no test of {each}" for each in with_test if each not in tested)
    yield from (f"{each} has a test, and is told to have none" for each in without_test
                if each in tested)
    every = [f"{letter}{number}" for letter, length in LENGTHS.items()
             for number in range(1, length + 1)]
    yield from (f"say once what {each} is" for each in every
                if (with_test + without_test).count(each) != 1)
    yield from (f"say what {each} is, of which there is a test" for each in tested - set(every))


def main():
    found = sorted(findings())
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
