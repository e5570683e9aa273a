"""Keeps what the documents say of the log true, both ways.

Every line that a server or musterd can log is a row of the table under "What each log line means"
in docs/operations.md, and every row is a line of the sources; so are the reasons behind "closed:"
and "refused:", and the lines of a store in docs/embedding.md. A text is compared as its fixed
parts: what the source puts between them is written in capitals in the document. Prints each
finding.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = "docs/operations.md"
HEADING = "## What each log line means"
SOURCES = ("src/core", "src/net", "src/server", "tools/musterd")
OF_STORES = "docs/embedding.md"
HEADING_OF_STORES = "## What a store logs"
SOURCES_OF_STORES = ("src/client", "src/embed")
REASON_SOURCES = ("src/core/sessions.cpp", "src/core/sessions_grants.cpp",
                  "src/core/sessions_places.cpp", "src/core/draining.cpp",
                  "src/core/past_sessions.cpp", "src/core/name_spaces.cpp",
                  "src/server/service.cpp", "src/server/hello_reader.cpp",
                  "src/server/engine_driver.cpp")

GAP = "\0"  # what is put in when the line is made
LOG_CALL = re.compile(r"\b(?:line|log_?|logger|write_log|add|text_of)\s*\(")
LEVEL = re.compile(r"LogLevel::(\w+)")
REASON_CALL = re.compile(r"\b(?:failure|lose|let_go|refusal|full|break_off)\s*\(|\bdetail =")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
PLACEHOLDER = re.compile(r"\b[A-Z][A-Z_]+\b")


def top_level_parts(text, separators):
    """Splits at separators outside of brackets and literals; stops where a bracket is closed."""
    parts, depth, begin, at = [], 0, 0, 0
    while at < len(text):
        if literal := LITERAL.match(text, at):
            at = literal.end()
            continue
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth < 0 or (text[at] == ";" and depth == 0):
            break
        if depth == 0 and text[at] in separators:
            parts.append(text[begin:at])
            begin = at + 1
        at += 1
    return [part.strip() for part in parts + [text[begin:at]]]


def texts_of(expression, before):
    """What a sum of literals and other things can become; `before` is the source in front of it."""
    texts = [""]
    for part in top_level_parts(expression, "+"):
        wrapped = re.fullmatch(r"std::string\((\".*\")\)|\((.*)\)", part, re.DOTALL)
        inner = (wrapped.group(1) or wrapped.group(2)) if wrapped else part
        if choice := re.fullmatch(r"[^\"]*\?(.*):(.*)", inner, re.DOTALL):
            ends = [one for side in choice.groups() for one in texts_of(side, before)]
        elif re.fullmatch(r'(?:"(?:[^"\\]|\\.)*"\s*)+', inner):
            ends = ["".join(LITERAL.findall(inner))]
        elif made := [*re.finditer(rf"(?:string|char\* const) {re.escape(inner)} =", before)]:
            ends = texts_of(before[made[-1].end():], before[:made[-1].start()])
        else:
            ends = [GAP]
        texts = [text + end for text in texts for end in ends]
    return {re.sub(f"{GAP}+", GAP, text) for text in texts}


def levels_of(expression, before):
    """The levels that an expression can be; a name stands for what it was made of last."""
    made = [*re.finditer(rf"LogLevel {re.escape(expression)} =\s*([^;]*);", before)]
    return LEVEL.findall(made[-1].group(1) if made else expression)


def source_files(places):
    for place in places:
        path = ROOT / place
        yield from [path] if path.is_file() else sorted(path.rglob("*.cpp"))


def logged(places):
    """Text -> the levels at which it is logged."""
    lines = {}
    for path in source_files(places):
        source = path.read_text(encoding="utf-8")
        for call in LOG_CALL.finditer(source):
            arguments = top_level_parts(source[call.end():], ",")
            if call.group().startswith("write_log"):
                del arguments[0]  # the logger
            levels = levels_of(arguments[0], source[:call.start()])
            if arguments[0] == "left_out_level":  # that of any of them
                levels = ["debug", "info", "warning"]
            if len(arguments) < 2 or not levels:
                continue
            for text in texts_of(arguments[1], source[:call.start()]):
                if text != GAP:
                    lines.setdefault(text, set()).update(levels)
    return lines


def reasons():
    """What can follow "closed:" and "refused:"."""
    found = set()
    for path in source_files(REASON_SOURCES):
        source = path.read_text(encoding="utf-8")
        for call in REASON_CALL.finditer(source):
            arguments = top_level_parts(source[call.end():], ",")
            is_first = call.group().endswith("=")
            place = 0 if is_first else 2 if call.group().startswith("full") else -1
            expression = arguments[min(place, len(arguments) - 1)]
            for text in texts_of(expression, source[:call.start()]):
                if len(text.strip(GAP).split()) > 1:
                    found.add(text.strip(GAP + " "))
    return found


def rows(document, heading):
    """The cells of the table under a heading of a document."""
    text = (ROOT / document).read_text(encoding="utf-8")
    section = re.split(r"^#+ ", text[text.index(heading) + len(heading):], flags=re.MULTILINE)[0]
    for line in section.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and "`" in line:
            yield cells


def fixed_parts(cell):
    return re.sub(f"{GAP}+", GAP, PLACEHOLDER.sub(GAP, cell.strip("`").replace("\\|", "|")))


def line_findings(document, heading, sources):
    in_sources = logged(sources)
    documented = {}
    for cells in rows(document, heading):
        documented.setdefault(fixed_parts(cells[1]), set()).update(cells[0].split(", "))
    for text in sorted(in_sources.keys() | documented.keys()):
        told = text.replace(GAP, "…")
        if text not in documented:
            yield f"{document}: say what this line means: {told}"
        elif text not in in_sources:
            yield f"{document}: no source logs: {told}"
        elif in_sources[text] != documented[text]:
            yield f"{document}: {told} is logged as {', '.join(sorted(in_sources[text]))}"


def reason_findings():
    why = reasons()
    explained = {fixed_parts(cells[0]).strip(GAP + " ")
                 for cells in rows(DOCUMENT, "### Why a connection was closed or refused")}
    for text in sorted(why - explained):
        yield f"{DOCUMENT}: say what this reason means: {text.replace(GAP, '…')}"
    for text in sorted(explained - why):
        yield f"{DOCUMENT}: no source gives the reason: {text.replace(GAP, '…')}"


def main():
    found = [*line_findings(DOCUMENT, HEADING, SOURCES), *reason_findings(),
             *line_findings(OF_STORES, HEADING_OF_STORES, SOURCES_OF_STORES)]
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
