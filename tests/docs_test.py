"""Keeps the documents true: code blocks are files, and what they name is there.

A code block behind `<!-- FILE -->` is that file, to the letter; behind `<!-- from FILE -->` it is
some of its lines, one after the other, and may be indented less. A block of a language says one of
the two. A link without a scheme leads to a file of the project, and so does a path to a test. Each
defect that semantics.md counts is a test of its name. errors.md has each error code once, names
only fields that there are, and prints messages as the golden test does. The glossary has each term
once, and names only types that there are. runtime.md has a row for each function of the
neighbouring APIs, whose symbols are declared and whose tests are there. Run from anywhere; prints
each finding as file:line: what.
"""

import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
BLOCK = re.compile(r"(?:<!-- (from )?(\S+) -->\n)?^```([a-z+]*)\n(.*?)^```\n",
                   re.DOTALL | re.MULTILINE)
TEST_PATH = re.compile(r"\btests/[\w/]+\.(?:cpp|py|h)\b")
DEFECT_ROW = re.compile(r"^\| (\d+) \|", re.MULTILINE)
DEFECT_TEST = re.compile(r'TEST_CASE\("defect (\d+): ')
DEFECTS_COUNT = 12
ERROR_CODE = re.compile(r"^  (\w+) = \d+, +///<", re.MULTILINE)
ERROR_ROW = re.compile(r"^\| `(\w+)` \| [^|]* \|([^|]*\|[^|]*)\| [^|]*\|$", re.MULTILINE)
RUNTIME_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \|[^|]*\| ?([^|]*?) ?\|$", re.MULTILINE)
TERM_ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \| ([^|]*)\|$", re.MULTILINE)
DECLARED = re.compile(r"\b(?:class|struct|enum class|using|constexpr auto) (?:MUSTER_API )?(\w+)\b")
COMMENT = re.compile(r"//.*")
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
    for path_of_test in TEST_PATH.finditer(text):
        if not (ROOT / path_of_test.group()).exists():
            yield f"{line_of(text, path_of_test.start())}: there is no {path_of_test.group()}"
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


def defects():
    """The numbers of the known defects, as the document counts them and as the tests do."""
    text = (ROOT / "docs/semantics.md").read_text(encoding="utf-8")
    section = text[text.index("## Known defects"):]
    told = DEFECT_ROW.findall(section[:section.index("## Limits")])
    tested = {number for path in (ROOT / "tests").rglob("*.cpp")
              for number in DEFECT_TEST.findall(path.read_text(encoding="utf-8"))}
    for number in map(str, range(1, DEFECTS_COUNT + 1)):
        if told.count(number) != 1:
            yield f"docs/semantics.md:1: say once what defect {number} was"
        if number not in tested:
            yield f"docs/semantics.md:1: there is no test named defect {number}"


def errors():
    text = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    header = (ROOT / "include/muster/error.h").read_text(encoding="utf-8")
    codes = ERROR_CODE.findall(header[:header.index("enum class LossCause")])
    if [row[0] for row in ERROR_ROW.findall(text)] != codes:
        yield "docs/errors.md:1: the codes are not those of error.h, in their order"
    fields = set(re.findall(r" (\w+)(?: = .*|{.*})?;", header[header.index("struct RankReport"):]))
    for code, cells in ERROR_ROW.findall(text):
        for field in set(re.findall(r"`(\w+)`", cells)) - fields:
            yield f"docs/errors.md:1: {code}: an Error has no {field}"
    golden = (ROOT / "tests/unit/base/error_message_test.cpp").read_text(encoding="utf-8")
    golden = re.sub(r'"\s*"', "", golden).replace('\\"', '"')
    for printed in re.findall(r"^    (\w+: .*\n(?:      .*\n)*)", text, re.MULTILINE):
        line = re.sub(r"\n *", " ", printed.strip())
        if f'"{line}"' not in golden:
            yield f"docs/errors.md:1: no golden message: {line}"


def is_declared(symbol, text):
    """Whether code without comments names `A::b` within the braces of A."""
    *scopes, name = symbol.split("::")
    bodies = [text]
    for scope in scopes:
        bodies = [inner for body in bodies for inner in bodies_of(scope, body)]
    return any(re.search(rf"\b{name}\b", body) for body in bodies)


def bodies_of(scope, text):
    for opened in re.finditer(rf"\b(?:class|struct|namespace) (?:MUSTER_API )?{scope}\b[^;{{}}]*{{",
                              text):
        depth, end = 1, opened.end()
        while depth > 0 and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield text[opened.end():end]


def runtime():
    """What docs/runtime.md names in place of the neighbouring APIs is declared, and its tests are
    there."""
    text = (ROOT / "docs/runtime.md").read_text(encoding="utf-8")
    section = text[text.index("## In place of"):]
    headers = "\n".join(COMMENT.sub("", path.read_text(encoding="utf-8"))
                        for path in (ROOT / "include/muster").rglob("*.h"))
    tests = "\n".join(path.read_text(encoding="utf-8")
                      for path in (ROOT / "tests/runtime").rglob("*.cpp"))
    scripts = {path.stem for path in (ROOT / "tests/script/runtime").glob("*.txt")}
    rows = RUNTIME_ROW.findall(section)
    for theirs, ours, tested in rows[1:]:
        if theirs in ("theirs", "---"):
            continue
        is_ours = not ours.startswith("not ours: ")
        for symbol in re.findall(r"`([\w:]+)`", ours):
            if not is_declared(symbol, headers):
                yield f"docs/runtime.md:1: {theirs}: no header declares {symbol}"
        names = re.findall(r"`([^`]+)`", tested)
        if is_ours and (not names or "`" not in ours):
            yield f"docs/runtime.md:1: {theirs}: name what is ours, and a test"
        for name in names:
            if name not in scripts and f'TEST_CASE("{name}' not in tests:
                yield f"docs/runtime.md:1: {theirs}: there is no test {name}"
    if len(rows) < 40:
        yield "docs/runtime.md:1: where are the rows?"


def glossary():
    """Each term stands once, and what it is called in the code is declared there."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text[text.index("## Glossary"):]
    rows = TERM_ROW.findall(section[:section.index("\n## ", 1)])
    declared = {name for folder in ("src", "include") for path in (ROOT / folder).rglob("*.h")
                for name in DECLARED.findall(path.read_text(encoding="utf-8"))}
    terms = [term for cell, _ in rows[1:] for term in cell.split(", ")]
    for term in {term for term in terms if terms.count(term) > 1}:
        yield f"ARCHITECTURE.md:1: the glossary has {term} twice"
    for cell, names in rows:
        for name in re.findall(r"`(?:\w+::)*(\w+)`", names):
            if name not in declared:
                yield f"ARCHITECTURE.md:1: {cell}: there is no {name} in the code"


def main():
    found = [f"{path.relative_to(ROOT)}:{finding}" for path in documents()
             for finding in findings(path)] + [*defects(), *errors(), *glossary(), *runtime()]
    print("\n".join(found))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    if not BLOCK.search(readme):
        found.append("README.md has no example")
    sys.exit(1 if found else 0)


main()
