"""Finds the classes of a C++ text and counts what each declares. For tidy.py."""

import re

import tidy_text

HEAD = re.compile(r"\b(class|struct|union)\s+(?:\[\[[^\]]*\]\]\s*)?(?:alignas\s*\([^)]*\)\s*)?"
                  r"([A-Za-z_][\w:]*)\s*(?:final\s*)?(?::[^;{}()]*(?:<[^;{}]*>[^;{}()]*)*)?\{")
# Neither data nor a function: types, friends, and what only forbids or takes the default.
NOT_A_MEMBER = re.compile(
    r"(public|private|protected)\s*:|^\s*(using|typedef|friend|static_assert|template\s*<[^;{]*>\s*"
    r"(using|friend)|enum|class|struct|union)\b|=\s*(default|delete)\s*$")
ACCESS = re.compile(r"\b(public|private|protected)\s*:(?!:)")


def declarations(body):
    """The declarations of a class's body, without what stands in their braces."""
    text, place = "", 0
    while place < len(body):
        character = body[place]
        if character == "{":
            end = tidy_text.closing(body, place)
            rest = body[end + 1:].lstrip()
            is_function = text.rstrip().endswith((")", "const", "noexcept", "override", "final"))
            is_type = NOT_A_MEMBER.search(text) is not None
            place = end + 1
            # A function's body ends its declaration; an initializer goes on to its semicolon.
            if (is_function or re.search(r"\)\s*:[^:]|->", text)) and not is_type:
                yield text
                text = ""
                if rest.startswith(";"):
                    place = body.index(";", place) + 1
            continue
        if character == ";":
            yield text
            text = ""
        else:
            text += character
        place += 1


def objects(code):
    """(name, line, count of members) of each class in code without comments and strings."""
    for match in HEAD.finditer(code):
        if re.search(r"(enum\s+|<[^>]*)$", code[max(0, match.start() - 40):match.start()]):
            continue
        begin = match.end() - 1
        body = code[begin + 1:tidy_text.closing(code, begin)]
        count = 0
        for declaration in declarations(body):
            declaration = ACCESS.sub("", declaration).strip()
            if declaration and not NOT_A_MEMBER.search(declaration):
                count += 1
        yield match[2], tidy_text.line_of(code, match.start()), count
