"""Just enough of C++'s lexical structure for tidy.py."""

import re

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"
    |"(?:\\.|[^"\\\n])*"
    |'(?<![\da-fA-F].)(?:\\.|[^'\\\n])+'  # not what separates digits""",
    re.VERBOSE | re.DOTALL)

CONTAINER = re.compile(
    r"\b(namespace|class|struct|union|enum)\b|\bextern\s*\"|\bTEST_SUITE(_BEGIN)?\s*\(")


BRACE = re.compile(r"[{}]")
MARK = re.compile(r"[();{}]")


def blank(text):
    if "\n" not in text:
        return " " * len(text)
    return "\n".join(" " * len(line) for line in text.split("\n"))


def without_comments_and_strings(text):
    """The same lines and columns, with comments and the insides of strings blanked."""

    def replace(match):
        if match["comment"]:
            return blank(match[0])
        return match[0][0] + blank(match[0][1:-1]) + match[0][-1]

    return TOKEN.sub(replace, text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def without_directives(code):
    return re.sub(r"^[ ]*#(?:[^\n]*\\\n)*[^\n]*", lambda match: blank(match[0]), code,
                  flags=re.MULTILINE)


def closing(code, opening):
    """Where the brace at `opening` is closed."""
    depth = 0
    for match in BRACE.finditer(code, opening):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.start()
    return len(code) - 1


def is_container(head):
    # `struct stat status_of(int descriptor)` is a function: its head ends with its parameters.
    if not CONTAINER.search(head):
        return False
    return "TEST_SUITE" in head or not re.search(r"\)\s*(const|noexcept|override|\s)*$", head)


def functions(code):
    """First and last line of each function outside of all others; `code` is without comments."""
    code = without_directives(code)
    head_start = parentheses = 0
    next_mark = 0
    while mark := MARK.search(code, next_mark):
        position, letter = mark.start(), mark[0]
        next_mark = position + 1
        if letter in "()":
            parentheses += 1 if letter == "(" else -1
            continue
        head = code[head_start:position].strip() if letter == "{" else ""
        if letter == "{" and (parentheses > 0 or not is_container(head)):
            end = closing(code, position)
            next_mark = end + 1
            is_function = parentheses == 0 and "(" in head and not head.endswith("=")
            if is_function or (parentheses == 0 and head == ""):
                first = head_start + code[head_start:position].find(head)
                yield line_of(code, first if head else position), line_of(code, end)
            if parentheses == 0:
                head_start = next_mark
        elif parentheses == 0:
            head_start = position + 1
