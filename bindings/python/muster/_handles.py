"""What objects with something of this process behind them have in common: a session, a thread, a
lock, memory."""

from __future__ import annotations

from typing import Any, NoReturn


class NotPickled:
    """Base of classes whose objects are neither pickled nor copied."""

    __slots__ = ()

    _instead = ""
    """What a program does in place of pickling one."""

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        name = type(self).__qualname__
        article = "an" if name[0] in "AEIOU" else "a"
        raise TypeError(f"{article} {name} cannot be pickled or copied: {self._instead}")


class Handle(NotPickled):
    """Base of these classes, which have weak references."""

    __slots__ = ("__weakref__",)


def handle_of(given: Any) -> Any:
    """What muster._core takes in the place of an object; it refuses another one by the argument's
    name."""
    return getattr(given, "_handle", given)
