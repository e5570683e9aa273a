"""What is raised where an argument that has to have its name has none."""

from __future__ import annotations

import functools
import inspect
from types import FunctionType
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)


def names_keywords(cls: Class) -> Class:
    """Makes the functions of a class name their arguments in that case. Python tells their number
    alone: "takes 1 positional argument but 2 were given"."""
    for name, function in list(vars(cls).items()):
        is_public = name == "__init__" or not name.startswith("_")
        if is_public and isinstance(function, FunctionType) and function.__kwdefaults__:
            setattr(cls, name, _naming(function))
    return cls


def _naming(function: FunctionType) -> Any:
    count_max = function.__code__.co_argcount  # with self

    def refused(count: int) -> TypeError:
        names = ", ".join(f"{name}=" for name in function.__kwdefaults__ or ())
        return TypeError(
            f"{function.__qualname__}() takes {count_max - 1} arguments by position, and "
            f"{count - 1} were given. Give the others by name: {names}"
        )

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        if len(given) > count_max:
            raise refused(len(given))
        return function(*given, **named)

    if not inspect.iscoroutinefunction(function):
        return call

    @functools.wraps(function)
    async def call_awaited(*given: Any, **named: Any) -> Any:
        return await call(*given, **named)

    return call_awaited
