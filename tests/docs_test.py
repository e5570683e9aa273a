"""Keeps the documents true: code blocks are files, and what they name is there.

A code block behind `<!-- FILE -->` is that file, to the letter; behind `<!-- from FILE -->` it is
some of its lines, one after the other, and may be indented less. A block of a language says one of
the two. A link without a scheme leads to a file of the project. Run from anywhere; prints each
finding as file:line: what.
"""

import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
BLOCK = re.compile(r"(?:<!-- (from )?(\S+) -->\n)?^```([a-z+]*)\n(.*?)^```\n",
                   re.DOTALL | re.MULTILINE)
INDENTATION_MAX = 16


def documents():
    yield from sorted(ROOT.glob("*.md"))
    for folder in ("docs", "tests", "examples"):
        yield from sorted((ROOT / folder).rglob("*.md"))


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def findings(path):
    text = path.read_text(encoding="utf-8")
    for link in LINK.finditer(text):
        if not (path.parent / link.group(1)).exists():
            yield f"{line_of(text, link.start())}: there is no {link.group(1)}"
    for is_part, name, language, code in BLOCK.findall(text):
        line = line_of(text, text.index(code))
        if not name:
            if language:
                yield f"{line}: name the file that this block of {language} is"
        elif not (ROOT / name).exists():
            yield f"{line}: there is no {name}"
        else:
            source = (ROOT / name).read_text(encoding="utf-8")
            if not (is_part_of(code, source) if is_part else code == source):
                yield f"{line}: differs from {name}"


def is_part_of(code, source):
    return any("\n" + textwrap.indent(code, " " * width) in "\n" + source
               for width in range(INDENTATION_MAX + 1))


def main():
    found = [f"{path.relative_to(ROOT)}:{finding}" for path in documents()
             for finding in findings(path)]
    print("\n".join(found))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    if not BLOCK.search(readme):
        found.append("README.md has no example")
    sys.exit(1 if found else 0)


main()
