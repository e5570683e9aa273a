"""How the blocking classes call the extension. :mod:`muster.aio` derives its classes from them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar, Union

from muster import _core
from muster._handles import Handle
from muster.errors import Closed

Value = TypeVar("Value")
Result = TypeVar("Result")

Time = Union[float, timedelta]
"""Seconds, or a timedelta. Microseconds count."""
Timeout = Union[float, timedelta, None]
"""Of the whole call, in seconds; None: that of the store or group."""


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


def shown(self: object, describe: Callable[[], str]) -> str:
    """The object's ``repr``, with the name by which users know its class, such as muster.aio.Store.
    It works also when the object has gone with its runtime."""
    package = type(self).__module__.rpartition(".")[0]
    try:
        described = f" {describe()}"
    except Closed:
        described = ", closed"
    return f"<{package}.{type(self).__qualname__}{described}>"
