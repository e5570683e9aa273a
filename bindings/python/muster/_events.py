"""What Muster calls by itself. Muster refers to these objects weakly: whoever is told of events
keeps them."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any

from muster.errors import MusterError

Handler = Callable[[MusterError], object]

log = logging.getLogger("muster")
log.addHandler(logging.NullHandler())


class Events:
    """Handlers of a store's or a group's events. They run one after the other, on a thread of
    Muster's. What one raises is given to ``sys.unraisablehook``, which prints it."""

    __slots__ = ("_handlers", "__weakref__")

    def __init__(self, **handlers: Handler | None) -> None:
        self._handlers = {name: told for name, told in handlers.items() if told is not None}

    def _tell(self, name: str, error: MusterError) -> None:
        if handler := self._handlers.get(name):
            handler(error)

    def session_ended(self, error: MusterError) -> None:
        self._tell("session_ended", error)

    def rank_lost(self, error: MusterError) -> None:
        self._tell("rank_lost", error)

    def rank_left(self, error: MusterError) -> None:
        self._tell("rank_left", error)

    def happened(self, error: MusterError) -> None:
        self._tell("happened", error)

    def ended(self, error: MusterError) -> None:
        self._tell("ended", error)


def as_logger() -> Any:
    """Lines of Muster's log go to the logger "muster"."""
    return weakref.ref(log)
