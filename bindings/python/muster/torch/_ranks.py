"""Which ranks of a job are there: for the error of a wait whose time is up.

A store with a rank has two keys beside those of the program, in the same namespace: one goes with
its session, the other one stays. So whoever asks can tell a rank that has not come from one that
has died, without a session of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import weakref

import muster
from muster.errors import MusterError

PREFIX = b"ranks/"
SHOWN_MAX = 8
ASKING_S = 5.0
LEAVING_S = 1.0
LEFT = "left "


def key_of(rank: int, which: str) -> bytes:
    return PREFIX + f"{rank}/{which}".encode()


class Presence:
    """Says that a rank is there, from ``enter`` until its session ends."""

    def __init__(self, session: muster.Store, rank: int) -> None:
        self._session = session
        self._rank = rank
        process = session.process
        self._who = f"{process.host}, pid {process.pid}"

    def enter(self) -> None:
        self._session.set(key_of(self._rank, "been"), self._who)
        self._session.set(key_of(self._rank, "here"), self._who, bind_to_session=True)
        _present.add(self)

    def leave(self) -> None:
        """Says that the end of the session is none by death. Takes 1 s at most, and never fails:
        who leaves may have lost the server."""
        if self in _present:
            _present.discard(self)
            with contextlib.suppress(MusterError):
                told = LEFT + self._who
                self._session.set(key_of(self._rank, "been"), told, timeout=LEAVING_S)


_present: weakref.WeakSet[Presence] = weakref.WeakSet()


@atexit.register
def _leave_all() -> None:
    """A process that ends in order has not died."""
    for presence in list(_present):
        presence.leave()


def report(session: muster.Store, world_size: int | None) -> str:
    """Who is missing and who died, as the end of a message; "" where no store has a rank.

    cost  a round trip for a page of keys, and one for those that have gone; 10 s at most
    """
    try:
        seen: dict[str, set[int]] = {"here": set(), "been": set()}
        for info in session.keys(PREFIX, timeout=ASKING_S):
            number, _, which = info.key[len(PREFIX):].decode().partition("/")
            seen[which].add(int(number))
        here, been = seen["here"], seen["been"]
        if not been:
            return ""
        gone = sorted(been - here)
        asked = [key_of(rank, "been") for rank in gone]
        whose = session.multi_get(asked, timeout=ASKING_S) if asked else []
    except (MusterError, ValueError, KeyError) as error:
        return f"; the server does not say which ranks are there: {error}"
    died: list[str] = []
    left: list[str] = []
    for rank, value in zip(gone, whose):
        who = (value or b"").decode(errors="replace")
        kind = left if who.startswith(LEFT) else died
        kind.append(f"{rank} ({who.removeprefix(LEFT)})")
    missing = [str(rank) for rank in range(world_size or 0) if rank not in been]
    parts = [
        several(missing, "has not come", "have not come"),
        several(died, "died", "died"),
        several(left, "has left", "have left"),
    ]
    told = "; ".join(part for part in parts if part)
    if told:
        return f"; {told}"
    return "" if world_size is None else f"; all {world_size} ranks are there"


def several(ranks: list[str], one_does: str, they_do: str) -> str:
    """A clause about some ranks; "" about none."""
    if not ranks:
        return ""
    if len(ranks) == 1:
        return f"rank {ranks[0]} {one_does}"
    others = f" and {len(ranks) - SHOWN_MAX} more" if len(ranks) > SHOWN_MAX else ""
    return f"ranks {', '.join(ranks[:SHOWN_MAX])}{others} {they_do}"
