"""The asynchronous classes, as far as they follow from the blocking ones.

``_derived`` makes a class of a blocking one. Its methods with a timeout become coroutine functions
with the same parameters and docstring. What an asynchronous class needs beyond that is in store.py,
group.py and operate.py. The types are in _derived.pyi, which tests/python/async_types.py writes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from muster import _core
from muster._handles import Handle
from muster._keywords import named_form
from muster.aio._calls import AsyncCore, Pending
from muster.group import StatelessProcessGroup
from muster.operate import Operator
from muster.store import Store


def _then(value: Pending, convert: Callable[[Any], Any]) -> Pending:
    value.convert = convert
    return value


def _awaited(function: FunctionType) -> Any:
    async def run(*given: Any, **by_name: Any) -> Any:
        return await function(*given, **by_name)

    run.__name__, run.__qualname__ = function.__name__, function.__qualname__
    return named_form(function, run)


def _made(function: FunctionType, name: str) -> Any:
    """A class method that awaits what ``__init__`` does."""

    async def run(cls: Any, *given: Any, **by_name: Any) -> Any:
        made = cls.__new__(cls)
        function(made, *given, **by_name)
        made._handle = AsyncCore(await made._handle)
        return made

    run.__name__ = name
    run.__qualname__ = function.__qualname__.replace("__init__", name)
    constructor = named_form(function, run)
    constructor.__signature__ = inspect.signature(function).replace(return_annotation="Self")
    return classmethod(constructor)


def _member(member: Any) -> Any:
    is_of_class = isinstance(member, classmethod)
    function = inspect.unwrap(member.__func__ if is_of_class else member)
    if not isinstance(function, FunctionType):
        return member
    parameters = inspect.signature(function).parameters
    if not any(parameter.endswith("timeout") for parameter in parameters):
        return member
    return classmethod(_awaited(function)) if is_of_class else _awaited(function)


def _derived(blocking: type, constructor: str, without: Sequence[str] = ()) -> Any:
    """A class with the public methods and properties of ``blocking``, awaited.

    constructor  the class method that does what ``__init__`` does; "": ``__init__`` does not wait
    """
    members: dict[str, Any] = {
        name: _member(member)
        for name, member in vars(blocking).items()
        if not name.startswith("_") and name not in without
    }
    members["__doc__"] = blocking.__doc__
    members["__repr__"] = blocking.__repr__
    members["__slots__"] = ()
    members["_core"] = AsyncCore(_core)
    members["_then"] = staticmethod(_then)
    if constructor:
        init: Any = blocking.__init__  # type: ignore[misc]
        members[constructor] = _made(inspect.unwrap(init), constructor)
    return type(blocking.__name__ + "Calls", (Handle,), members)


StoreCalls = _derived(Store, "connect", without=["keys", "operate"])
GroupCalls = _derived(StatelessProcessGroup, "join", without=["close", "store"])
OperatorCalls = _derived(Operator, "", without=["set_setting"])
