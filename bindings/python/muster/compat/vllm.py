"""vLLM's ``StatelessProcessGroup`` on Muster.

    import muster.compat.vllm
    muster.compat.vllm.patch()   # before or after others have imported vLLM's class, on all ranks

or, where the class is named: ``from muster.compat.vllm import StatelessProcessGroup``.

Objects are pickled, as vLLM's are: **whoever can reach the port can run code in these processes**.
With a key (``MUSTER_CREDENTIAL_FILE``) only who has it can. :class:`muster.StatelessProcessGroup`
needs no pickle. docs/migrating.md compares both classes line by line.

torch is imported by those calls alone that are given tensors.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import logging
import re
import sys
import time
from collections import deque
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, Union

import muster
from muster._handles import NotPickled
from muster._keywords import named_form, names_keywords
from muster._patching import Patch, check_permission
from muster.compat import _on_store
from muster.compat._errors import as_runtime_error, raises_runtime_errors
from muster.compat._farewell import Farewell, free_port
from muster.compat._hosted import Hosted
from muster.compat._keys import KeyStore
from muster.compat._on_store import OBJECTS, TENSORS
from muster.compat._peers import await_muster
from muster.errors import Closed, MusterError

__all__ = ["Patch", "StatelessProcessGroup", "patch", "unauthenticated_allowed"]

VLLMS = "vllm.distributed.utils"
_CALLS = ("create", "send_obj", "recv_obj", "broadcast_obj", "all_gather_obj", "barrier")
_log = logging.getLogger("muster")


class _Nothing:
    """In place of vLLM's class where there is no vLLM."""


def _find_original() -> type | None:
    try:
        found = import_module(VLLMS).StatelessProcessGroup
    except ImportError:
        return None
    except Exception as wrong:  # whatever its parts raise on this machine
        _log.warning("vllm is installed, but cannot be imported: %s", wrong)
        return None
    return found if isinstance(found, type) else None


_original: type | None = _find_original()
unauthenticated_allowed = False
"""Whether rank 0 of ``create`` serves at an address that other machines reach without a key in the
environment: whoever reaches it can then run code in these processes. ``patch`` sets it."""
_Base: Any = _original or _Nothing


class _Kind(type):
    """Groups of the class that this one stands for, from before a patch, are groups, too."""

    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        original = cls.__dict__.get("_stands_for")
        return original is not None and isinstance(instance, original)


