"""Work that some ranks do before others, or instead of them.

A ``with`` is a scope: all ranks of the group enter it, in the same order as other calls on it, and
each runs its body when its turn has come. What a body raises is told to the others as text, and
goes on its own way here.

Errors of all: TimedOut (``ranks``: who has told nothing for ``silence_max`` seconds; ``detail``:
its last progress), CallbackFailed (``ranks``: whose body has failed), RankLost, RankLeft,
GroupInterrupted, NotInitialized.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from muster import _core
from muster._handles import Handle
from muster._objects import decoded, encoded
from muster.codecs import Codec
from muster.store import Time

__all__ = ["Progress", "Turn"]

Progress = Callable[[str], None]
"""Tells those who wait that the work goes on: they wait for another ``silence_max``. Never blocks,
and may be called often."""

_Self = TypeVar("_Self", bound="Turn")


def told_text(error: BaseException) -> str:
    """What the other ranks are told of an exception: its text, as far as UTF-8 has it."""
    try:
        text = str(error)
    except Exception:
        text = ""  # its own `__str__` has failed
    text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text.encode(errors="replace").decode()


class Turn(Handle):
    """One scope, on this rank.

    While its body runs, the call waits on a thread of its own, and tells the others that this
    rank's process lives; that its body goes on is told by ``progress``.
    """

    __slots__ = ("_scope", "is_rank_zero")
    _instead = "it is one entry into a scope"

    def __init__(self, scope: _core.Scope, is_rank_zero: bool) -> None:
        self._scope = scope
        self.is_rank_zero = is_rank_zero
        """Whether this is rank 0 of the group."""

    def progress(self, text: str) -> None:
        """Those who wait for this rank do so for another ``silence_max`` seconds.

        text  what is done, for people, such as "shard 3 of 12"; the first 256 bytes count
        """
        self._scope.tell(text)

    def __enter__(self: _Self) -> _Self:
        self._scope.enter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._scope.leave(None if error is None else told_text(error))


def run_on_rank_zero(
    handle: _core.RankGroup,
    work: Callable[[Progress], Any],
    codec: Codec,
    silence_max: Time,
    limit: Time,
) -> Any:
    """Runs the work on rank 0 alone, and gives all ranks, rank 0 included, what the codec makes of
    what it gives."""

    def run(progress: Progress) -> Any:
        return encoded(codec, work(progress), "on_rank_zero")

    told = _core.on_rank_zero(handle, run, (silence_max, limit))
    return decoded(codec, told, "on_rank_zero", 0)
