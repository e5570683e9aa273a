"""Runs a file of torch's tests with the stand-in for TCPStore, for others.py.

    torch_tests.py FILE [SKIP...]   without the first tests, which have been run

Says each test's name before it runs, and then how it ended, as a line of JSON each. A test that
has made no store of Muster's is told apart: it shows nothing.
"""

import importlib.util
import json
import os
import sys
import traceback
import unittest
from pathlib import Path

import stand_in


def say(**told):
    os.write(output, json.dumps(told).encode() + b"\n")


class Result(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        self.made_before = stand_in.made_count
        self.outcome = ("passed", "")
        say(begins=name_of(test))

    def stopTest(self, test):
        super().stopTest(test)
        is_ours = stand_in.made_count > self.made_before or type(test).__name__ in with_stores
        outcome, why = self.outcome
        say(test=name_of(test), outcome=outcome, why=why, is_ours=is_ours)

    def addSkip(self, test, reason):
        self.outcome = ("skipped", reason)

    def addFailure(self, test, error):
        self.fail_with(error)

    addError = addFailure

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.fail_with(error)

    def fail_with(self, error):
        text = "".join(traceback.format_exception(*error))
        self.outcome = ("failed", text[-3000:])


def name_of(test):
    return ".".join(test.id().split(".")[-2:])


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def main():
    file, *done = sys.argv[1:]
    sys.argv = [file]
    stand_in.install()
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[Path(file).stem] = module
    spec.loader.exec_module(module)
    with_stores.update(name for name, one in vars(module).items() if isinstance(one, type) and any(
        isinstance(value, stand_in.TCPStore) for value in vars(one).values()))
    loaded = unittest.TestLoader().loadTestsFromModule(module)
    for test in tests_of(loaded):
        if name_of(test) not in done:
            unittest.TestSuite([test]).run(Result())
    say(end=True)
    os._exit(0)  # threads of torch may still be there


if __name__ == "__main__":
    with_stores = set()  # classes that have made stores when they were read
    output = os.dup(1)
    os.dup2(2, 1)  # what tests print is kept out of the way
    main()
