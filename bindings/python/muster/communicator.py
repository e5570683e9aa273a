"""Communicators move tensors between the ranks of a group: :mod:`muster.nccl` makes those for
device memory, :mod:`muster.gloo` those for host memory; everything else is the same for both.

Tensors are those of every library with DLPack's protocol: they are asked for by
``__dlpack__(stream=...)`` with the stream that the operation is on, where they are, as
``__dlpack_device__`` says. One that requires grad, that is read-only where it would be written,
that is not contiguous, or that is on another device is refused by name (InvalidArgument), and
nothing was done.
"""

# Annotations are evaluated here: subclasses of CommunicatorOptions inherit them in other modules,
# where typing.get_type_hints does not find their names.

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, NamedTuple, Union

from muster import _core
from muster._events import Events
from muster._handles import Handle, handle_of
from muster._keywords import (
    check_function_or_none, iterable_of, names_keywords, refuse_type,
)
from muster.errors import Forked, MusterError
from muster.group import StatelessProcessGroup
from muster.store import Time, Timeout

__all__ = ["Communicator", "CommunicatorOptions", "CreationTimes", "Reduction", "scaled_sum"]

Stream = Any
"""An int, an object with ``cuda_stream`` or ``__cuda_stream__``, or None: the default stream. With
Gloo None."""


class scaled_sum(NamedTuple):
    """The sum of the tensors of all ranks, each multiplied by its rank's factor before. Of
    floating-point types only; the tensors that are sent stay as they are."""

    factor: float
    """Of this rank; other ranks may give others."""


Reduction = Union[Literal["sum", "product", "max", "min", "average"], scaled_sum]


class CreationTimes(NamedTuple):
    """How long it took on this rank, in seconds."""

    total: float
    library: float
    """The part of it in NCCL or Gloo, including their wait for other ranks."""


@names_keywords
@dataclass(frozen=True, kw_only=True)
class CommunicatorOptions:
    """What the options of NCCL and Gloo share."""

    timeout: Time = _core.DEFAULTS.communicator_timeout
    """Of ``create``, and of every call without one."""
    on_loss: Literal["abort", "notify"] = "abort"
    """When a rank of the group is lost or leaves: it ends at once; or it calls ``on_end``, and the
    host decides."""
    on_end: Callable[[MusterError], object] | None = None
    """Called once when the communicator ends, with the reason; with "notify" also for every loss.
    On a thread of Muster's."""
    abort_timeout: Time = _core.DEFAULTS.abort_timeout
    """How long an abort may take."""

    def __post_init__(self) -> None:
        check_function_or_none(self.on_end, "on_end")
        object.__setattr__(
            self, "_events", None if self.on_end is None else Events(ended=self.on_end)
        )

    def _fields(self) -> dict[str, Any]:
        """For muster._core, which refers weakly to the events: whoever has these keeps them."""
        fields = {name: value for name, value in vars(self).items() if name != "on_end"}
        events = fields.pop("_events")
        fields["events"] = None if events is None else weakref.ref(events)
        return fields


def fields_of(options: Any, kind: type[CommunicatorOptions], argument: str) -> dict[str, Any]:
    """The options for muster._core. Raises TypeError: they are none of that kind."""
    if not isinstance(options, kind):
        raise refuse_type(options, argument, f"{kind.__module__}.{kind.__qualname__}")
    return options._fields()