@names_keywords
@dataclasses.dataclass(init=False, repr=False, eq=False)
class StatelessProcessGroup(NotPickled, _Base, metaclass=_Kind):  # type: ignore[misc]
    """A group whose ranks exchange pickled objects, without global state.

    ``create`` makes one on a server of Muster's, which rank 0 hosts until its ``store`` or
    ``socket`` is set to None; when the object is gone, or the process ends, until the other ranks
    have gone, for 10 s. The constructor makes one on any store of
    ``torch.distributed``; the ranks then do without what only a server can do: a rank that dies is
    noticed by nobody, and calls wait as long as the store's own time-out.

    All ranks must use this class, and call broadcast_obj, all_gather_obj, broadcast, all_reduce and
    barrier in the same order.

    Errors are Muster's, such as :class:`muster.TimedOut` with ``ranks``, and each is a
    RuntimeError, too; those of the constructor's store are its own.
    """

    rank: int
    world_size: int
    store: Any
    """Of ``create``: a :class:`muster.torch.Store` with ``host`` and ``port`` where torch is
    imported, else :class:`muster.compat._keys.KeyStore`. None: the group is closed."""
    data_expiration_seconds: float = 3600
    send_dst_counter: dict[int, int] = dataclasses.field(default_factory=dict)
    recv_src_counter: dict[int, int] = dataclasses.field(default_factory=dict)
    broadcast_send_counter: int = 0
    broadcast_recv_src_counter: dict[int, int] = dataclasses.field(default_factory=dict)
    entries: deque[tuple[str, float]] = dataclasses.field(default_factory=deque)
    """What may have to expire; Muster's server needs none."""
    socket: Any = None

    _instead = "it is one process's rank. Each process makes its own: StatelessProcessGroup.create"
    _stands_for: ClassVar[Union[type, None]] = _original
    _hosted: ClassVar[Union[Hosted, None]] = None
    _is_allowed: ClassVar[bool] = False  # to serve beyond loopback without a key
    """Of ``create``, an attribute of the object."""

    def __init__(
        self,
        rank: int,
        world_size: int,
        store: Any,
        data_expiration_seconds: Any = 3600,
        send_dst_counter: Any = None,
        recv_src_counter: dict[int, int] | None = None,
        broadcast_send_counter: int = 0,
        broadcast_recv_src_counter: dict[int, int] | None = None,
        entries: deque[tuple[str, float]] | None = None,
        socket: Any = None,
    ) -> None:
        """A rank of a group on a store.

        store   any store of ``torch.distributed``, such as a TCPStore or a PrefixStore
        socket  as older versions of the class have it, also as the fourth argument
        errors  ValueError
        """
        if not isinstance(data_expiration_seconds, (int, float)):  # rank, size, store, socket, time
            socket = data_expiration_seconds
            has_time = isinstance(send_dst_counter, (int, float))
            data_expiration_seconds = send_dst_counter if has_time else 3600
        self.rank = rank
        self.world_size = world_size
        self.store = store
        self.socket = socket
        self.data_expiration_seconds = data_expiration_seconds
        self.broadcast_send_counter = broadcast_send_counter
        self.entries = deque() if entries is None else entries
        self.__post_init__()

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world_size:
            raise ValueError(f"rank {self.rank}: ranks are 0 to {self.world_size - 1}")
        self.send_dst_counter = dict.fromkeys(range(self.world_size), 0)
        self.recv_src_counter = dict.fromkeys(range(self.world_size), 0)
        self.broadcast_recv_src_counter = dict.fromkeys(range(self.world_size), 0)

    @staticmethod
    def create(
        host: str,
        port: int,
        rank: int,
        world_size: int,
        data_expiration_seconds: float = 3600,
        store_timeout: float = 300,
        listen_socket: Any = None,
        *,
        timeout_seconds: float | None = None,
    ) -> StatelessProcessGroup:
        """Forms a group: rank 0 serves at the address, and all ranks connect to it and join.

        data_expiration_seconds  the server drops objects of this age that nobody has received
        store_timeout            of joining in all, and of every call but ``barrier``
        listen_socket            of rank 0, which this takes over
        timeout_seconds          ``store_timeout`` by the name that copies of the class give it
        errors                   TimedOut (``ranks`` are missing), AddressInUse, PermissionDenied
                                 (others reach the address, there is no key in the
                                 environment, and not
                                 ``unauthenticated_allowed``),
                                 ProtocolBroken (rank 0 uses vLLM's class), those of
                                 muster.StatelessProcessGroup.create
        """
        group: StatelessProcessGroup = _created(
            StatelessProcessGroup, host, port, rank, world_size, data_expiration_seconds,
            store_timeout, listen_socket, timeout_seconds=timeout_seconds,
        )
        return group

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if name not in ("store", "socket") or self._hosted is None:
            return
        if value is None or name == "store":
            hosted = self._hosted
            object.__setattr__(self, "_hosted", None)
            if name == "socket":
                object.__setattr__(self, "store", None)
            hosted.close()

    def _way(self, *ranks: int) -> Hosted | None:
        """None: it goes by the store. Errors: KeyError (there is no such rank), as theirs."""
        for rank in ranks:
            if not 0 <= rank < self.world_size:
                raise KeyError(f"there is no rank {rank}: ranks are 0 to {self.world_size - 1}")
        if self._hosted is None and self.store is None:
            raise as_runtime_error(Closed(
                "the group was closed: its store is None", code="closed", number=23, happened="no"
            ))
        return self._hosted

    # Objects.

    def send_obj(self, obj: Any, dst: int) -> None:
        """Sends an object to a rank, in order. Waits until the server has it."""
        way = self._way(dst)
        if way is None:
            return _on_store.send(self, obj, dst, OBJECTS)
        way.send(obj, dst, OBJECTS.tag)
        self.send_dst_counter[dst] += 1

    def recv_obj(self, src: int) -> Any:
        """The next object of a rank. A call that fails takes nothing, except with Expired."""
        way = self._way(src)
        if way is None:
            return _on_store.recv(self, src, OBJECTS)
        obj = way.recv(src, OBJECTS.tag)
        self.recv_src_counter[src] += 1
        return obj

    def broadcast_obj(self, obj: Any, src: int) -> Any:
        """Gives every rank the object of rank ``src``, which does not wait for the others."""
        way = self._way(src)
        if way is None:
            return _on_store.broadcast(self, obj, src, OBJECTS)
        obj = way.broadcast(obj, src)
        if src == self.rank:
            self.broadcast_send_counter += 1
        else:
            self.broadcast_recv_src_counter[src] += 1
        return obj

    def all_gather_obj(self, obj: Any) -> list[Any]:
        """Element i is the object of rank i."""
        way = self._way()
        if way is not None:
            return way.all_gather(obj)
        self.broadcast_obj(obj, src=self.rank)
        return [
            obj if src == self.rank else self.broadcast_obj(None, src=src)
            for src in range(self.world_size)
        ]

    # Tensors, which pass through the server: NCCL is for large ones.

    def broadcast(self, tensor: Any, src: int) -> Any:
        """Returns the tensor of rank ``src``, on the device of the tensor that was given."""
        way = self._way(src)
        given = _portable(tensor) if src == self.rank else None
        if way is None:
            got = _on_store.broadcast(self, given, src, TENSORS)
        else:
            got = way.broadcast(given, src)
        return tensor if src == self.rank else _moved_to(tensor, got)

    def send(self, tensor: Any, dst: int) -> None:
        """Sends a tensor to a rank. Tensors and objects are counted apart."""
        way = self._way(dst)
        if way is None:
            return _on_store.send(self, _portable(tensor), dst, TENSORS)
        way.send(_portable(tensor), dst, TENSORS.tag)

    def recv(self, tensor: Any, src: int) -> Any:
        """Writes the next tensor of a rank into ``tensor``, and returns it."""
        way = self._way(src)
        got = _on_store.recv(self, src, TENSORS) if way is None else way.recv(src, TENSORS.tag)
        tensor.copy_(got)
        return tensor

    def all_reduce(self, tensor: Any, op: Any = None) -> Any:
        """Combines the tensors of all ranks, in the order of ranks. Returns a new tensor.

        op      SUM, PRODUCT, MAX or MIN of ``torch.distributed.ReduceOp``; None: SUM
        errors  ValueError (another operation): nothing was sent
        """
        combine = _combination(op)
        tensors = self.all_gather_obj(_portable(tensor.detach()))
        result = tensors[0]
        for other in tensors[1:]:
            result = combine(result, other)
        return result.to(tensor.device)

    # The group.

    def barrier(self, timeout: float = 30.0) -> None:
        """Waits until all ranks have called it. Rank 0 goes last.

        timeout  of all of it, in seconds
        errors   TimedOut (``ranks`` are missing), RankLost; the same for all ranks
        """
        way = self._way()
        if way is None:
            return _on_store.barrier(self, timeout)
        way.barrier(timeout)

    def expire_data(self) -> None:
        """On a store: replaces what has expired by a mark. Muster's server does it by itself."""
        if self._way() is None:
            _on_store.expire(self)

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        where = "closed" if self.store is None else repr(self.store)
        return f"<muster.compat.vllm group: rank {self.rank} of {self.world_size}, {where}>"


