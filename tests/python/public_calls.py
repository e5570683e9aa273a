"""Every public function and class of the package, found by introspection, with arguments that fit.
A new class or argument that is not known here is an error."""

from __future__ import annotations

import array
import asyncio
import importlib
import inspect
import math
import pkgutil
import tempfile
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import muster
import muster.aio
import muster.codecs
import muster.gloo
import muster.nccl
import muster.operate
import muster.runtime
import muster.server
import muster.store
import pytest

MODULES = (
    "muster", "muster.aio", "muster.codecs", "muster.gloo", "muster.nccl", "muster.operate",
    "muster.runtime", "muster.server", "muster.store", "muster.communicator",
)
VALUES = (Exception, tuple, dict)  # errors and plain data, which are what they are given


@dataclass(frozen=True)
class Call:
    name: str
    """As "Store.get"."""
    owner: type | None
    function: Any
    """With the object as its first parameter, if it takes one."""
    takes_object: bool

    @property
    def parameters(self) -> list[inspect.Parameter]:
        found = list(inspect.signature(self.function).parameters.values())
        return found[1:] if self.takes_object else found

    @property
    def hints(self) -> dict[str, Any]:
        inner: Any = inspect.unwrap(self.function)
        if isinstance(inner, type):
            inner = inspect.unwrap(inner.__init__)  # type: ignore[misc]
        names = {**vars(muster.store), **inner.__globals__}
        return typing.get_type_hints(inner, names, {})

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)


def classes() -> list[type]:
    """Public classes that are more than plain data."""
    found: dict[type, None] = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            one = getattr(module, name)
            is_plain = isinstance(one, type) and (
                issubclass(one, VALUES) or hasattr(one, "__dataclass_fields__")
                or getattr(one, "_is_protocol", False)
            )
            if isinstance(one, type) and one.__module__.startswith("muster") and not is_plain:
                found[one] = None
    found[muster.runtime.Turn] = None
    return list(found)


def name_of(owner: type) -> str:
    is_aio = owner.__module__.startswith("muster.aio")
    return "aio." * is_aio + owner.__qualname__


def _calls_of(owner: type) -> Iterator[Call]:
    seen = set()
    for base in owner.__mro__:
        if not base.__module__.startswith("muster.") or base.__module__ == "muster._core":
            continue
        for name, member in vars(base).items():
            if name in seen or (name.startswith("_") and name != "__init__"):
                continue
            seen.add(name)
            label = f"{name_of(owner)}.{name}"
            if name == "__init__":
                yield Call(label, owner, owner, False)
            elif isinstance(member, (classmethod, staticmethod)):
                yield Call(label, owner, getattr(owner, name), False)
            elif inspect.isfunction(member):
                yield Call(label, owner, member, True)


def calls() -> list[Call]:
    found: dict[str, Call] = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            one = getattr(module, name)
            if inspect.isfunction(one):
                found[f"{module.__name__}.{name}"] = Call(
                    f"{module.__name__}.{name}", None, one, False
                )
    for owner in classes():
        for call in _calls_of(owner):
            found[call.name] = call
    return list(found.values())


def public(is_of_torch: bool = False) -> dict[str, Any]:
    """Every public module, class, function and method, plain data included.

    is_of_torch  those of muster.torch, or all others
    """
    names = [each.name for each in pkgutil.walk_packages(muster.__path__, "muster.")]
    found: dict[str, Any] = {}
    for name in ["muster", *names]:
        if "._" in name or name.startswith("muster.torch") is not is_of_torch:
            continue
        module = found[name] = importlib.import_module(name)
        own = [key for key, one in vars(module).items()
               if getattr(one, "__module__", "") == name and not key.startswith("_")]
        for key in getattr(module, "__all__", own):
            one = getattr(module, key)
            if inspect.isfunction(one):
                found[f"{name}.{key}"] = one
            elif isinstance(one, type) and one.__module__.startswith("muster"):
                found[f"{one.__module__}.{one.__qualname__}"] = one
                found |= _methods_of(one)
    return found


def _methods_of(owner: type) -> dict[str, Any]:
    members = [
        (f"{base.__module__}.{base.__qualname__}.{name}", getattr(member, "__func__", member))
        for base in owner.__mro__ if base.__module__.startswith("muster")
        for name, member in vars(base).items() if name == "__init__" or not name.startswith("_")
    ]
    return {name: member for name, member in members if inspect.isfunction(member)}


