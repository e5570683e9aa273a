"""Test: the functions of muster/c.h are what muster-c exports, and the tests call all of them; its
numbers are those of C++.

functions_test.py INCLUDE MAP LIBRARY TEST.c...
"""

import re
import subprocess
import sys
from pathlib import Path

DECLARED = re.compile(r"^MUSTER_C_(?:API|CHECKED) [^;(]*?\b(muster_\w+)\(", re.MULTILINE)
EXPORTED = re.compile(r"^[0-9a-f]+ T (\w+)@@(\w+)$", re.MULTILINE)


# Enumeration or namespace of C++: header, how its numbers begin in C, and which it need not have.
NUMBERS = {
    "enum class ErrorCode": ("error.h", "MUSTER_", set()),
    "enum class Happened": ("error.h", "MUSTER_HAPPENED_", set()),
    "enum class Role": ("store_options.h", "MUSTER_ROLE_", set()),
    "enum class HostServer": ("process_group_options.h", "MUSTER_HOST_", set()),
    "namespace codec_id": ("codec.h", "MUSTER_CODEC_",
                           {"cereal", "nccl", "nccl_communicator", "gloo_communicator", "tensor",
                            "msgpack", "pickle"}),
}


def numbers_of_cpp(text, begin):
    """Names and numbers; an enumeration that gives no numbers counts from 0."""
    body = re.sub(r"//.*", "", text[text.index(begin):])
    body = body[body.index("{") + 1:body.index("}")]
    named = re.findall(r"(?:constexpr std::uint32_t )?\b([a-z]\w*)(?: = (\d+))?[,;\s]*$", body,
                       re.MULTILINE)
    return {name: int(number) if number else index
            for index, (name, number) in enumerate(named)}


def wrong_numbers(include, headers):
    ours = {name: int(number)
            for name, number in re.findall(r"\b(MUSTER_\w+) = (\d+)", headers)}
    for begin, (header, prefix, omitted) in NUMBERS.items():
        numbers = numbers_of_cpp(Path(include, "muster", header).read_text(encoding="utf-8"), begin)
        if len(numbers) < 3:
            yield f"{header}: where is {begin}?"
        for name, number in numbers.items():
            if name not in omitted and ours.get(prefix + name.upper()) != number:
                yield f"{prefix}{name.upper()}: not {number}, as in {header}"


def main():
    include, version_map, library, *tests = sys.argv[1:]
    headers = "".join(header.read_text(encoding="utf-8")
                      for header in sorted(Path(include, "muster/c").glob("*.h")))
    declared = set(DECLARED.findall(headers))
    mapped = set(re.findall(r"^    (muster_\w+);$", Path(version_map).read_text(encoding="utf-8"),
                            re.MULTILINE))
    shown = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library],
                           check=True, stdout=subprocess.PIPE, text=True).stdout
    exported = {name for name, version in EXPORTED.findall(shown)}
    others = [line for line in shown.splitlines()
              if not EXPORTED.fullmatch(line) and not line.endswith(" A MUSTER_C_1")]
    code = "".join(Path(test).read_text(encoding="utf-8") for test in tests)
    called = {name for name in declared if re.search(rf"\b{name}\(", code)}

    problems = [f"{name}: declared, and not in the map" for name in declared - mapped]
    problems += [f"{name}: in the map, and not declared" for name in mapped - declared]
    problems += [f"{name}: in the map, and not exported" for name in mapped - exported]
    problems += [f"{name}: no test calls it" for name in declared - called]
    problems += [f"exported and should not be: {line}" for line in others]
    problems += wrong_numbers(include, headers)
    if len(declared) < 100:
        problems.append("where are the functions?")
    print("\n".join(sorted(problems)) or f"{len(declared)} functions")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