@raises_runtime_errors
def _created(
    kind: Any, host: str, port: int, rank: int, world_size: int,
    data_expiration_seconds: float = 3600, store_timeout: float = 300, listen_socket: Any = None,
    *, timeout_seconds: float | None = None,
) -> Any:
    begun = time.monotonic()
    if timeout_seconds is not None:
        store_timeout = timeout_seconds
    descriptor = -1
    if rank == 0 and listen_socket is not None:
        listen_socket.listen()
        descriptor = listen_socket.detach()
    if rank == 0:
        free_port(port, store_timeout)
    else:
        await_muster(host, port, begun + store_timeout)
    left = max(begun + store_timeout - time.monotonic(), 0.001)
    try:
        joined = muster.StatelessProcessGroup.create(
            host, port, rank, world_size, data_expiration_seconds, min(store_timeout, left),
            allow_unauthenticated=unauthenticated_allowed or kind._is_allowed,
            listening_socket=descriptor,
        )
    except MusterError as error:
        raise _since(begun, error) from error.__cause__
    group = kind(
        rank=rank, world_size=world_size, data_expiration_seconds=data_expiration_seconds,
        store=_keys_of(joined.store, store_timeout, host, port),
    )
    farewell = Farewell(group, joined, port) if rank == 0 else None
    object.__setattr__(group, "_hosted", Hosted(joined, farewell, store_timeout))
    return group


def _keys_of(session: muster.Store, timeout: float, host: str, port: int) -> Any:
    """The keys of a group: a store of torch's where the program has imported that."""
    torchs = sys.modules.get("torch.distributed")
    if torchs is None or not torchs.is_available():
        return KeyStore(session, timeout)
    from muster.compat._torch_store import GroupStore

    return GroupStore(session, timeout, host, port)


def _since(begun: float, error: MusterError) -> MusterError:
    """The error of the last part of a call that has begun then, with the time of all of it."""
    fields = error.fields | {"elapsed": time.monotonic() - begun}
    in_all = f" after {fields['elapsed']:.1f} s"
    text = re.sub(r" after [\d.]+ [mu]?s\b", in_all, str(error), count=1)
    return type(error)(text, **fields)


