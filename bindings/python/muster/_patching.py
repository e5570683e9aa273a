"""Puts one class in the place of another in all modules, and takes it away again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def _names_of(one: Any) -> list[tuple[dict[str, Any], str]]:
    """Where modules have an object, without asking modules for anything."""
    found = []
    for name, module in list(sys.modules.items()):
        if name.startswith("muster."):
            continue
        names = getattr(module, "__dict__", None)
        if type(names) is dict:
            found += [(names, key) for key, value in list(names.items()) if value is one]
    return found


def check_permission(given: bool) -> None:
    if type(given) is not bool:
        raise TypeError(f"allow_unauthenticated: bool, not {type(given).__name__}")


class Patch:
    """One class in the place of another, until ``undo`` or the end of the ``with``."""

    __slots__ = ("_is_done", "_kept", "_new", "_old", "_on_undo")

    def __init__(self, old: Any, new: Any, on_undo: Callable[[], None] | None = None) -> None:
        """on_undo  takes away what else the patch has set"""
        self._old, self._new, self._on_undo = old, new, on_undo
        self._kept = {(id(names), key) for names, key in _names_of(new)}
        places = [] if old is None else _names_of(old)
        self._is_done = not places
        for names, key in places:
            names[key] = new

    def undo(self) -> None:
        """Every module has again what it had, and those that were imported since have the old
        class. A patch that found nothing to do undoes nothing but its permission."""
        on_undo, self._on_undo = self._on_undo, None
        if on_undo is not None:
            on_undo()
        if self._is_done:
            return
        self._is_done = True
        for names, key in _names_of(self._new):
            if (id(names), key) not in self._kept:
                names[key] = self._old

    def __enter__(self) -> Patch:
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()
