"""Finds the classes of a C++ text and counts the data members of each. For tidy.py."""

import re

import tidy_text

# Attributes and macros, such as MUSTER_API, between `class` and its name.
MARK = (r"(?:(?:\[\[[^\]]*\]\]|alignas\s*\([^)]*\)|__attribute__\s*\(\([^;{}]*?\)\)"
        r"|[A-Z][A-Z0-9_]+(?=\s+\w))\s*)*")
HEAD = re.compile(rf"\b(class|struct|union)\b\s*{MARK}([A-Za-z_][\w:]*)?\s*(?:<[^;{{}}()]*>\s*)?"
                  r"(?:final\s*)?(?::[^;{}()]*(?:<[^;{}]*>[^;{}()]*)*)?\{")
ACCESS = re.compile(r"\b(public|private|protected)\s*:(?!:)")
TYPE = re.compile(r"\s*(template\s*<.*>\s*)?(enum|class|struct|union)\b", re.DOTALL)
# A type that is only declared or defined: no object of it follows.
ONLY_TYPE = re.compile(
    r"(template\s*<.*>\s*)?(enum(\s+(class|struct))?|class|struct|union)\b\s*"
    rf"{MARK}[\w:]*\s*(<[^;]*>\s*)?(final\s*)?(:[^{{}}=]*)?({{}})?", re.DOTALL)
UNNAMED = re.compile(rf"\b(struct|union)\s*{MARK}$")
INITIALIZERS = re.compile(r"\)\s*:(?!:)")  # of a constructor
BODY_FOLLOWS = re.compile(
    r"(\)|&|\b(const|noexcept|override|final))\s*$|\)[^()=]*(->|\brequires\b)")
# What takes no room in an object.
NOT_DATA = re.compile(r"(template\s*<.*>\s*)?(using|typedef|friend|static_assert"
                      r"|((inline|const|constexpr)\s+)*static)\b|.*\boperator\b", re.DOTALL)
ARRAY = re.compile(r"\[[^\[\]]*\]")
POINTER_TO_ARRAY = re.compile(r"\(\s*[*&]+\s*(?:const\s*)?(\w+)\s*\)(?!\s*\()")
MACRO = re.compile(r"(?<=\w)\s+[A-Z]+_[A-Z_]+\s*\([^()]*\)")
POINTER_TO_FUNCTION = re.compile(r"\(\s*(?:\w+::)*\*\s*(?:const\s*)?(\w*)[^()]*\)\s*\([^()]*\)")
SPECIFIER = re.compile(
    r"\[\[[^\]]*\]\]|\b(alignas|decltype|explicit)\s*\(([^()]|\([^()]*\))*\)")
PARENTHESES = re.compile(r"\([^()]*\)")
ARGUMENTS = re.compile(r"<[^<>]*>")


def is_body(head):
    """Whether the brace behind `head` begins the body of a function."""
    head = ACCESS.sub("", head)
    if TYPE.match(head) and "(" not in head:
        return False
    if INITIALIZERS.search(head):
        return head.rstrip().endswith((")", "}"))
    return BODY_FOLLOWS.search(head) is not None


def declarations(body):
    """The declarations of a class's body, each with {} for what stands in its braces."""
    text, place = "", 0
    for mark in re.compile(r"[{;]").finditer(body):
        if mark.start() < place:
            continue
        head = text + body[place:mark.start()]
        place = mark.end()
        if mark[0] == "{":
            place = tidy_text.closing(body, mark.start()) + 1
            if UNNAMED.search(head) and body[place:].lstrip().startswith(";"):
                yield from declarations(body[mark.end():place - 1])
            text = head + "{}"
        if mark[0] == ";" or is_body(head):
            yield head
            text = ""


def without(pattern, text, replacement=""):
    """`text` without what matches, the innermost first."""
    count = 1
    while count > 0:
        text, count = pattern.subn(replacement, text)
    return text


def is_padding(text):
    """Whether it is a bit field without a name."""
    words = text.partition(":")[0].split() if re.search(r"[^:]:[^:]", text) else []
    return bool(words) and "=" not in text and (
        (len(words) == 1 and "::" not in text) or
        set(words) <= {"const", "unsigned", "signed", "char", "short", "int", "long"})


def data_members(declaration):
    """How many data members it declares."""
    text = ACCESS.sub("", declaration).strip()
    if not text or NOT_DATA.match(text) or ONLY_TYPE.fullmatch(text):
        return 0
    text = SPECIFIER.sub("", text).strip()
    if is_padding(text):
        return 0
    text = POINTER_TO_FUNCTION.sub(r"\1", MACRO.sub("", text))
    text = without(ARRAY, POINTER_TO_ARRAY.sub(r"\1", text))
    text = without(ARGUMENTS, without(PARENTHESES, text, "@"))
    names = [part.partition("=")[0] for part in text.split(",")]
    return 0 if "@" in names[0] else len(names)


def objects(code):
    """(name, line, count of data members) of each class in code without comments and strings."""
    for match in HEAD.finditer(code):
        if re.search(r"(enum\s+|<[^>]*)$", code[max(0, match.start() - 40):match.start()]):
            continue
        begin = match.end() - 1
        body = code[begin + 1:tidy_text.closing(code, begin)]
        count = sum(data_members(declaration) for declaration in declarations(body))
        yield match[2] or "unnamed", tidy_text.line_of(code, match.start()), count