def _portable(tensor: Any) -> Any:
    """As it travels: in host memory, without what surrounds it there. It requires a gradient if
    ``tensor`` does."""
    return tensor.detach().cpu().clone().requires_grad_(tensor.requires_grad)


def _moved_to(place: Any, tensor: Any) -> Any:
    device = getattr(place, "device", None)
    if device is None or device == tensor.device:
        return tensor
    return tensor.detach().to(device).requires_grad_(tensor.requires_grad)


def _combination(op: Any) -> Callable[[Any, Any], Any]:
    import torch
    from torch.distributed import ReduceOp

    known: list[tuple[Any, Callable[[Any, Any], Any]]] = [
        (ReduceOp.SUM, torch.add), (ReduceOp.PRODUCT, torch.mul),
        (ReduceOp.MAX, torch.maximum), (ReduceOp.MIN, torch.minimum),
    ]
    for one, combine in known:
        if op is None or op == one:
            return combine
    raise ValueError(f"all_reduce: SUM, PRODUCT, MAX or MIN, not {op}")


class _Copy(StatelessProcessGroup):
    """The class that stands for a copy of vLLM's whose ``barrier`` has no time-out: it waits for as
    long as the store does."""

    def barrier(self, timeout: float | None = None) -> None:
        if timeout is None:
            self._way()  # a closed group has no store
            timeout = self.store.timeout.total_seconds()
        super().barrier(timeout)


_copies: list[Any] = []


def _stand_in_for(found: Any) -> Any:
    """A class of its own for each copy of vLLM's, so that an undo finds its places."""
    for one in _copies:
        if found in (one, one._stands_for):
            return one
    has_timeout = "timeout" in inspect.signature(found.barrier).parameters
    base = StatelessProcessGroup if has_timeout else _Copy
    kind: Any = _Kind(found.__name__, (base,), {
        "__module__": __name__, "_stands_for": found, "_is_allowed": False,
    })
    theirs: Any = inspect.unwrap(StatelessProcessGroup.create)
    created = functools.update_wrapper(functools.partial(_created, kind), theirs)
    kind.create = staticmethod(named_form(theirs, created))
    _copies.append(kind)
    return kind


def _refuse_other_shape(found: Any, name: str) -> None:
    """errors  TypeError: a class of this name that is no copy of vLLM's"""
    wrong = []
    if isinstance(found, type):
        lacks = [one for one in _CALLS if not callable(getattr(found, one, None))]
        wrong += [f"it has no {', '.join(lacks)}"] if lacks else []
        given = list(inspect.signature(found).parameters)
        if given[:2] != ["rank", "world_size"] or "store" not in given:
            wrong.append(f"its constructor takes ({', '.join(given)})")
    else:
        wrong.append("it is no class")
    if wrong:
        raise TypeError(
            f"{name} is not vLLM's class nor a copy of it: {'; '.join(wrong)}. If it constructs a "
            "TCPStore, muster.torch.patch_tcpstore() serves that"
        )


@names_keywords
def patch(
    module: str | ModuleType = VLLMS, *, allow_unauthenticated: bool = False
) -> Patch:
    """Puts this class in the place of vLLM's, or of a copy of it, in this process.

    Every module that has that class under some name has this one then, also modules that are
    imported later. What has copied it elsewhere is not reached: subclasses, defaults of arguments,
    attributes of objects. Groups that are there already stay what they are.

    module                 that has the class ``StatelessProcessGroup``, such as
                           "sglang.srt.distributed.utils", whose class is a copy of vLLM's
    allow_unauthenticated  for programs without a key that serve at an address which other machines
                           reach, such as 0.0.0.0. Holds for this class until the undo;
                           ``unauthenticated_allowed`` of this module allows it to all
    returns                what undoes it, by ``undo()`` or as a context manager
    errors                 ImportError (there is no such module), AttributeError (it has no such
                           class), TypeError (its class is another one: the error says in what)
    """
    check_permission(allow_unauthenticated)
    place = import_module(module) if isinstance(module, str) else module
    found = place.StatelessProcessGroup
    _refuse_other_shape(found, f"{place.__name__}.StatelessProcessGroup")
    is_vllms = place.__name__ == VLLMS or found is StatelessProcessGroup
    kind: Any = StatelessProcessGroup if is_vllms else _stand_in_for(found)
    if found is not kind:
        kind._stands_for = found
    before = kind._is_allowed
    kind._is_allowed = before or allow_unauthenticated

    def restore() -> None:
        kind._is_allowed = before

    return Patch(kind._stands_for, kind, restore)
