"""Errors of wrong arguments: given by position instead of by name, of another type, or a key.
muster._core checks scalars and buffers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any, TypeVar

from muster import _core

Named = TypeVar("Named", bound=Callable[..., Any])


def refuse_type(given: Any, argument: str, expected: str) -> TypeError:
    """To be raised: "codec: ..., not str"."""
    text = given.encode("utf-8", "replace") if isinstance(given, str) else b""
    complaint = _core.complaint_of_secret(argument, text)
    return TypeError(complaint or f"{argument}: {expected}, not {type(given).__name__}")


def check_codec(given: Any, argument: str) -> None:
    is_codec = isinstance(getattr(given, "id", None), int)
    if not is_codec or not callable(getattr(given, "encode", None)):
        raise refuse_type(
            given, argument, "a codec such as muster.JSON, with id, encode and decode"
        )


def check_function(given: Any, argument: str) -> None:
    if not callable(given):
        raise refuse_type(given, argument, "a function")


def check_function_or_none(given: Any, argument: str) -> None:
    if given is not None:
        check_function(given, argument)


def check_objects_or_none(given: Any, argument: str) -> None:
    if given is not None and not isinstance(given, Iterable):
        raise refuse_type(given, argument, "several objects, such as a list")


def iterable_of(given: Any, argument: str) -> Iterable[Any]:
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes, bytearray)):
        raise refuse_type(given, argument, "several objects, such as a list")
    return given


_CHECKS: dict[str, Callable[[Any, str], None]] = {
    "codec": check_codec,
    "combine": check_function,
    "handler": check_function,
    "objs": check_objects_or_none,
    "on_leave": check_function_or_none,
    "on_loss": check_function_or_none,
    "on_session_end": check_function_or_none,
    "work": check_function,
}
"""By the names of arguments, which are the same in all of the package."""


def names_keywords(named: Named) -> Named:
    """Makes a function, or the functions of a class, name their arguments. Python tells their
    number alone: "takes 1 positional argument but 2 were given". What this module checks is checked
    before. A TypeError or ValueError does not show an argument that looks like a key."""
    if isinstance(named, FunctionType):
        naming: Named = _naming(named)
        return naming
    for name, member in list(vars(named).items()):
        is_public = name == "__init__" or not name.startswith("_")
        is_bound = isinstance(member, (classmethod, staticmethod))
        function = member.__func__ if is_bound else member
        if is_public and isinstance(function, FunctionType) and _needs_naming(function):
            setattr(named, name, type(member)(_naming(function)) if is_bound else _naming(function))
    return named


def _naming(function: FunctionType) -> Any:
    return named_form(_inner(function), function)


def _inner(function: Callable[..., Any]) -> FunctionType:
    """The function whose parameters they are, such as that of a context manager."""
    inner: FunctionType = inspect.unwrap(function)
    return inner


def _needs_naming(function: FunctionType) -> bool:
    code = _inner(function).__code__
    names = code.co_varnames[: code.co_argcount]
    return code.co_kwonlyargcount > 0 or not _CHECKS.keys().isdisjoint(names)


def _checked_by(function: FunctionType) -> list[tuple[int, str, Callable[[Any, str], None]]]:
    """The arguments to look at: the place of each, its name, and how to look at it."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [(place, name, _CHECKS[name]) for place, name in enumerate(names) if name in _CHECKS]


def named_form(function: FunctionType, run: Callable[..., Any]) -> Any:
    """A function with the parameters and docstring of ``function`` that names its keywords as
    above, and calls ``run``. It is a coroutine function if ``run`` is one."""
    code = function.__code__
    count_max = code.co_argcount  # with self
    of_class = code.co_varnames[:1] in (("self",), ("cls",))
    keywords = code.co_varnames[count_max : count_max + code.co_kwonlyargcount]
    checks = _checked_by(function)

    def check(given: Sequence[Any], by_name: Mapping[str, Any]) -> None:
        count = len(given)
        if count > count_max:
            names = ", ".join(f"{name}=" for name in keywords)
            hint = f". Give the others by name: {names}" if names else ""
            raise TypeError(
                f"{run.__qualname__}() takes {count_max - of_class} arguments by position, and "
                f"{count - of_class} were given{hint}"
            )
        for place, name, check_argument in checks:
            if place < count:
                check_argument(given[place], name)
            elif name in by_name:
                check_argument(by_name[name], name)

    if inspect.iscoroutinefunction(run):

        @functools.wraps(function)
        async def call_awaited(*given: Any, **named: Any) -> Any:
            check(given, named)
            try:
                return await run(*given, **named)
            except (TypeError, ValueError) as error:
                _hide_keys(error, function, given, named)
                raise

        call_awaited.__name__, call_awaited.__qualname__ = run.__name__, run.__qualname__
        return call_awaited

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        check(given, named)
        try:
            return run(*given, **named)
        except (TypeError, ValueError) as error:
            _hide_keys(error, function, given, named)
            raise

    return call


def _hide_keys(
    error: Exception, function: FunctionType, given: Sequence[Any], named: Mapping[str, Any]
) -> None:
    """Changes an error that shows a key among what was given."""

    def complaint_of(name: str, value: Any) -> str:
        if isinstance(value, str):
            value = value.encode("utf-8", "replace")
        return _core.complaint_of_secret(name, value) if isinstance(value, bytes) else ""

    if type(error) not in (TypeError, ValueError) or not complaint_of("", str(error)):
        return
    names = function.__code__.co_varnames
    for name, value in [*zip(names, given), *named.items()]:
        if complaint := complaint_of(name, value):
            error.args = (complaint,)
            return