@names_keywords
class Communicator(Handle):
    """A communicator of all ranks of one epoch of a group.

    It ends when a rank is lost or leaves (see ``CommunicatorOptions.on_loss``), when a call fails
    after it began, and with its group's handle. Collectives: all ranks call them in the same order
    with the same sizes, dtypes, reductions and roots, else they wait for each other until the
    timeout.

    NCCL: a call returns when the operation is on the stream; the tensors must be there until the
    stream is done. Calls that issue operations are made on one thread per device. Gloo: a call
    returns when this rank's part is done. Ctrl-C ends a call of the main thread, and the
    communicator with it.

    What reduces takes the dtypes of NCCL; what only moves takes every dtype of whole bytes.

    Errors of every call: the reason why it ended (RankLost, RankLeft, Closed, Aborted, TimedOut,
    NcclFailed, GlooFailed), InvalidArgument (an argument, by name; nothing was done), Busy (Gloo:
    another call is in progress), WouldDeadlock (NCCL: another thread issues to the device), Forked.

    As a context manager it is closed at the end of a body that has ended well, and aborted when the
    body raises: the other ranks may never call ``close``.
    """

    __slots__ = ("_handle", "_kept", "_recorded", "_shown")
    _instead = "it has connections and memory of this process. Each rank makes its own"

    _handle: _core.Communicator
    _kept: Any
    """What the communicator refers to weakly, or not at all."""
    _recorded: list[_core.Operation] | None
    _shown: str
    """What ``repr`` shows, also when the communicator has gone with its runtime."""

    def __init__(self) -> None:
        raise TypeError("muster.nccl.create and muster.gloo.create make communicators")

    @classmethod
    def _of(cls, handle: _core.Communicator, kept: Any) -> "Communicator":
        communicator = cls.__new__(cls)
        communicator._handle = handle
        communicator._kept = kept
        communicator._recorded = None
        communicator._shown = (
            f"{handle.kind()}, group {handle.group()!r}: rank {handle.rank()} of "
            f"{handle.world_size()}"
        )
        return communicator

    def _do(
        self,
        name: str,
        send: Any,
        receive: Any,
        *,
        op: Reduction = "sum",
        root: int = 0,
        counts: Sequence[int] | None = None,
        stream: Stream,
        timeout: Timeout,
    ) -> None:
        options = {
            "op": "sum" if isinstance(op, scaled_sum) else op,
            "factor": op.factor if isinstance(op, scaled_sum) else None,
            "root": root,
            "counts": counts,
            "stream": stream,
            "timeout": timeout,
        }
        operation = _core.Operation(self._handle, name, send, receive, options)
        if self._recorded is not None:
            self._recorded.append(operation)
        else:
            self._handle.run(operation)

    def all_reduce(
        self,
        tensor: Any,
        op: Reduction = "sum",
        *,
        out: Any = None,
        stream: Stream = None,
        timeout: Timeout = None,
    ) -> None:
        """Combines the ranks' tensors element by element.

        out  of the same size; None: in place
        """
        receive = tensor if out is None else out
        self._do("all_reduce", tensor, receive, op=op, stream=stream, timeout=timeout)

    def broadcast(
        self, tensor: Any, root: int = 0, *, stream: Stream = None, timeout: Timeout = None
    ) -> None:
        """Gives all ranks the root's tensor, in place."""
        self._do("broadcast", tensor, tensor, root=root, stream=stream, timeout=timeout)

    def reduce(
        self,
        tensor: Any,
        root: int = 0,
        op: Reduction = "sum",
        *,
        out: Any = None,
        stream: Stream = None,
        timeout: Timeout = None,
    ) -> None:
        """Combines the ranks' tensors at the root.

        out  at the root; None: in place there
        """
        receive = tensor if out is None else out
        self._do("reduce", tensor, receive, op=op, root=root, stream=stream, timeout=timeout)

    def all_gather(
        self, tensor: Any, out: Any, *, stream: Stream = None, timeout: Timeout = None
    ) -> None:
        """Gives all ranks all tensors, one behind the other.

        out  ``world_size`` times as many elements
        """
        self._do("all_gather", tensor, out, stream=stream, timeout=timeout)

    def reduce_scatter(
        self,
        tensor: Any,
        out: Any,
        op: Reduction = "sum",
        *,
        stream: Stream = None,
        timeout: Timeout = None,
    ) -> None:
        """Combines the ranks' tensors, of which each rank gets its part.

        tensor  ``world_size`` times as many elements as ``out``
        """
        self._do("reduce_scatter", tensor, out, op=op, stream=stream, timeout=timeout)

    def all_to_all(
        self, tensor: Any, out: Any, *, stream: Stream = None, timeout: Timeout = None
    ) -> None:
        """Gives rank i this rank's part i. Both have ``world_size`` equal parts."""
        self._do("all_to_all", tensor, out, stream=stream, timeout=timeout)

    def gather(
        self,
        tensor: Any,
        out: Any = None,
        root: int = 0,
        *,
        stream: Stream = None,
        timeout: Timeout = None,
    ) -> None:
        """Gives the root all tensors, one behind the other.

        out  at the root: ``world_size`` times as many elements
        """
        self._do("gather", tensor, out, root=root, stream=stream, timeout=timeout)

    def scatter(
        self,
        tensor: Any,
        out: Any,
        root: int = 0,
        *,
        stream: Stream = None,
        timeout: Timeout = None,
    ) -> None:
        """Gives rank i part i of the root's tensor.

        tensor  at the root: ``world_size`` times as many elements as ``out``; elsewhere None
        """
        self._do("scatter", tensor, out, root=root, stream=stream, timeout=timeout)

    # The same where the parts of the ranks differ in size. counts: the elements of each rank's
    # part, the same on all ranks; some may be 0.

    def all_gather_v(
        self,
        tensor: Any,
        out: Any,
        counts: Sequence[int],
        *,
        stream: Stream = None,
        timeout: Timeout = None,
    ) -> None:
        """As ``all_gather``. tensor: this rank's part; out: all parts."""
        self._do("all_gather_v", tensor, out, counts=counts, stream=stream, timeout=timeout)

    def reduce_scatter_v(
        self,
        tensor: Any,
        out: Any,
        counts: Sequence[int],
        op: Reduction = "sum",
        *,
        stream: Stream = None,
        timeout: Timeout = None,
    ) -> None:
        """As ``reduce_scatter``. tensor: all parts; out: this rank's part, reduced."""
        self._do(
            "reduce_scatter_v", tensor, out, op=op, counts=counts, stream=stream, timeout=timeout
        )

    def gather_v(
        self,
        tensor: Any,
        out: Any,
        counts: Sequence[int],
        root: int = 0,
        *,
        stream: Stream = None,
        timeout: Timeout = None,
    ) -> None:
        """As ``gather``. tensor: this rank's part; out: at the root, all parts; else None."""
        self._do("gather_v", tensor, out, root=root, counts=counts, stream=stream, timeout=timeout)

    def scatter_v(
        self,
        tensor: Any,
        out: Any,
        counts: Sequence[int],
        root: int = 0,
        *,
        stream: Stream = None,
        timeout: Timeout = None,
    ) -> None:
        """As ``scatter``. tensor: at the root, all parts; else None; out: this rank's part."""
        self._do("scatter_v", tensor, out, root=root, counts=counts, stream=stream, timeout=timeout)

    def send(
        self, tensor: Any, peer: int, *, stream: Stream = None, timeout: Timeout = None
    ) -> None:
        """Sends to a rank, which receives as many elements of the same dtype."""
        self._do("send", tensor, None, root=peer, stream=stream, timeout=timeout)

    def recv(
        self, tensor: Any, peer: int, *, stream: Stream = None, timeout: Timeout = None
    ) -> None:
        """Receives from a rank into the tensor."""
        self._do("recv", None, tensor, root=peer, stream=stream, timeout=timeout)

    @contextlib.contextmanager
    def grouped(self, *, timeout: Timeout = None) -> Iterator["Communicator"]:
        """A scope whose operations of this communicator begin together, at its end: sends and
        receives that wait for each other need it. Tensors are checked at once.

        If the body raises, none begins. NCCL: all or nothing; if it takes only some, the
        communicator ends.
        """
        if self._recorded is not None:
            yield self  # belongs to the outer one
            return
        recorded: list[_core.Operation] = []
        self._recorded = recorded
        try:
            yield self
        finally:
            self._recorded = None
        self._handle.run_grouped(recorded, timeout)

    def attach(self, group: StatelessProcessGroup, *, timeout: Timeout = None) -> None:
        """Watches another group for losses, after the store was reopened and the same processes
        formed a group again. Collective. The group before must be there until this returns.

        errors  Mismatch (``ranks``: another process than before), those of a collective
        """
        self._handle.attach(handle_of(group), timeout)
        self._kept = (self._kept, group)

    def abort(self) -> None:
        """Ends it now, without waiting, from any thread: calls in progress raise Aborted."""
        self._handle.abort()

    @staticmethod
    def abort_all(communicators: Iterable["Communicator"]) -> None:
        """Aborts several together, as NCCL needs it for those of one device."""
        _core.abort_all(map(handle_of, iterable_of(communicators, "communicators")))

    def close(self, *, timeout: Timeout = None) -> None:
        """Ends it in order. All ranks call it; with NCCL when their streams are done. With NCCL a
        rank that leaves the group afterwards first passes a barrier. It may be called again, and
        after ``abort``."""
        self._handle.close(timeout)

    @property
    def error(self) -> MusterError | None:
        """The reason why it ended, if it has ended. NCCL: also asks NCCL."""
        error: MusterError | None = self._handle.error()
        return error

    @property
    def kind(self) -> str:
        """"nccl" or "gloo"."""
        return self._handle.kind()

    @property
    def rank(self) -> int:
        return self._handle.rank()

    @property
    def world_size(self) -> int:
        return self._handle.world_size()

    @property
    def group_name(self) -> str:
        return self._handle.group()

    @property
    def epoch(self) -> int:
        return self._handle.epoch()

    @property
    def creation_times(self) -> CreationTimes:
        return CreationTimes(*self._handle.creation_times())

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.abort()
            return
        with contextlib.suppress(Forked):
            self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self._handle.is_closed() else ""
        return f"<muster.Communicator of {self._shown}{closed}>"
