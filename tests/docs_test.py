"""Keeps the documents true: code blocks are files, and what they name is there.

A code block behind `<!-- FILE -->` is that file, to the letter. A link without a scheme leads to
a file of the project. Run from anywhere; prints each finding as file:line: what.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
BLOCK = re.compile(r"<!-- (\S+) -->\n```[a-z+]*\n(.*?)```\n", re.DOTALL)


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
    for block in BLOCK.finditer(text):
        source = ROOT / block.group(1)
        if not source.exists() or source.read_text(encoding="utf-8") != block.group(2):
            yield f"{line_of(text, block.start())}: differs from {block.group(1)}"


def main():
    found = [f"{path.relative_to(ROOT)}:{finding}" for path in documents()
             for finding in findings(path)]
    print("\n".join(found))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    if not BLOCK.search(readme):
        found.append("README.md has no example")
    sys.exit(1 if found else 0)


main()
