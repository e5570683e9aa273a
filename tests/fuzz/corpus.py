"""The corpora: corpus/TARGET.base64 holds the committed inputs of the fuzzer TARGET.

corpus.py TARGET FILE...   adds files as inputs, each under its file name

A line is one input in base64. A line with a name reads `NAME: BASE64`. The lines are sorted, and no
name or input occurs twice. An input without a name is called by its SHA-1, as libFuzzer does it.
"""

import argparse
import base64
import binascii
import hashlib
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAME = re.compile(r"[a-z0-9_]+")
LINE = re.compile(rf"(?:({NAME.pattern}): )?([A-Za-z0-9+/]+={{0,2}})")
LIBFUZZER_NAME = re.compile(r"(?:[a-z]+-)?[0-9a-f]{40}")  # such as crash-SHA1


class CorpusError(Exception):
    """A corpus that breaks the rules above; the text names the file and the line."""


def sha1(data):
    return hashlib.sha1(data).hexdigest()


def decode(text):
    """Returns the bytes, or None if `text` is not the one way to encode them."""
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
    return data if base64.b64encode(data).decode() == text else None


def parse(text, source):
    """Returns the inputs by their names; errors call the text `source`."""
    inputs = {}
    lines = {}  # input -> its line
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], 1):
        match = LINE.fullmatch(line)
        data = decode(match[2]) if match else None
        if data is None:
            raise CorpusError(f"{source}:{number}: expected BASE64 or NAME: BASE64")
        if data in lines:
            raise CorpusError(f"{source}:{number}: the same input as in line {lines[data]}")
        name = match[1] or sha1(data)
        if name in inputs:
            raise CorpusError(f"{source}:{number}: a second input with the name {name}")
        lines[data] = number
        inputs[name] = data
    return inputs


def text_of(inputs):
    lines = []
    for name, data in inputs.items():
        prefix = "" if name == sha1(data) else f"{name}: "
        lines.append(f"{prefix}{base64.b64encode(data).decode()}\n")
    return "".join(sorted(lines))


def path_of(target):
    return HERE / "corpus" / f"{target}.base64"


def read(path):
    """Returns the inputs by their names. A corpus without a file is empty."""
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8", errors="replace")
    return parse(text, os.path.relpath(path, HERE.parents[1]))


def write(path, inputs):
    path.write_text(text_of(inputs), encoding="utf-8")


def combined(inputs, others, source):
    """Returns both; errors call the others `source`."""
    names = {data: name for name, data in inputs.items()}
    for name, data in others.items():
        if name in inputs or data in names:
            raise CorpusError(f"{source}: {name} is in the corpus already, as "
                              f"{names.get(data, 'another input')}")
    return inputs | others


def write_files(inputs, folder):
    """Leaves one file per input in `folder`. A fuzzer may be reading the folder at that time."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in inputs.items():
        file = folder / name
        if not file.exists() or file.read_bytes() != data:
            file.write_bytes(data)
    for file in folder.iterdir():
        if file.name not in inputs:
            file.unlink(missing_ok=True)


def read_files(files):
    """Returns the inputs by the names of their files, but for names that libFuzzer has made up."""
    inputs = {}
    for file in files:
        data = file.read_bytes()
        name = sha1(data) if LIBFUZZER_NAME.fullmatch(file.name) else file.name
        if not data or not NAME.fullmatch(name):
            raise CorpusError(f"{file}: an input has a byte or more, and a name of a-z, 0-9 and _")
        inputs[name] = data
    return inputs


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target")
    parser.add_argument("files", type=Path, nargs="+")
    arguments = parser.parse_args()
    path = path_of(arguments.target)
    if not (HERE / f"{arguments.target}.cpp").exists():
        sys.exit(f"there is no fuzzer {arguments.target} in {os.path.relpath(HERE)}")
    try:
        write(path, combined(read(path), read_files(arguments.files), "cannot add"))
    except (CorpusError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
