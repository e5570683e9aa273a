"""What was seen of a store in a case, and the words for it."""

import re
from dataclasses import dataclass

STORE_TIMEOUT_S = 20.0  # of a store whose waits have no timeout of their own
BRIEF_S = 2.0  # a caller's own timeout
MIB = 1 << 20


@dataclass(frozen=True)
class Observation:
    """A cell of the table."""

    text: str
    seconds: float | None = None  # the time that the text tells of, where it is one

    def __str__(self):
        return self.text


def spelled(seconds):
    if seconds < 0.0995:
        return f"{seconds * 1000:.1f} ms"
    return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"


def bounded(seconds, bound_s=STORE_TIMEOUT_S):
    """A time, or that a wait lasted as long as its store lets it."""
    if seconds >= 2 * bound_s - 0.5:
        return f"≥ {2 * bound_s:.0f} s (twice its time-out)"
    if seconds >= bound_s - 0.5:
        return f"≥ {bound_s:.0f} s (its time-out)"
    return spelled(seconds)


def in_words(things):
    """`a`, `a and b`, `a, b and c`."""
    things = [str(thing) for thing in things]
    return " and ".join([", ".join(things[:-1]), things[-1]] if len(things) > 1 else things)


def named_ranks(result):
    """The ranks that an error names, in its fields or else in its text."""
    if result.get("ranges") is not None:
        return [rank for first, last in result["ranges"] for rank in range(first, last + 1)]
    return [int(number) for number in re.findall(r"\brank (\d+)", result.get("message", ""))]


def code_of(result):
    """`ok`, the code of an error, or the text of one that has no code."""
    if result["code"] == "gone":
        return f"**its process {result['message']}**"
    if result["code"] != "error":
        return f"`{result['code']}`"
    lines = result["message"].strip().splitlines() or ["an error without text"]
    text = re.sub(r" \(.*", "", lines[0]).replace("|", "/")
    return f"an error, “{text[:60].strip()}”,"


def naming(result):
    ranks = named_ranks(result)
    if not ranks:
        return "names nobody"
    return f"names rank{'s' if len(ranks) > 1 else ''} {in_words(ranks)}"


def told(result, since, bound_s=STORE_TIMEOUT_S):
    """How a call ended, when, and who is named."""
    seconds = result["t"] - since
    text = f"{code_of(result)} after {bounded(seconds, bound_s)}"
    if result["code"] not in ("ok", "gone"):
        text += f", {naming(result)}"
    return Observation(text, seconds)


def last_told(results, since, bound_s=STORE_TIMEOUT_S):
    """How the call ended that took longest."""
    return told(max(results, key=lambda result: result["t"]), since, bound_s)


def counted(count, thing):
    return f"{count} {thing}{'' if count == 1 else 's'}"


def growth(grown_bytes):
    return f"{max(0, round(grown_bytes / MIB))} MiB"
