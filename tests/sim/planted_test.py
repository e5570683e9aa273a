"""Test: planted bugs are in the programs that look for them and in nothing that is installed.

planted_test.py --with FILE... --without FILE...
"""

import sys
from pathlib import Path

MARK = b"MUSTER_PLANTED_BUGS"  # base/planted.h puts it into whatever is compiled with it


def main(arguments):
    if "--with" not in arguments or "--without" not in arguments:
        print(__doc__)
        return 2
    failures = 0
    is_expected = None
    for argument in arguments:
        if argument in ("--with", "--without"):
            is_expected = argument == "--with"
            continue
        if (MARK in Path(argument).read_bytes()) != is_expected:
            failures += 1
            print(f"{argument}: planted bugs {'are missing' if is_expected else 'are in it'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
