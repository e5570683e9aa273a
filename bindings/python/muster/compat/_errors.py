"""Muster's errors where the class that is stood for raises RuntimeError: with torch, which raises
classes of its own from 2.2 on, such as DistStoreError, they are of those classes, too."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

from muster.errors import MusterError

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _again(kind: type[MusterError], message: str, fields: dict[str, Any]) -> MusterError:
    return _twin(kind)(message, **fields)


def _reduce(error: MusterError) -> tuple[Any, ...]:
    return _again, (type(error).__bases__[0], str(error), dict(error.__dict__))


_twins: dict[tuple[str, str], type[MusterError]] = {}


def _theirs(kind: type[MusterError]) -> type[Exception]:
    """What torch's TCPStore raises in its place. Without torch RuntimeError."""
    torchs = sys.modules.get("torch.distributed")
    name = "DistNetworkError" if issubclass(kind, ConnectionError) else "DistStoreError"
    found: type[Exception] = getattr(torchs, name, RuntimeError)
    return found


def _twin(kind: type[MusterError]) -> type[MusterError]:
    """A class that is both."""
    if issubclass(kind, RuntimeError):
        return kind
    theirs = _theirs(kind)
    key = kind.__name__, theirs.__name__
    if key not in _twins:
        names = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__reduce__": _reduce}
        _twins[key] = cast("type[MusterError]", type(kind.__name__, (kind, theirs), names))
    return _twins[key]


def as_runtime_error(error: MusterError) -> MusterError:
    """The same error, of a class that is a RuntimeError, too."""
    if isinstance(error, RuntimeError):
        return error
    return _twin(type(error))(str(error), **error.fields)


def raises_runtime_errors(function: _Function) -> _Function:
    """What the function raises of Muster's is a RuntimeError, too."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except MusterError as error:
            raise as_runtime_error(error) from error.__cause__

    return cast(_Function, call)
