"""How the blocking classes call the extension. :mod:`muster.aio` derives its classes from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from muster import _core
from muster._handles import Handle

Value = TypeVar("Value")
Result = TypeVar("Result")


class BlockingCalls(Handle):
    """A class whose calls block.

    A method with a ``timeout`` makes one call of the extension and returns its value, or passes it
    through ``_then``. So the same function serves muster.aio, where the value is awaited.
    """

    __slots__ = ()

    _core: Any = _core

    @staticmethod
    def _then(value: Value, convert: Callable[[Value], Result]) -> Result:
        """Returns ``convert(value)``. In muster.aio ``value`` is a pending call, and ``convert``
        gets its value."""
        return convert(value)


def public_name(self: object) -> str:
    """The name by which users know the object's class, such as muster.aio.Store."""
    package = type(self).__module__.rpartition(".")[0]
    return f"{package}.{type(self).__qualname__}"