def check_public(name: str, one: Any) -> None:
    """Its docstring, its types, and that its error of too many arguments by position names those
    that are given by name."""
    assert one.__doc__ or name.endswith("__init__")
    if not isinstance(one, types.ModuleType):
        assert isinstance(typing.get_type_hints(one), dict)
    parameters = inspect.signature(one).parameters.values() if inspect.isfunction(one) else ()
    keywords = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    if not keywords:
        return
    with pytest.raises(TypeError) as raised:
        made = one(*[None] * (len(parameters) + 1))
        if inspect.iscoroutine(made):
            asyncio.run(_awaited(made))
    for keyword in keywords:
        assert f"{keyword}=" in str(raised.value)


class Things:
    """Objects of every class, and an argument for every parameter."""

    def __init__(self, address: str, namespace: str, name: str = "things") -> None:
        self.address = address
        self._folder = tempfile.TemporaryDirectory()
        self.folder = self._folder.name
        self.name = name
        self.store = muster.Store(address, namespace=namespace, timeout=30)
        self.group = muster.StatelessProcessGroup(self.store, name, 0, 1, timeout=30)
        self.job = muster.runtime.Runtime({})
        self.job.init()
        self._made: dict[type, Any] = {}

    def _makers(self) -> dict[type, Callable[[], Any]]:
        runtime = muster.runtime
        environment = runtime.Environment({"RANK": "0", "WORLD_SIZE": "1"})
        return {
            muster.IoThread: lambda: muster.IoThread("things"),
            muster.Operator: lambda: self.store.operate,
            muster.Server: muster.Server,
            muster.StatelessProcessGroup: lambda: self.group,
            muster.Store: lambda: self.store,
            muster.Watch: lambda: self.group.watch(print),
            muster.aio.Operator: lambda: muster.aio.Store._of(self.store._handle).operate,
            muster.aio.StatelessProcessGroup: lambda: muster.aio.StatelessProcessGroup._of(
                self.group._handle, None),
            muster.aio.Store: lambda: muster.aio.Store._of(self.store._handle),
            muster.communicator.Communicator: lambda: muster.gloo.create(self.group),
            muster.nccl.Communicators: muster.nccl.Communicators,
            runtime.DistributedSampler: lambda: runtime.DistributedSampler(5),
            runtime.Environment: lambda: environment,
            runtime.FileLock: lambda: runtime.FileLock(self.path("held")),
            runtime.Mesh: lambda: runtime.Mesh({"a": 1}),
            runtime.RankGroup: lambda: self.job.world,
            runtime.Runtime: lambda: self.job,
            runtime.SharedWorkspace: lambda: runtime.SharedWorkspace(self.folder, 0),
            runtime.SignalFolder: lambda: runtime.SignalFolder(
                self.path("signals"), environment, job="job"),
            runtime.Tensor: lambda: runtime.all_gather_tensor(self.job, self.numbers())[0],
            runtime.Turn: lambda: self.job.rank_zero(),
        }

    def of(self, owner: type) -> Any:
        if owner not in self._made:
            self._made[owner] = self._makers()[owner]()
        return self._made[owner]

    def path(self, name: str) -> str:
        return str(Path(self.folder, name))

    @staticmethod
    def numbers() -> array.array[float]:
        return array.array("f", [1, 2])

    def argument(self, call: Call, parameter: str) -> Any:
        """One that fits; a required argument that is not known here is a KeyError."""
        special = {
            ("IoThread.__init__", "name"): "io",
            ("Turn.__init__", "scope"): None,
            ("Turn.__init__", "is_rank_zero"): True,
            ("muster.runtime.all_reduce_value", "value"): 1,
            ("muster.runtime.synchronize_value", "value"): 1,
            ("DistributedSampler.__init__", "dataset"): 5,
            ("Mesh.ranks_along", "dimension"): "a",
            ("Server.__init__", "listen"): "127.0.0.1:0",
            ("SharedWorkspace.__init__", "rank"): 0,
            ("Environment.number", "number"): "rank",
            ("Environment.find", "number"): "rank",
            ("Runtime.number", "number"): "rank",
            ("Communicator.attach", "group"): self.group,
            ("muster.runtime.broadcast_list", "objs"): [1],
            ("muster.runtime.synchronize_over", "combine"): lambda all_: all_[0],
            ("Operator.set_setting", "name"): "slow-round-log",
            ("aio.Operator.set_setting", "name"): "slow-round-log",
            ("RankGroup.communicator", "device"): "cpu",
            ("SignalFolder.__init__", "folder"): self.path("signals"),
        }
        if (call.name, parameter) in special:
            return special[call.name, parameter]
        return self._common()[parameter]

    def _common(self) -> dict[str, Any]:
        return {
            "address": self.address, "code": 3, "combine": lambda one, two: one,
            "communicator": None, "communicators": [], "count": 1, "counts": [1],
            "cursor": 0, "delta": 1, "desired": b"d", "device": 0, "dimension": "",
            "dimensions": {"a": 1}, "dst": 0,
            "entries": {"k": "v"}, "environment": None, "epoch": 1, "expected": None,
            "flag": True, "folder": self.folder, "generation": 1, "group": self.group,
            "groups": [self.group], "handle": self.store._handle, "handler": print,
            "host": "127.0.0.1", "id": b"\1" * 128, "item": b"i", "key": "k", "keys": ["k"],
            "linger": 0, "name": self.name, "obj": 1, "objs": [1], "out": self.numbers(),
            "path": self.path("lock"), "peer": 0, "port": 1, "prefix": b"",
            "process": "0" * 32, "rank": 0, "ranks": [0], "reason": "because",
            "receive": self.numbers(), "requests": [], "root": 0, "send": self.numbers(),
            "session": 1, "src": 0, "state": muster.runtime.State(), "store": self.store,
            "subject": "status", "suffix": b"s", "tensor": self.numbers(), "text": "text",
            "timeout": 5.0, "ttl": 5.0, "value": b"v", "variables": {}, "work": lambda _: 1,
            "world_rank": 0, "world_size": 1,
        }

    def arguments(self, call: Call) -> dict[str, Any]:
        """Of all parameters that have no default."""
        of_ranks = call.name.startswith("muster.runtime.")
        required = {
            parameter.name: self.job if of_ranks and parameter.name == "ranks"
            else self.argument(call, parameter.name)
            for parameter in call.parameters if parameter.default is parameter.empty
        }
        if call.name.endswith(".scatter_obj"):
            required["objs"] = [1]  # of the root, as which every test calls
        return required

    def make(self, call: Call, arguments: dict[str, Any]) -> Any:
        given = [self.of(call.owner)] if call.takes_object and call.owner is not None else []
        by_place = [
            arguments.pop(parameter.name) for parameter in call.parameters
            if parameter.kind is parameter.POSITIONAL_ONLY and parameter.name in arguments
        ]
        made = call.function(*given, *by_place, **arguments)
        if inspect.iscoroutine(made):
            return asyncio.run(_awaited(made))
        if hasattr(made, "__aiter__"):
            return asyncio.run(_first(made))
        if isinstance(made, types.GeneratorType):
            return next(made, None)
        if hasattr(made, "__enter__") and "contextmanager" in repr(type(made)).lower():
            with made:
                return None
        return made


