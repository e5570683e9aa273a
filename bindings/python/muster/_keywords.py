"""What is raised where an argument that has to have its name has none, or is a key."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, TypeVar

from muster import _core

Class = TypeVar("Class", bound=type)


def names_keywords(cls: Class) -> Class:
    """Makes the functions of a class name their arguments in that case. Python tells their number
    alone: "takes 1 positional argument but 2 were given". A TypeError or ValueError of theirs does
    not show an argument that looks like a key."""
    for name, member in list(vars(cls).items()):
        is_public = name == "__init__" or not name.startswith("_")
        is_of_class = isinstance(member, classmethod)
        function = member.__func__ if is_of_class else member
        if is_public and isinstance(function, FunctionType) and function.__kwdefaults__:
            naming = named(function, function)
            setattr(cls, name, classmethod(naming) if is_of_class else naming)
    return cls


def named(function: FunctionType, run: Callable[..., Any]) -> Any:
    """A function with the parameters and docstring of ``function`` that names its keywords as
    above, and calls ``run``. It is a coroutine function if ``run`` is one."""
    count_max = function.__code__.co_argcount  # with self

    def check(given: Sequence[Any]) -> None:
        if len(given) > count_max:
            names = ", ".join(f"{name}=" for name in function.__kwdefaults__ or ())
            raise TypeError(
                f"{run.__qualname__}() takes {count_max - 1} arguments by position, and "
                f"{len(given) - 1} were given. Give the others by name: {names}"
            )

    if inspect.iscoroutinefunction(run):

        @functools.wraps(function)
        async def call_awaited(*given: Any, **named: Any) -> Any:
            check(given)
            try:
                return await run(*given, **named)
            except (TypeError, ValueError) as error:
                _hide_keys(error, function, given, named)
                raise

        call_awaited.__name__, call_awaited.__qualname__ = run.__name__, run.__qualname__
        return call_awaited

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        check(given)
        try:
            return run(*given, **named)
        except (TypeError, ValueError) as error:
            _hide_keys(error, function, given, named)
            raise

    return call


def _hide_keys(
    error: Exception, function: FunctionType, given: Sequence[Any], named: Mapping[str, Any]
) -> None:
    """Changes an error that shows a key, as that of pybind11 does, which shows all arguments."""

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