async def _awaited(made: Any) -> Any:
    return await made


async def _first(made: Any) -> Any:
    async for one in made:
        return one


# What does not fit.

WRONG: tuple[Any, ...] = (
    None, 5, 1.5, "5", b"5", [], {}, (1, 2, 3), object(), lambda: None, print, bytearray(b"x"),
)
ANY_OF_TENSORS = ("tensor", "out", "send", "receive")


def fits(value: Any, hint: Any, name: str) -> bool:
    """Whether a value is of the type of an argument, as the package takes it."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or hint is object or name == "flag":  # a flag is what is true
        if name == "stream":
            return value is None or isinstance(value, int)
        if name in ANY_OF_TENSORS:
            return value is None or isinstance(value, (bytes, bytearray))
        return True
    if isinstance(hint, typing.TypeVar):
        if hint.__constraints__:
            return any(fits(value, each, name) for each in hint.__constraints__)
        return hint.__bound__ is None or fits(value, hint.__bound__, name)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, each, name) for each in inner)
    if origin is typing.Literal:
        return isinstance(value, str)
    if hint is None or hint is type(None):
        return value is None
    if hint is float:
        return isinstance(value, (int, float)) or (value is None and name != "factor")
    if hint is muster.Codec:
        return hasattr(value, "id")
    if getattr(hint, "__name__", "") == "Sized":
        return hasattr(value, "__len__")
    if origin is not None:
        if origin.__name__ == "Callable":
            return callable(value)
        if origin.__name__ in ("Iterable", "Sequence", "list"):
            # A str is one key, not a list of letters.
            is_of_any = inner and inner[0] is Any
            return isinstance(value, (list, tuple, dict)) or bool(is_of_any and value == "5") or (
                bool(is_of_any) and isinstance(value, (bytes, bytearray)))
        return isinstance(value, origin)
    if typing.is_typeddict(hint):
        return isinstance(value, dict)
    if isinstance(hint, type):
        return isinstance(value, hint) and not (hint is int and isinstance(value, bool))
    raise TypeError(f"{name}: the tests do not know the type {hint}")


def wrong_values(hint: Any, name: str) -> list[Any]:
    """Of the right type, and out of every range."""
    kinds = list(typing.get_args(hint)) or [hint]
    if hint is int or kinds == [int, type(None)]:
        return [2**64, -(2**64)]
    if timedelta in kinds:
        return [math.nan, -1, -math.inf, timedelta(seconds=-1)]
    if typing.get_origin(hint) is typing.Literal:
        return ["none of them"]
    return []
